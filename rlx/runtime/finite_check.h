// Finds the first step of a run that makes a NaN, or an infinity, out of finite operands.
#pragma once

#include "rlx/backend/executable.h"

namespace rlx {

/// Stops the run at that step with an error that says where it is (of a loop: which step of it), and which element of which result; the run
/// adds node and origin. A step whose operands already hold such values is passed over: they came from outside. Bodies of loops and
/// branches are looked into, so loops run on one thread. `memory`: where the steps run, see device_named(); what lies on a device is fetched.
class FiniteCheck final : public backend::Observer {
 public:
  /// What results must be: no NaN among them, or no infinity either.
  enum class Wanted : uint8_t { no_nan, finite };
  explicit FiniteCheck(Wanted wanted = Wanted::no_nan, const backend::Memory& memory = backend::host_memory())
      : wanted_(wanted), memory_(memory) {}

  void before(const backend::Plan::Step&, const backend::Launch&) override;
  void after(const backend::Plan::Step&, const backend::Launch&) override;
  bool enter(const backend::BodyRun&) override;
  void leave() override;
  bool wants_every_step() const override { return true; }

 private:
  /// A step on the way and, below the innermost, the run of its body.
  struct Level {
    const backend::Plan::Step* step = nullptr;
    bool operands_are_fine = true;
    backend::BodyRun inside;
  };
  std::string path() const;
  int64_t first_bad(const backend::Plan::Place&, const std::byte* data);

  Wanted wanted_;
  const backend::Memory& memory_;
  std::vector<std::byte> fetched_;
  size_t depth_ = 0;  // of bodies
  std::vector<Level> levels_;
};

}  // namespace rlx
