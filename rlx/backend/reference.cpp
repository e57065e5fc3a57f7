#include "rlx/backend/reference.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/by_steps.h"
#include "rlx/ir/interpreter.h"

namespace rlx::backend {
namespace {

Support accepts(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is not row-major");
  }
  return Support::yes();
}

bool lies_in(const Literals& operands, const Literal& y) {
  const std::byte* at = y.bytes().data();
  return std::any_of(operands.begin(), operands.end(), [&](const Literal& x) {
    const auto bytes = x.bytes();
    return !std::less<>()(at, bytes.data()) && std::less<>()(at, bytes.data() + bytes.size());
  });
}

// The step keeps a copy of the node, without its uses: the graph it came from need not outlive it.
class ReferenceStep final : public Step {
 public:
  explicit ReferenceStep(const Request& r) : node_(r.node) {
    node_.uses.clear();
    for (const Arg& a : r.in) types_.push_back(a.shape);
    for (int y = 0; y < int(r.out.size()); ++y) {  // all is computed before anything is written
      for (int x = 0; x < int(r.in.size()); ++x) {
        if (r.in[size_t(x)].shape == r.out[size_t(y)].shape) in_place.push_back({x, y});
      }
    }
    note = "reference rule";
    by_rule = true;
    if (BySteps::has_steps(r.node) && r.builder) by_steps_.emplace(r);
  }

  void run(const Launch& l) const override {
    if (by_steps_ && every_step_wanted(l)) return by_steps_->run(l);
    Literals in;
    in.reserve(types_.size());
    for (size_t i = 0; i < types_.size(); ++i) {
      const std::span<const std::byte> bytes(l.in[i], size_t(types_[i].size_bytes()));
      in.push_back(Literal::borrow(types_[i], bytes, nullptr));
    }
    Literals out = ir::Interpreter().run_node(node_, in);
    // A body may return its operands as they lie, where another result is about to be written.
    for (Literal& y : out) {
      if (out.size() > 1 && lies_in(in, y)) y = Literal::copy_of(y.shape(), y.bytes());
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].bytes().empty()) std::memcpy(l.out[i], out[i].bytes().data(), out[i].bytes().size());
    }
  }

 private:
  ir::Node node_;
  Shapes types_;
  std::optional<BySteps> by_steps_;
};

class RefBackend final : public Backend {
 public:
  RefBackend() { kernels_.add_general(reference_kernel()); }
  std::string_view name() const override { return "ref"; }
  std::string description() const override { return "the interpreter's rules: exact, slow"; }
  std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to, int) const override {
    return prepare_plain_copy(from, to);
  }
};

}  // namespace

Kernel reference_kernel() {
  return {"reference", accepts,
          [](const Request& r) -> std::unique_ptr<Step> { return std::make_unique<ReferenceStep>(r); }};
}

const Backend& ref() {
  static const RefBackend backend;
  return backend;
}

}  // namespace rlx::backend
