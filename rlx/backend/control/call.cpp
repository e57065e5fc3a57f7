// A function given as a graph: its body runs as one step.
#include <algorithm>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/loops.h"
#include "rlx/ops/control/custom_fn.h"

namespace rlx::backend {
namespace {

class CallStep final : public Step {
 public:
  explicit CallStep(const Request& r)
      : body_(r, *r.node.as<ops::CustomFn>().fwd_body, all_operands(r), *this) {
    workspace = body_.workspace();
  }

  std::vector<Plan> bodies() const override { return {body_.plan()}; }

  void run(const Launch& l) const override {
    std::copy_n(l.in, body_.leaves(), body_.leaf_addresses(l.workspace));
    std::copy_n(l.out, body_.outputs(), body_.output_addresses(l.workspace));
    body_.run(l, l.workspace, {});
  }

 private:
  static std::vector<int> all_operands(const Request& r) {
    std::vector<int> out;
    for (size_t i = 0; i < r.in.size(); ++i) out.push_back(int(i));
    return out;
  }

  Body body_;
};

}  // namespace

std::unique_ptr<Step> prepare_call(const Request& r) { return std::make_unique<CallStep>(r); }

}  // namespace rlx::backend
