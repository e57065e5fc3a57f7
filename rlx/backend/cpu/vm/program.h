// A region made ready for this machine: planned once, run often, by many threads at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rlx/base/pool.h"
#include "rlx/region/region.h"

namespace rlx::cpu {

namespace vm {
struct Plan;
}

class RegionProgram {
 public:
  /// Why there is no program for a region; nothing when there is one.
  static std::optional<std::string> refuses(const region::Region&);

  /// For the instruction set in use now. The region is canonical.
  explicit RegionProgram(const region::Region&);
  ~RegionProgram();
  RegionProgram(RegionProgram&&) noexcept;
  RegionProgram& operator=(RegionProgram&&) noexcept;

  /// Bytes that a run with so many threads needs, at a multiple of 64.
  size_t workspace(int threads) const;

  /// `arguments`: the memory of the inputs, then of the results. Allocates nothing; several runs may go on at
  /// once, each with its own workspace. Results are the same for every number of threads.
  void run(Team, std::span<std::byte* const> arguments, std::byte* workspace) const;

  /// Whether result i may be given the memory of input j: it lies alike, and is written when nothing of the
  /// input is needed any more.
  bool may_overwrite(int result, int input) const;

  /// "tiles", "rows" or "columns": how the box is walked, for reports.
  std::string_view schedule() const;

 private:
  std::unique_ptr<const vm::Plan> plan_;
};

}  // namespace rlx::cpu
