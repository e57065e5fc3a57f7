// The block builders of GraphModule. Where lowering would give one operator under either policy, that
// operator is the block.
#include "rlx/lang/module.h"
#include "rlx/ops/all.h"

namespace rlx {
namespace {

template <class Attrs>
ir::AttrsRef attrs_of(Attrs a) {
  return std::make_shared<Attrs>(std::move(a));
}

}  // namespace

Value GraphModule::block_node(std::string_view op, ir::AttrsRef attrs, const Values& inputs,
                              const Declared& shape, const Loc& loc) {
  return hir_graph(op).append_node(op, inputs, shape, {}, std::move(attrs), loc);
}

Value GraphModule::hir_mir(std::string_view op, const Values& inputs, ir::AttrsRef attrs,
                           const Declared& shape, const Loc& loc) {
  return hir_graph("hir_mir").append_node(op, inputs, shape, {}, std::move(attrs), loc);
}

Value GraphModule::linear(Value x, Value weight, std::optional<Value> bias,
                          std::optional<Activation> activation, const Declared& shape, const Loc& loc) {
  Values inputs = {x, weight};
  if (bias) inputs.push_back(*bias);
  return block_node("linear", attrs_of(ops::LinearAttrs{activation}), inputs, shape, loc);
}

Value GraphModule::linear_fused(Value x, Value weight, Value bias, std::optional<Activation> activation,
                                const Declared& shape, const Loc& loc) {
  return block_node("linear_fused", attrs_of(ops::LinearAttrs{activation}), {x, weight, bias}, shape, loc);
}

std::pair<Value, Value> GraphModule::shared_linear_pair(Value x, Value w_first, Value w_second,
                                                        const Loc& loc) {
  const Value first = block_node("shared_linear_pair", nullptr, {x, w_first, w_second}, {}, loc);
  return {first, graph().value(first.node, 1)};
}

Value GraphModule::swiglu_ffn(Value x, Value up_w, Value gate_w, Value down_w, const Declared& shape,
                              const Loc& loc) {
  return block_node("swiglu_ffn", nullptr, {x, up_w, gate_w, down_w}, shape, loc);
}

Value GraphModule::residual_rms_norm(Value x, Value residual, Value gamma, Value beta, double eps,
                                     const Declared& shape, const Loc& loc) {
  return block_node("residual_rms_norm", attrs_of(ops::ResidualRmsNorm::Attrs{.eps = eps}),
                    {x, residual, gamma, beta}, shape, loc);
}

Value GraphModule::attention(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads,
                             int64_t head_dim, MaskKind mask_kind, int64_t window, const Declared& shape,
                             const Loc& loc) {
  const bool needs = mask_kind == MaskKind::custom || mask_kind == MaskKind::bias;
  if (needs != mask.has_value()) {
    throw invalid("attention: mask_kind ", choice_names(mask_kind)[size_t(mask_kind)],
                  needs ? " needs a mask" : " takes no mask");
  }
  ops::AttentionAttrs a{.num_heads = num_heads, .head_dim = head_dim};
  a.mask_kind = mask_kind;
  a.window = window;
  Values inputs = {q, k, v};
  if (mask) inputs.push_back(*mask);
  return block_node("attention", attrs_of(a), inputs, shape, loc);
}

Value GraphModule::depthwise_conv1d_causal(Value input, Value weight, Value left_pad, int64_t kernel_size,
                                           const Declared& shape, const Loc& loc) {
  Graph& g = hir_graph("depthwise_conv1d_causal");
  const Shape& w = g.shape(weight);
  if (w.rank() == 0 || decide_equal(w.dim(-1), kernel_size) == false) {
    throw invalid("depthwise_conv1d_causal: kernel_size ", kernel_size, " for weight: ", w,
                  "; its last axis is the kernel");
  }
  return block_node("depthwise_conv1d_causal", nullptr, {input, weight, left_pad}, shape, loc);
}

Value GraphModule::dequant_matmul(Value x, Value w, std::optional<Value> scale, std::optional<Value> zp,
                                  const std::string& scheme, const Declared& shape, const Loc& loc) {
  Graph& g = hir_graph("dequant_matmul");
  if (scale.has_value() != zp.has_value())
    throw invalid("dequant_matmul: scale and zp come together; packed weights have neither");
  if (scale) return g.dequant_matmul(x, w, *scale, *zp, scheme, shape, loc);
  return g.dequant_matmul_packed(x, w, scheme, shape, loc);
}

std::pair<Value, Value> GraphModule::gated_delta_net(Value q, Value k, Value v, Value g, Value beta,
                                                     int64_t state_size, const Loc& loc) {
  return hir_graph("gated_delta_net").gated_delta_net(q, k, v, g, beta, state_size, loc);
}
std::pair<Value, Value> GraphModule::gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta,
                                                           Value state, int64_t state_size, const Loc& loc) {
  return hir_graph("gated_delta_net_carry").gated_delta_net_carry(q, k, v, g, beta, state, state_size, loc);
}

Value GraphModule::rope(Value x, Value cos, Value sin, int64_t head_dim, int64_t n_rot, const Declared& shape,
                        const Loc& loc) {
  return hir_graph("rope").rope_n(x, cos, sin, head_dim, n_rot, shape, loc);
}

Value GraphModule::rms_norm(Value x, Value gamma, Value beta, double eps, const Declared& shape,
                            const Loc& loc) {
  return hir_graph("rms_norm").rms_norm(x, gamma, beta, eps, shape, loc);
}

Value GraphModule::llama_decoder_block(const Values& inputs, int64_t num_heads, int64_t head_dim,
                                       int64_t num_kv_heads, double eps, MaskKind mask_kind, int64_t window,
                                       const Declared& shape, const Loc& loc) {
  ops::LlamaDecoderBlock::Attrs a{
      .num_heads = num_heads, .head_dim = head_dim, .num_kv_heads = num_kv_heads, .eps = eps};
  a.mask_kind = mask_kind;
  a.window = window;
  return block_node("llama_decoder_block", attrs_of(a), inputs, shape, loc);
}

Value GraphModule::qwen35_mtp_head(const Values& inputs, int64_t num_heads, int64_t num_kv_heads,
                                   int64_t head_dim, int64_t n_rot, double eps, const Declared& shape,
                                   const Loc& loc) {
  ops::Qwen35MtpHead::Attrs a{
      .num_heads = num_heads, .num_kv_heads = num_kv_heads, .head_dim = head_dim, .n_rot = n_rot};
  a.eps = eps;
  return block_node("qwen35_mtp_head", attrs_of(a), inputs, shape, loc);
}

}  // namespace rlx
