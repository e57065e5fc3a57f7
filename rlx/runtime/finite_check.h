// Finds the first step of a run that makes a NaN, or an infinity, out of finite operands.
#pragma once

#include "rlx/backend/executable.h"

namespace rlx {

/// Stops the run at that step with an error that says which element of which result; the run adds node and origin. A step whose
/// operands already hold such values is passed over: they came from outside. Host memory only.
class FiniteCheck final : public backend::Observer {
 public:
  enum class Wanted : uint8_t { no_nan, finite };
  explicit FiniteCheck(Wanted wanted = Wanted::no_nan) : wanted_(wanted) {}

  void before(const backend::Plan::Step&, const backend::Launch&) override;
  void after(const backend::Plan::Step&, const backend::Launch&) override;

 private:
  Wanted wanted_;
  bool operands_are_fine_ = true;
};

}  // namespace rlx
