#include "rlx/text/template/loop_variable.h"

#include "rlx/text/template/lexer.h"

namespace rlx::text::jinja {

void LoopVariable::forget() {
  items_.clear();
  last_seen_.clear();
  recurse_ = nullptr;
}

Value LoopVariable::get(std::string_view name) const {
  const auto n = int64_t(items_.size()), at = int64_t(at_);
  if (name == "index") return Value(at + 1);
  if (name == "index0") return Value(at);
  if (name == "first") return Value(at == 0);
  if (name == "last") return Value(at + 1 == n);
  if (name == "length") return Value(n);
  if (name == "revindex") return Value(n - at);
  if (name == "revindex0") return Value(n - at - 1);
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem") return at > 0 ? items_[at_ - 1] : Value::undefined("loop.previtem");
  if (name == "nextitem") return at + 1 < n ? items_[at_ + 1] : Value::undefined("loop.nextitem");
  if (name == "cycle")
    return make_function([self = shared_from_this()](CallArguments& a) { return self->cycle(a); });
  if (name == "changed")
    return make_function([self = shared_from_this()](CallArguments& a) { return self->changed(a); });
  return Value::undefined(cat("loop.", name));
}

Value LoopVariable::call(CallArguments& arguments) {
  if (!recurse_) throw error_at(arguments.place(), "only a loop marked 'recursive' can be called");
  return recurse_(arguments);
}

std::string LoopVariable::shown() const { return cat("<LoopContext ", at_ + 1, "/", items_.size(), ">"); }

Value LoopVariable::cycle(CallArguments& a) const {
  const List values = a.rest();
  a.finish();
  if (values.empty()) throw error_at(a.place(), "'cycle' needs an argument");
  return values[at_ % values.size()];
}

Value LoopVariable::changed(CallArguments& a) const {
  const Value values(a.rest());
  a.finish();
  const bool same = !last_seen_.empty() && equal(last_seen_[0], values, a.place(), budget_);
  if (!same) last_seen_.assign(1, values);
  return Value(!same);
}

}  // namespace rlx::text::jinja
