// Branches: only the taken body runs.
#include "rlx/ops/control/if.h"

#include <algorithm>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/loops.h"

namespace rlx::backend {
namespace {

class IfStep final : public Step {
 public:
  explicit IfStep(const Request& r)
      : then_(r, *r.node.as<ops::If>().then_body, captures(r), *this),
        else_(r, *r.node.as<ops::If>().else_body, captures(r), *this),
        predicate_(r.in[0].dtype()),
        elements_(r.in[0].shape.elements()) {
    workspace = std::max(then_.workspace(), else_.workspace());
  }

  std::vector<Plan> bodies() const override { return {then_.plan(), else_.plan()}; }

  void run(const Launch& l) const override {
    const bool holds = all_nonzero(predicate_, l.in[0], elements_);
    const Body& taken = holds ? then_ : else_;
    std::copy_n(l.in + 1, taken.leaves(), taken.leaf_addresses(l.workspace));
    std::copy_n(l.out, taken.outputs(), taken.output_addresses(l.workspace));
    taken.run(l, l.workspace, {.body = holds ? 0 : 1});
  }

 private:
  static std::vector<int> captures(const Request& r) {
    std::vector<int> out;
    for (size_t i = 1; i < r.in.size(); ++i) out.push_back(int(i));
    return out;
  }

  Body then_, else_;
  DType predicate_;
  int64_t elements_;
};

}  // namespace

std::unique_ptr<Step> prepare_if(const Request& r) { return std::make_unique<IfStep>(r); }

}  // namespace rlx::backend
