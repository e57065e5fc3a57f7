// A convolution and the elementwise operators behind it as one kernel (groups/groups.h).
#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/conv_steps.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/conv/conv.h"
#include "rlx/region/of_node.h"

namespace rlx::cuda {
namespace {

/// The body of a group, read: its convolution and its elements.
class ConvReading {
 public:
  explicit ConvReading(const Request& r) : r_(r), body_(*r.node.as<ops::Fused>().body) {
    leaves_ = body_.leaves();
    for (const ir::Node* n : body_.nodes()) {
      if (n->op->traits.leaf) continue;
      (n->is<ops::Conv>() ? conv_ : elements_) = n;
    }
    if (!conv_ || !elements_) return;
    for (const ir::Value v : conv_->inputs) in_.push_back(r.in[size_t(operand(v))]);
    out_ = {{.shape = conv_->shapes[0], .layout = backend::Layout::row_major(conv_->shapes[0].dims())}};
  }

  bool is_whole() const { return conv_ && elements_; }
  /// Of the convolution by itself.
  Request request() const { return {*conv_, in_, out_, r_.threads, r_.builder}; }

  /// Why the elements cannot be made where a result is.
  std::string problem() const {
    const region::Built built = region_of();
    if (!built) return built.refusal;
    const region::Region& r = *built.region;
    if (r.has_reduction() || r.rows() * r.columns() != elements_->shapes[0].elements())
      return "elements of another shape";
    for (size_t i = 0; i < r.arguments.size(); ++i) {
      if ((i >= elements_->inputs.size() || is_result(i)) && !is_dense(r, r.arguments[i]))
        return "elements in another order";
    }
    return {};
  }

  ConvNode node() const {
    const region::Region r = *region_of().region;
    ConvNode out{.x = operand(conv_->inputs[0]), .w = operand(conv_->inputs[1])};
    std::vector<bool> values(r.arguments.size(), false);
    std::string fields, call;
    const auto member = [&](int source, const std::string& type) {
      fields += cat(" ", type, " m", out.results.members.size(), ";");
      call += cat(", p.m", out.results.members.size());
      out.results.members.push_back(source);
    };
    for (size_t i = 0; i < elements_->inputs.size(); ++i) {
      values[i] = is_result(i);
      if (values[i]) {
        call += ", v";
      } else {
        const ir::Value v = elements_->inputs[i];
        member(operand(v), cat("const ", memory_type(body_.shape(v).dtype()), "*"));
      }
    }
    member(-1, cat(memory_type(elements_->shapes[0].dtype()), "*"));
    const std::string_view type = memory_type(conv_->shapes[0].dtype());
    out.results.text = cat("struct Params {", fields, " };\nconstexpr bool kPlain = false;\ninline ", type,
                           "* plain_results(const Params&) { return nullptr; }\n",
                           print_element_function(r, "elements_region", values),
                           "template <class V> void finish(const Params& p, i64 at, V sum) {\n  ", type,
                           " v;\n  put(v, sum);\n  elements_region(int(at)", call, ");\n}\n");
    return out;
  }

 private:
  int operand(ir::Value v) const {
    return int(std::find(leaves_.begin(), leaves_.end(), v.node) - leaves_.begin());
  }
  bool is_result(size_t input) const { return elements_->inputs[input].node == conv_->id; }
  region::Built region_of() const {
    std::vector<Shape> types;
    std::vector<region::Layout> in, out;
    for (size_t i = 0; i < elements_->inputs.size(); ++i) {
      const ir::Value v = elements_->inputs[i];
      types.push_back(body_.shape(v));
      in.push_back(is_result(i) ? region::Layout{}
                                : region::Layout{r_.in[size_t(operand(v))].layout.strides});
    }
    return region::of_node(*elements_, types, in, out);
  }

  const Request& r_;
  const ir::Graph& body_;
  std::vector<ir::NodeId> leaves_;
  const ir::Node *conv_ = nullptr, *elements_ = nullptr;
  std::vector<Arg> in_, out_;
};

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kConvGroup) return Support::no("no group of a convolution");
  const ConvReading g(r);
  if (!g.is_whole()) return Support::no("no convolution with elements behind it");
  if (const Support s = accepts_conv_parts(g.request()); !s) return s;
  for (const ConvPart& p : conv_parts(g.request())) {
    if (p.inputs * p.taps() == 0) return Support::no("some results have no terms");
  }
  const std::string why = g.problem();
  return why.empty() ? Support::yes() : Support::no(why);
}

std::unique_ptr<Step> prepare(const Request& r) {
  const ConvReading g(r);
  const Request conv = g.request();
  auto step = conv_step(conv, g.node(), conv_plan_for(conv));
  step->note += ", a region of elements";
  return step;
}

}  // namespace

void add_conv_groups(KernelTable& table) { table.add<ops::Fused>({"conv_group", accepts, prepare}); }

}  // namespace rlx::cuda
