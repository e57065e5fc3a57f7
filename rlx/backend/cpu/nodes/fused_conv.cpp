// A convolution with what happens to its result before it is stored: relu(conv2d(x, w) + biases + residual).
#include "rlx/backend/cpu/nodes/fused_conv.h"

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/conv_packing.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/all.h"

namespace rlx::cpu {
namespace {

/// What a body adds up, by operands of the node.
struct Sum {
  std::string refusal;
  const ir::Node* product = nullptr;
  int x = 0, w = 0;
  std::vector<int> biases;
  std::optional<int> residual;
  bool relu = false;
};

class Reader {
 public:
  explicit Reader(const Request& r) : body_(*r.node.as<ops::Fused>().body) {
    const auto leaves = body_.leaves();
    for (size_t i = 0; i < leaves.size(); ++i) operand_of_[leaves[i]] = int(i);
  }

  Sum read() {
    if (body_.outputs().size() != 1) return refused("several results");
    ir::Value v = body_.outputs()[0];
    if (body_.shape(v).rank() != 4) return refused("no pictures with channels");
    if (node(v).is<ops::Relu>()) {
      out_.relu = true;
      v = node(v).inputs[0];
    }
    if (!add_terms(v)) return refused("more than a sum with channels and one residual");
    return out_.product ? out_ : refused("no convolution");
  }

 private:
  Sum refused(std::string_view why) {
    out_.refusal = why;
    return out_;
  }
  const ir::Node& node(ir::Value v) const { return body_.node(v); }
  std::optional<int> leaf(ir::Value v) const {
    const auto at = operand_of_.find(v.node);
    return at == operand_of_.end() ? std::nullopt : std::optional(at->second);
  }

  bool add_terms(ir::Value v) {
    const ir::Node& n = node(v);
    if (n.is<ops::Conv2d>()) {
      const auto x = leaf(n.inputs[0]), w = leaf(n.inputs[1]);
      if (out_.product || !x || !w) return false;
      out_.product = &n;
      out_.x = *x, out_.w = *w;
      return true;
    }
    if (n.is<ops::Add>()) return add_terms(n.inputs[0]) && add_terms(n.inputs[1]);
    const auto operand = leaf(v);
    if (!operand) return false;
    const Shape &s = body_.shape(v), &y = body_.shape(body_.outputs()[0]);
    if (s.dims() == y.dims()) {
      if (out_.residual) return false;
      out_.residual = operand;
      return true;
    }
    for (int i = 0; i < s.rank(); ++i) {
      if (s.dim(i) != Dim(1) && (i + 4 - s.rank() != 1 || s.dim(i) != y.dim(1))) return false;
    }
    out_.biases.push_back(*operand);
    return s.elements() == y.dim(1).value();
  }

  const ir::Graph& body_;
  std::map<ir::NodeId, int> operand_of_;
  Sum out_;
};

ConvShape shape_of(const Request& r, const Sum& sum) {
  const auto& a = sum.product->as<ops::Conv2d>();
  const Shape &x = r.in[size_t(sum.x)].shape, &w = r.in[size_t(sum.w)].shape, &y = r.out[0].shape;
  ConvShape s{.batch = x.dim(0).value(), .groups = a.groups};
  s.in_channels = x.dim(1).value(), s.out_channels = y.dim(1).value();
  for (size_t i = 0; i < 2; ++i) {
    const int axis = int(i) + 2;
    s.size[i + 1] = x.dim(axis).value(), s.kernel[i + 1] = w.dim(axis).value();
    s.stride[i + 1] = a.stride[i], s.dilation[i + 1] = a.dilation[i], s.low[i + 1] = a.padding[i];
    s.high[i + 1] = (y.dim(axis).value() - 1) * a.stride[i] + a.dilation[i] * (s.kernel[i + 1] - 1) + 1 -
                    s.size[i + 1] - s.low[i + 1];
  }
  return s;
}

Support accepts(const Request& r) {
  if (const Support s = plain_f32(r); !s) return s;
  const Sum sum = Reader(r).read();
  if (!sum.refusal.empty()) return Support::no(sum.refusal);
  if (!conv_finishes(ConvPlan(shape_of(r, sum), ConvPass::forward)))
    return Support::no("a convolution whose result is only written");
  return Support::yes();
}

/// Biases are added up first, which is nothing beside the convolution.
struct FinishedConv {
  std::shared_ptr<const ConvPlan> plan;
  Sum sum;
  size_t bias_bytes = 0;

  void run(const Launch& l, const PackedConvWeights& weights, std::byte* workspace) const {
    Conv c{.plan = plan.get(), .weights = &weights, .x = f32(l, size_t(sum.x))};
    if (!sum.biases.empty()) {
      auto* total = reinterpret_cast<float*>(workspace);
      for (int64_t i = 0; i < plan->shape().out_channels; ++i) {
        total[i] = 0;
        for (const int b : sum.biases) total[i] += f32(l, size_t(b))[i];
      }
      c.bias = total;
    }
    if (sum.residual) c.residual = f32(l, size_t(*sum.residual));
    c.relu = sum.relu;
    c.out = reinterpret_cast<float*>(l.out[0]);
    conv(l.team, c, workspace + bias_bytes);
  }
};

std::unique_ptr<Step> prepare(const Request& r) {
  const Sum sum = Reader(r).read();
  const auto plan = std::make_shared<const ConvPlan>(shape_of(r, sum), ConvPass::forward);
  const FinishedConv f{plan, sum, round_up(size_t(plan->shape().out_channels) * sizeof(float))};
  const size_t workspace = f.bias_bytes + conv_workspace({.plan = plan.get()}, r.threads);
  const std::string note = cat("convolution", sum.biases.empty() ? "" : ", bias",
                               sum.residual ? ", residual" : "", sum.relu ? ", relu" : "");
  if (!r.in[size_t(sum.w)].fixed) {
    const size_t weights = round_up(PackedConvWeights::bytes(*plan));
    auto step = make_step(
        [f, weights](const Launch& l) {
          PackedConvWeights packed(*f.plan, l.workspace);
          packed.pack(l.team, f32(l, size_t(f.sum.w)));
          f.run(l, packed, l.workspace + weights);
        },
        weights + workspace);
    step->note = note;
    return step;
  }
  auto step = make_step(
      [f](const Launch& l) {
        f.run(l, static_cast<const FixedConvWeights*>(l.packed[0])->packed, l.workspace);
      },
      workspace, {conv_packing(plan, sum.w)});
  step->note = cat(note, ", packed weights");
  return step;
}

}  // namespace

void add_fused_conv(backend::KernelTable& table) {
  table.add<ops::Fused>({"conv_epilogue_f32", accepts, prepare});
}

}  // namespace rlx::cpu
