// Products of some rows with large weights that the copy engine brings (kernels/copied_tiles.h).
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "rlx/backend/cuda/driver/blas.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/head_maps.h"

namespace rlx::cuda {

/// How such a product is cut. Speeds differ by a third from one to another, and which is the fastest depends on the shape.
struct CopiedTiling {
  int64_t tile = 64;     // columns of a unit, over all sides
  int64_t cluster = 1;   // blocks that share k
  int64_t clusters = 1;  // of a launch
  int64_t places = 4;    // of a ring
  bool rounded = false;  // finished rows have room there
  int64_t blocks =
      2;             // that find room on a processor, so that the next product of this kind can begin to read
  int64_t runs = 0;  // blocks that stay and have equal runs of steps (kernels/copied_runs.h); 0: clusters
  std::string text() const;
};

class CopiedTiles {
 public:
  static constexpr size_t kMostSides = 2;

  /// Whether products of `sides` matrices of this shape, one range of columns each, are worth it.
  static bool suits(const FewRows&, int64_t sides, int64_t together = 0);
  /// The ways to cut one that may be the fastest, the most promising first; none where it does not suit. `together`: so many columns, 0 or a multiple of 16, are finished together (finish_rows).
  static std::vector<CopiedTiling> tilings(const Device&, const FewRows&, int64_t sides,
                                           int64_t together = 0);
  /// Of the library's way and these the fastest one for weights that no cache holds, measured once for each shape; nothing where it is the library's.
  static std::optional<CopiedTiles> make(const Device&, const FewRows&, const BlasPlan* library);
  /// With `hooks`, the text of Params and finish or finish_rows: the fastest tiling of `sides` sides.
  static std::optional<CopiedTiles> make(const Device&, const FewRows&, int64_t sides,
                                         const std::string& hooks, int64_t together = 0);
  CopiedTiles(const Device&, const FewRows&, int64_t sides, const std::string& hooks, const CopiedTiling&);
  /// Hooks for which the sum, of two sides that of both, is the result; Params are where c begins and the stride of its rows.
  static const char* plain_hooks();
  static CopiedTiles plain(const Device&, const FewRows&, int64_t sides, const CopiedTiling&);

  static bool fits(const void* a, const void* b) {
    return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
  }
  void run(Stream_*, const void* a, std::array<const void*, kMostSides> b, void* c, void* workspace) const;
  /// `params`: the bytes of Params; `b`: the weights of each side; `workspace`: so many bytes at a multiple of 16.
  void run_with(Stream_*, void* params, const void* a, std::array<const void*, kMostSides> b,
                void* workspace) const;
  size_t workspace() const;
  const CopiedTiling& tiling() const { return tiling_; }
  const Source& source() const { return kernel_.function->source(); }

 private:
  static int fastest_way(const Device&, const FewRows&, int64_t sides, const std::vector<CopiedTiling>&,
                         const BlasPlan* library);

  const Device* device_;
  FewRows p_;
  int64_t sides_ = 1;
  CopiedTiling tiling_;
  HeadMap a_map_, b_map_;
  int b_box_ = 64;
  ColumnProducts kernel_;
  std::shared_ptr<const backend::Block> words_;  // of units that several runs share; zero between launches
};

/// The same for any address, a thread for each result: `hooks` as above, weights and rows with the strides of `p`.
class PlainColumns {
 public:
  PlainColumns() = default;
  PlainColumns(const Device&, const FewRows&, int64_t sides, const std::string& hooks);
  void run_with(Stream_*, void* params, const void* a,
                std::array<const void*, CopiedTiles::kMostSides> b) const;

 private:
  FewRows p_;
  FunctionRef function_;
};

}  // namespace rlx::cuda
