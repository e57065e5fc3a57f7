// The variable `loop` of a for statement.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rlx/text/template/object.h"
#include "rlx/text/template/operations.h"

namespace rlx::text::jinja {

/// One for the whole loop: it moves on with it.
class LoopVariable final : public Object, public std::enable_shared_from_this<LoopVariable> {
 public:
  using Recurse = std::function<Value(CallArguments&)>;

  /// `recurse` runs the loop over other items; empty unless the loop is recursive.
  LoopVariable(List items, int depth, Recurse recurse, Budget& budget)
      : items_(std::move(items)), depth_(depth), recurse_(std::move(recurse)), budget_(budget) {}

  bool done() const { return at_ >= items_.size(); }
  const Value& item() const { return items_[at_]; }
  void next() { ++at_; }
  /// Lets go of everything it holds.
  void forget();

  Value get(std::string_view name) const override;
  Value call(CallArguments& arguments) override;
  std::string shown() const override;

 private:
  Value cycle(CallArguments& arguments) const;
  Value changed(CallArguments& arguments) const;

  List items_;
  size_t at_ = 0;
  int depth_;
  Recurse recurse_;
  Budget& budget_;
  mutable List last_seen_;  // by changed(): one list of values, or none yet
};

}  // namespace rlx::text::jinja
