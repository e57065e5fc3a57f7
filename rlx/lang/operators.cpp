// Made by ./dev docs from the records of rlx/ops; see docs/operators.py.
// clang-format off
#include "rlx/lang/operators.h"

namespace rlx {

Tensor abs(const Tensor& x, const Loc& loc) { return apply<ops::Abs>({}, {x}, loc); }
Tensor activation_backward(const Tensor& x, const Tensor& dy, ops::ActivationBackward::Attrs attrs,
                           const Loc& loc) {
  return apply<ops::ActivationBackward>(std::move(attrs), {x, dy}, loc);
}
Tensor add(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Add>({}, {a, b}, loc); }
Tensor all(const Tensor& x, ops::AllOf::Attrs attrs, const Loc& loc) {
  return apply<ops::AllOf>(std::move(attrs), {x}, loc);
}
Tensor any(const Tensor& x, ops::AnyOf::Attrs attrs, const Loc& loc) {
  return apply<ops::AnyOf>(std::move(attrs), {x}, loc);
}
Tensor argmax(const Tensor& x, ops::Argmax::Attrs attrs, const Loc& loc) {
  return apply<ops::Argmax>(std::move(attrs), {x}, loc);
}
Tensor argmin(const Tensor& x, ops::Argmin::Attrs attrs, const Loc& loc) {
  return apply<ops::Argmin>(std::move(attrs), {x}, loc);
}
Tensor argsort(const Tensor& x, ops::Argsort::Attrs attrs, const Loc& loc) {
  return apply<ops::Argsort>(std::move(attrs), {x}, loc);
}
Tensor atan(const Tensor& x, const Loc& loc) { return apply<ops::Atan>({}, {x}, loc); }
std::array<Tensor, 2> attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask_or_bias,
                                const Tensor& bias, ops::Attention::Attrs attrs, const Loc& loc) {
  return apply<ops::Attention>(std::move(attrs), {q, k, v, mask_or_bias, bias}, loc);
}
Tensors attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dy,
                           const Tensor& lse, const Tensor& delta, const Tensor& mask_or_bias,
                           const Tensor& bias, ops::AttentionBackward::Attrs attrs, const Loc& loc) {
  return apply<ops::AttentionBackward>(std::move(attrs), {q, k, v, dy, lse, delta, mask_or_bias, bias}, loc);
}
Tensor axial_rope2d(const Tensor& x, ops::AxialRope2d::Attrs attrs, const Loc& loc) {
  return apply<ops::AxialRope2d>(std::move(attrs), {x}, loc);
}
Tensor batched_dense_solve(const Tensor& a, const Tensor& b, const Loc& loc) {
  return apply<ops::BatchedDenseSolve>({}, {a, b}, loc);
}
Tensor batched_gather(const Tensor& table, const Tensor& indices, ops::BatchedGather::Attrs attrs,
                      const Loc& loc) {
  return apply<ops::BatchedGather>(std::move(attrs), {table, indices}, loc);
}
Tensor bitwise_and(const Operand& a, const Operand& b, const Loc& loc) {
  return apply<ops::BitwiseAnd>({}, {a, b}, loc);
}
Tensor bitwise_not(const Tensor& x, const Loc& loc) { return apply<ops::BitwiseNot>({}, {x}, loc); }
Tensor bitwise_or(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::BitwiseOr>({}, {a, b}, loc); }
Tensor bitwise_xor(const Operand& a, const Operand& b, const Loc& loc) {
  return apply<ops::BitwiseXor>({}, {a, b}, loc);
}
Tensor cast(const Tensor& x, ops::Cast::Attrs attrs, const Loc& loc) {
  return apply<ops::Cast>(std::move(attrs), {x}, loc);
}
Tensor ceil(const Tensor& x, const Loc& loc) { return apply<ops::Ceil>({}, {x}, loc); }
Tensor cholesky(const Tensor& a, const Loc& loc) { return apply<ops::Cholesky>({}, {a}, loc); }
Tensor clamp(const Tensor& x, ops::Clamp::Attrs attrs, const Loc& loc) {
  return apply<ops::Clamp>(std::move(attrs), {x}, loc);
}
Tensor compare(const Operand& a, const Operand& b, ops::Compare::Attrs attrs, const Loc& loc) {
  return apply<ops::Compare>(std::move(attrs), {a, b}, loc);
}
Tensor complex_norm_sq(const Tensor& z, const Loc& loc) { return apply<ops::ComplexNormSq>({}, {z}, loc); }
Tensor complex_norm_sq_backward(const Tensor& z, const Tensor& g, const Loc& loc) {
  return apply<ops::ComplexNormSqBackward>({}, {z, g}, loc);
}
Tensor concat(const Tensors& parts, ops::Concat::Attrs attrs, const Loc& loc) {
  return apply<ops::Concat>(std::move(attrs), detail::with_list({}, parts), loc);
}
Tensor conjugate(const Tensor& z, const Loc& loc) { return apply<ops::Conjugate>({}, {z}, loc); }
Tensor conv(const Tensor& x, const Tensor& w, ops::Conv::Attrs attrs, const Loc& loc) {
  return apply<ops::Conv>(std::move(attrs), {x, w}, loc);
}
Tensor conv1d(const Tensor& x, const Tensor& w, ops::Conv1d::Attrs attrs, const Loc& loc) {
  return apply<ops::Conv1d>(std::move(attrs), {x, w}, loc);
}
Tensor conv2d(const Tensor& x, const Tensor& w, ops::Conv2d::Attrs attrs, const Loc& loc) {
  return apply<ops::Conv2d>(std::move(attrs), {x, w}, loc);
}
Tensor conv2d_backward_input(const Tensor& dy, const Tensor& w, ops::Conv2dBackwardInput::Attrs attrs,
                             const Loc& loc) {
  return apply<ops::Conv2dBackwardInput>(std::move(attrs), {dy, w}, loc);
}
Tensor conv2d_backward_weight(const Tensor& x, const Tensor& dy, ops::Conv2dBackwardWeight::Attrs attrs,
                              const Loc& loc) {
  return apply<ops::Conv2dBackwardWeight>(std::move(attrs), {x, dy}, loc);
}
Tensor conv3d(const Tensor& x, const Tensor& w, ops::Conv3d::Attrs attrs, const Loc& loc) {
  return apply<ops::Conv3d>(std::move(attrs), {x, w}, loc);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& w, ops::ConvTranspose1d::Attrs attrs, const Loc& loc) {
  return apply<ops::ConvTranspose1d>(std::move(attrs), {x, w}, loc);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, ops::ConvTranspose2d::Attrs attrs, const Loc& loc) {
  return apply<ops::ConvTranspose2d>(std::move(attrs), {x, w}, loc);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& w, ops::ConvTranspose3d::Attrs attrs, const Loc& loc) {
  return apply<ops::ConvTranspose3d>(std::move(attrs), {x, w}, loc);
}
Tensor cos(const Tensor& x, const Loc& loc) { return apply<ops::Cos>({}, {x}, loc); }
std::array<Tensor, 2> cummax(const Tensor& x, ops::Cummax::Attrs attrs, const Loc& loc) {
  return apply<ops::Cummax>(std::move(attrs), {x}, loc);
}
std::array<Tensor, 2> cummin(const Tensor& x, ops::Cummin::Attrs attrs, const Loc& loc) {
  return apply<ops::Cummin>(std::move(attrs), {x}, loc);
}
Tensor cumprod(const Tensor& x, ops::Cumprod::Attrs attrs, const Loc& loc) {
  return apply<ops::Cumprod>(std::move(attrs), {x}, loc);
}
Tensor cumsum(const Tensor& x, ops::Cumsum::Attrs attrs, const Loc& loc) {
  return apply<ops::Cumsum>(std::move(attrs), {x}, loc);
}
Tensor cumsum_backward(const Tensor& dy, ops::CumsumBackward::Attrs attrs, const Loc& loc) {
  return apply<ops::CumsumBackward>(std::move(attrs), {dy}, loc);
}
Tensor dense_solve(const Tensor& a, const Tensor& b, const Loc& loc) { return apply<ops::DenseSolve>({}, {a, b}, loc); }
Tensor depthwise_conv1d_causal(const Tensor& input, const Tensor& weight, const Tensor& left_pad,
                               const Loc& loc) {
  return apply<ops::DepthwiseConv1dCausal>({}, {input, weight, left_pad}, loc);
}
Tensor dequant_grouped_matmul(const Tensor& x, const Tensor& packed, const Tensor& experts,
                              ops::DequantGroupedMatmul::Attrs attrs, const Loc& loc) {
  return apply<ops::DequantGroupedMatmul>(std::move(attrs), {x, packed, experts}, loc);
}
Tensor dequant_matmul(const Tensor& x, const Tensor& w, const Tensor& scale, const Tensor& zp,
                      ops::DequantMatmul::Attrs attrs, const Loc& loc) {
  return apply<ops::DequantMatmul>(std::move(attrs), {x, w, scale, zp}, loc);
}
Tensor dequant_matmul_transposed(const Tensor& x, const Tensor& w, ops::DequantMatmulTransposed::Attrs attrs,
                                 const Loc& loc) {
  return apply<ops::DequantMatmulTransposed>(std::move(attrs), {x, w}, loc);
}
Tensor dequant_moe_weights(const Tensor& packed, ops::DequantMoeWeights::Attrs attrs, const Loc& loc) {
  return apply<ops::DequantMoeWeights>(std::move(attrs), {packed}, loc);
}
Tensor dequantize(const Tensor& q, ops::Dequantize::Attrs attrs, const Loc& loc) {
  return apply<ops::Dequantize>(std::move(attrs), {q}, loc);
}
Tensor dequantize_blocks(const Tensor& packed, ops::DequantizeBlocks::Attrs attrs, const Loc& loc) {
  return apply<ops::DequantizeBlocks>(std::move(attrs), {packed}, loc);
}
Tensor dequantize_per_channel(const Tensor& q, ops::DequantizePerChannel::Attrs attrs, const Loc& loc) {
  return apply<ops::DequantizePerChannel>(std::move(attrs), {q}, loc);
}
Tensor det(const Tensor& a, const Loc& loc) { return apply<ops::Det>({}, {a}, loc); }
Tensor div(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Div>({}, {a, b}, loc); }
Tensor dot_general(const Tensor& lhs, const Tensor& rhs, ops::DotGeneral::Attrs attrs, const Loc& loc) {
  return apply<ops::DotGeneral>(std::move(attrs), {lhs, rhs}, loc);
}
Tensor dropout(const Tensor& x, const Tensor& key, const Tensor& counter, ops::Dropout::Attrs attrs,
               const Loc& loc) {
  return apply<ops::Dropout>(std::move(attrs), {x, key, counter}, loc);
}
Tensor dynamic_slice(const Tensor& x, const Tensor& starts, ops::DynamicSlice::Attrs attrs, const Loc& loc) {
  return apply<ops::DynamicSlice>(std::move(attrs), {x, starts}, loc);
}
Tensor dynamic_update_slice(const Tensor& x, const Tensor& update, const Tensor& starts, const Loc& loc) {
  return apply<ops::DynamicUpdateSlice>({}, {x, update, starts}, loc);
}
std::array<Tensor, 2> eigh(const Tensor& a, const Loc& loc) { return apply<ops::Eigh>({}, {a}, loc); }
Tensor eigh_values(const Tensor& a, const Loc& loc) { return apply<ops::EighValues>({}, {a}, loc); }
Tensor einsum(const Tensors& rest, ops::Einsum::Attrs attrs, const Loc& loc) {
  return apply<ops::Einsum>(std::move(attrs), detail::with_list({}, rest), loc);
}
Tensor encode_blocks(const Tensor& x, ops::EncodeBlocks::Attrs attrs, const Loc& loc) {
  return apply<ops::EncodeBlocks>(std::move(attrs), {x}, loc);
}
Tensor erf(const Tensor& x, const Loc& loc) { return apply<ops::Erf>({}, {x}, loc); }
Tensor exp(const Tensor& x, const Loc& loc) { return apply<ops::Exp>({}, {x}, loc); }
Tensor expand(const Tensor& x, ops::Expand::Attrs attrs, const Loc& loc) {
  return apply<ops::Expand>(std::move(attrs), {x}, loc);
}
Tensor expm1(const Tensor& x, const Loc& loc) { return apply<ops::Expm1>({}, {x}, loc); }
std::array<Tensor, 2> fake_quantize(const Tensor& x, const Tensor& state, ops::FakeQuantize::Attrs attrs,
                                    const Loc& loc) {
  return apply<ops::FakeQuantize>(std::move(attrs), {x, state}, loc);
}
Tensor fake_quantize_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                              ops::FakeQuantizeBackward::Attrs attrs, const Loc& loc) {
  return apply<ops::FakeQuantizeBackward>(std::move(attrs), {x, scale, dy}, loc);
}
Tensor fake_quantize_lsq(const Tensor& x, const Tensor& scale, ops::FakeQuantizeLsq::Attrs attrs,
                         const Loc& loc) {
  return apply<ops::FakeQuantizeLsq>(std::move(attrs), {x, scale}, loc);
}
Tensor fake_quantize_lsq_backward_scale(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                        ops::FakeQuantizeLsqBackwardScale::Attrs attrs, const Loc& loc) {
  return apply<ops::FakeQuantizeLsqBackwardScale>(std::move(attrs), {x, scale, dy}, loc);
}
Tensor fake_quantize_lsq_backward_x(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                    ops::FakeQuantizeLsqBackwardX::Attrs attrs, const Loc& loc) {
  return apply<ops::FakeQuantizeLsqBackwardX>(std::move(attrs), {x, scale, dy}, loc);
}
Tensor fft(const Tensor& x, ops::Fft::Attrs attrs, const Loc& loc) {
  return apply<ops::Fft>(std::move(attrs), {x}, loc);
}
Tensor flip(const Tensor& x, ops::Flip::Attrs attrs, const Loc& loc) {
  return apply<ops::Flip>(std::move(attrs), {x}, loc);
}
Tensor floor(const Tensor& x, const Loc& loc) { return apply<ops::Floor>({}, {x}, loc); }
Tensor fused_attention_block(const Tensor& hidden, const Tensor& qkv_w, const Tensor& out_w,
                             const Tensor& mask, const Tensors& rest, ops::FusedAttentionBlock::Attrs attrs,
                             const Loc& loc) {
  return apply<ops::FusedAttentionBlock>(std::move(attrs), detail::with_list({hidden, qkv_w, out_w, mask}, rest), loc);
}
Tensor fused_matmul_bias_act(const Tensor& x, const Tensor& w, const Tensor& bias,
                             ops::FusedMatmulBiasAct::Attrs attrs, const Loc& loc) {
  return apply<ops::FusedMatmulBiasAct>(std::move(attrs), {x, w, bias}, loc);
}
std::array<Tensor, 2> fused_residual_ln(const Tensor& x, const Tensor& residual, const Tensor& bias_or_gamma,
                                        const Tensor& gamma_or_beta, const Tensor& beta,
                                        ops::FusedResidualLn::Attrs attrs, const Loc& loc) {
  return apply<ops::FusedResidualLn>(std::move(attrs), {x, residual, bias_or_gamma, gamma_or_beta, beta}, loc);
}
std::array<Tensor, 2> fused_residual_rms_norm(const Tensor& x, const Tensor& residual,
                                              const Tensor& bias_or_gamma, const Tensor& gamma_or_beta,
                                              const Tensor& beta, ops::FusedResidualRmsNorm::Attrs attrs,
                                              const Loc& loc) {
  return apply<ops::FusedResidualRmsNorm>(std::move(attrs), {x, residual, bias_or_gamma, gamma_or_beta, beta}, loc);
}
Tensor fused_swiglu(const Tensor& x, ops::FusedSwiglu::Attrs attrs, const Loc& loc) {
  return apply<ops::FusedSwiglu>(std::move(attrs), {x}, loc);
}
Tensor fused_transformer_layer(const Tensor& hidden, const Tensors& rest,
                               ops::FusedTransformerLayer::Attrs attrs, const Loc& loc) {
  return apply<ops::FusedTransformerLayer>(std::move(attrs), detail::with_list({hidden}, rest), loc);
}
std::array<Tensor, 2> gated_delta_net(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                                      const Tensor& beta, ops::GatedDeltaNet::Attrs attrs, const Loc& loc) {
  return apply<ops::GatedDeltaNet>(std::move(attrs), {q, k, v, g, beta}, loc);
}
std::array<Tensor, 2> gated_delta_net_carry(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& g, const Tensor& beta, const Tensor& state,
                                            ops::GatedDeltaNetCarry::Attrs attrs, const Loc& loc) {
  return apply<ops::GatedDeltaNetCarry>(std::move(attrs), {q, k, v, g, beta, state}, loc);
}
Tensor gather(const Tensor& table, const Tensor& indices, ops::Gather::Attrs attrs, const Loc& loc) {
  return apply<ops::Gather>(std::move(attrs), {table, indices}, loc);
}
Tensor gather_backward(const Tensor& dy, const Tensor& indices, ops::GatherBackward::Attrs attrs,
                       const Loc& loc) {
  return apply<ops::GatherBackward>(std::move(attrs), {dy, indices}, loc);
}
std::array<Tensor, 3> gaussian_splat_lists(const Tensor& positions, const Tensor& scales,
                                           const Tensor& rotations, const Tensor& opacities,
                                           const Tensor& meta, ops::GaussianSplatLists::Attrs attrs,
                                           const Loc& loc) {
  return apply<ops::GaussianSplatLists>(std::move(attrs), {positions, scales, rotations, opacities, meta}, loc);
}
std::array<Tensor, 8> gaussian_splat_prepare(const Tensor& positions, const Tensor& scales,
                                             const Tensor& rotations, const Tensor& opacities,
                                             const Tensor& colors, const Tensor& sh, const Tensor& meta,
                                             ops::GaussianSplatPrepare::Attrs attrs, const Loc& loc) {
  return apply<ops::GaussianSplatPrepare>(std::move(attrs), {positions, scales, rotations, opacities, colors, sh, meta}, loc);
}
std::array<Tensor, 2> gaussian_splat_rasterize(const Tensor& color, const Tensor& opacity,
                                               const Tensor& origin, const Tensor& transform,
                                               const Tensor& rays, const Tensor& ids, const Tensor& ranges,
                                               const Tensor& background,
                                               ops::GaussianSplatRasterize::Attrs attrs, const Loc& loc) {
  return apply<ops::GaussianSplatRasterize>(std::move(attrs), {color, opacity, origin, transform, rays, ids, ranges, background}, loc);
}
std::array<Tensor, 3> gaussian_splat_render(const Tensor& positions, const Tensor& scales,
                                            const Tensor& rotations, const Tensor& opacities,
                                            const Tensor& colors, const Tensor& sh, const Tensor& meta,
                                            ops::GaussianSplatRender::Attrs attrs, const Loc& loc) {
  return apply<ops::GaussianSplatRender>(std::move(attrs), {positions, scales, rotations, opacities, colors, sh, meta}, loc);
}
Tensor gelu(const Tensor& x, const Loc& loc) { return apply<ops::Gelu>({}, {x}, loc); }
Tensor gelu_approx(const Tensor& x, const Loc& loc) { return apply<ops::GeluApprox>({}, {x}, loc); }
Tensor group_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, ops::GroupNorm::Attrs attrs,
                  const Loc& loc) {
  return apply<ops::GroupNorm>(std::move(attrs), {x, gamma, beta}, loc);
}
Tensor group_norm_backward_beta(const Tensor& x, const Tensor& dy, ops::GroupNormBackwardBeta::Attrs attrs,
                                const Loc& loc) {
  return apply<ops::GroupNormBackwardBeta>(std::move(attrs), {x, dy}, loc);
}
Tensor group_norm_backward_gamma(const Tensor& x, const Tensor& dy, ops::GroupNormBackwardGamma::Attrs attrs,
                                 const Loc& loc) {
  return apply<ops::GroupNormBackwardGamma>(std::move(attrs), {x, dy}, loc);
}
Tensor group_norm_backward_input(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                                 ops::GroupNormBackwardInput::Attrs attrs, const Loc& loc) {
  return apply<ops::GroupNormBackwardInput>(std::move(attrs), {x, gamma, beta, dy}, loc);
}
Tensor grouped_matmul(const Tensor& x, const Tensor& w, const Tensor& e, const Loc& loc) {
  return apply<ops::GroupedMatmul>({}, {x, w, e}, loc);
}
Tensor grouped_outer(const Tensor& x, const Tensor& y, const Tensor& e, ops::GroupedOuter::Attrs attrs,
                     const Loc& loc) {
  return apply<ops::GroupedOuter>(std::move(attrs), {x, y, e}, loc);
}
Tensor imag(const Tensor& z, const Loc& loc) { return apply<ops::ImagPart>({}, {z}, loc); }
Tensor inverse(const Tensor& a, const Loc& loc) { return apply<ops::Inverse>({}, {a}, loc); }
Tensor is_finite(const Tensor& x, const Loc& loc) { return apply<ops::IsFinite>({}, {x}, loc); }
Tensor is_nan(const Tensor& x, const Loc& loc) { return apply<ops::IsNan>({}, {x}, loc); }
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, ops::LayerNorm::Attrs attrs,
                  const Loc& loc) {
  return apply<ops::LayerNorm>(std::move(attrs), {x, gamma, beta}, loc);
}
Tensor layer_norm2d(const Tensor& x, const Tensor& gamma, const Tensor& beta, ops::LayerNorm2d::Attrs attrs,
                    const Loc& loc) {
  return apply<ops::LayerNorm2d>(std::move(attrs), {x, gamma, beta}, loc);
}
Tensor layer_norm_backward_gamma(const Tensor& x, const Tensor& dy, ops::LayerNormBackwardGamma::Attrs attrs,
                                 const Loc& loc) {
  return apply<ops::LayerNormBackwardGamma>(std::move(attrs), {x, dy}, loc);
}
Tensor layer_norm_backward_input(const Tensor& x, const Tensor& gamma, const Tensor& dy,
                                 ops::LayerNormBackwardInput::Attrs attrs, const Loc& loc) {
  return apply<ops::LayerNormBackwardInput>(std::move(attrs), {x, gamma, dy}, loc);
}
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, ops::LinearBlock::Attrs attrs,
              const Loc& loc) {
  return apply<ops::LinearBlock>(std::move(attrs), {x, w, bias}, loc);
}
Tensor linear_fused(const Tensor& x, const Tensor& w, const Tensor& bias, ops::LinearFusedBlock::Attrs attrs,
                    const Loc& loc) {
  return apply<ops::LinearFusedBlock>(std::move(attrs), {x, w, bias}, loc);
}
Tensor linear_recurrence(const Tensor& a, const Tensor& b, ops::LinearRecurrence::Attrs attrs,
                         const Loc& loc) {
  return apply<ops::LinearRecurrence>(std::move(attrs), {a, b}, loc);
}
Tensor llama_decoder_block(const Tensor& x, const Tensor& ln1_g, const Tensor& ln1_b, const Tensor& q_w,
                           const Tensor& k_w, const Tensor& v_w, const Tensor& o_w, const Tensor& ln2_g,
                           const Tensor& ln2_b, const Tensor& up_w, const Tensor& gate_w,
                           const Tensor& down_w, const Tensor& cos, const Tensor& sin, const Tensor& mask,
                           ops::LlamaDecoderBlock::Attrs attrs, const Loc& loc) {
  return apply<ops::LlamaDecoderBlock>(std::move(attrs), {x, ln1_g, ln1_b, q_w, k_w, v_w, o_w, ln2_g, ln2_b, up_w, gate_w, down_w, cos, sin, mask}, loc);
}
Tensor log(const Tensor& x, const Loc& loc) { return apply<ops::Log>({}, {x}, loc); }
Tensor log1p(const Tensor& x, const Loc& loc) { return apply<ops::Log1p>({}, {x}, loc); }
Tensor log_softmax(const Tensor& x, ops::LogSoftmax::Attrs attrs, const Loc& loc) {
  return apply<ops::LogSoftmax>(std::move(attrs), {x}, loc);
}
Tensor logdet(const Tensor& a, const Loc& loc) { return apply<ops::Logdet>({}, {a}, loc); }
Tensor logical_and(const Operand& a, const Operand& b, const Loc& loc) {
  return apply<ops::LogicalAnd>({}, {a, b}, loc);
}
Tensor logical_not(const Tensor& x, const Loc& loc) { return apply<ops::LogicalNot>({}, {x}, loc); }
Tensor logical_or(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::LogicalOr>({}, {a, b}, loc); }
Tensor logical_xor(const Operand& a, const Operand& b, const Loc& loc) {
  return apply<ops::LogicalXor>({}, {a, b}, loc);
}
Tensor logsumexp(const Tensor& x, ops::Logsumexp::Attrs attrs, const Loc& loc) {
  return apply<ops::Logsumexp>(std::move(attrs), {x}, loc);
}
Tensor lora_matmul(const Tensor& x, const Tensor& w, const Tensor& a, const Tensor& b,
                   ops::LoraMatmul::Attrs attrs, const Loc& loc) {
  return apply<ops::LoraMatmul>(std::move(attrs), {x, w, a, b}, loc);
}
Tensor make_complex(const Operand& re, const Operand& im, const Loc& loc) {
  return apply<ops::MakeComplex>({}, {re, im}, loc);
}
Tensor matmul(const Tensor& lhs, const Tensor& rhs, const Loc& loc) { return apply<ops::Matmul>({}, {lhs, rhs}, loc); }
Tensor max(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Max>({}, {a, b}, loc); }
Tensor maxpool2d_backward(const Tensor& x, const Tensor& dy, ops::MaxPool2dBackward::Attrs attrs,
                          const Loc& loc) {
  return apply<ops::MaxPool2dBackward>(std::move(attrs), {x, dy}, loc);
}
Tensor min(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Min>({}, {a, b}, loc); }
Tensor mul(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Mul>({}, {a, b}, loc); }
Tensor narrow(const Tensor& x, ops::Narrow::Attrs attrs, const Loc& loc) {
  return apply<ops::Narrow>(std::move(attrs), {x}, loc);
}
Tensor neg(const Tensor& x, const Loc& loc) { return apply<ops::Neg>({}, {x}, loc); }
Tensor one_hot(const Tensor& indices, ops::OneHot::Attrs attrs, const Loc& loc) {
  return apply<ops::OneHot>(std::move(attrs), {indices}, loc);
}
Tensor pad(const Tensor& x, ops::Pad::Attrs attrs, const Loc& loc) {
  return apply<ops::Pad>(std::move(attrs), {x}, loc);
}
Tensor paged_attention(const Tensor& q, const Tensor& k, const Tensor& pages, const Tensor& positions,
                       const Tensor& v, ops::PagedAttention::Attrs attrs, const Loc& loc) {
  return apply<ops::PagedAttention>(std::move(attrs), {q, k, pages, positions, v}, loc);
}
Tensor pool(const Tensor& x, ops::Pool::Attrs attrs, const Loc& loc) {
  return apply<ops::Pool>(std::move(attrs), {x}, loc);
}
Tensor pow(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Pow>({}, {a, b}, loc); }
Tensor q_conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, ops::QConv2d::Attrs attrs,
                const Loc& loc) {
  return apply<ops::QConv2d>(std::move(attrs), {x, w, bias}, loc);
}
Tensor q_matmul(const Tensor& x, const Tensor& w, const Tensor& bias, ops::QMatmul::Attrs attrs,
                const Loc& loc) {
  return apply<ops::QMatmul>(std::move(attrs), {x, w, bias}, loc);
}
std::array<Tensor, 2> qr(const Tensor& a, const Loc& loc) { return apply<ops::Qr>({}, {a}, loc); }
Tensor quantize(const Tensor& x, ops::Quantize::Attrs attrs, const Loc& loc) {
  return apply<ops::Quantize>(std::move(attrs), {x}, loc);
}
Tensor quantize_per_channel(const Tensor& x, ops::QuantizePerChannel::Attrs attrs, const Loc& loc) {
  return apply<ops::QuantizePerChannel>(std::move(attrs), {x}, loc);
}
Tensor qwen35_mtp_head(const Tensor& h_pre_norm, const Tensor& input_ids, const Tensor& cos,
                       const Tensor& sin, const Tensor& last_token_idx, const Tensor& embed_w,
                       const Tensor& hnorm_w, const Tensor& hnorm_b, const Tensor& enorm_w,
                       const Tensor& enorm_b, const Tensor& eh_w, const Tensor& attn_norm_w,
                       const Tensor& attn_norm_b, const Tensor& q_gate_w, const Tensor& k_w,
                       const Tensor& v_w, const Tensor& q_norm_w, const Tensor& q_norm_b,
                       const Tensor& k_norm_w, const Tensor& k_norm_b, const Tensor& o_w,
                       const Tensor& post_norm_w, const Tensor& post_norm_b, const Tensor& up_w,
                       const Tensor& gate_w, const Tensor& down_w, const Tensor& head_norm_w,
                       const Tensor& head_norm_b, const Tensor& lm_head_w, ops::Qwen35MtpHead::Attrs attrs,
                       const Loc& loc) {
  return apply<ops::Qwen35MtpHead>(std::move(attrs), {h_pre_norm, input_ids, cos, sin, last_token_idx, embed_w, hnorm_w, hnorm_b, enorm_w, enorm_b, eh_w, attn_norm_w, attn_norm_b, q_gate_w, k_w, v_w, q_norm_w, q_norm_b, k_norm_w, k_norm_b, o_w, post_norm_w, post_norm_b, up_w, gate_w, down_w, head_norm_w, head_norm_b, lm_head_w}, loc);
}
Tensor random_bits(const Tensor& key, const Tensor& counter, ops::RandomBits::Attrs attrs, const Loc& loc) {
  return apply<ops::RandomBits>(std::move(attrs), {key, counter}, loc);
}
Tensor random_normal(const Tensor& key, const Tensor& counter, ops::RandomNormal::Attrs attrs,
                     const Loc& loc) {
  return apply<ops::RandomNormal>(std::move(attrs), {key, counter}, loc);
}
Tensor random_uniform(const Tensor& key, const Tensor& counter, ops::RandomUniform::Attrs attrs,
                      const Loc& loc) {
  return apply<ops::RandomUniform>(std::move(attrs), {key, counter}, loc);
}
Tensor real(const Tensor& z, const Loc& loc) { return apply<ops::RealPart>({}, {z}, loc); }
Tensor reduce(const Tensor& x, ops::Reduce::Attrs attrs, const Loc& loc) {
  return apply<ops::Reduce>(std::move(attrs), {x}, loc);
}
Tensor relu(const Tensor& x, const Loc& loc) { return apply<ops::Relu>({}, {x}, loc); }
Tensor relu_backward(const Tensor& x, const Tensor& dy, const Loc& loc) {
  return apply<ops::ReluBackward>({}, {x, dy}, loc);
}
Tensor rem(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Rem>({}, {a, b}, loc); }
Tensor reshape(const Tensor& x, ops::Reshape::Attrs attrs, const Loc& loc) {
  return apply<ops::Reshape>(std::move(attrs), {x}, loc);
}
std::array<Tensor, 2> residual_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma,
                                        const Tensor& beta, ops::ResidualRmsNorm::Attrs attrs,
                                        const Loc& loc) {
  return apply<ops::ResidualRmsNorm>(std::move(attrs), {x, residual, gamma, beta}, loc);
}
Tensor resize(const Tensor& x, ops::Resize::Attrs attrs, const Loc& loc) {
  return apply<ops::Resize>(std::move(attrs), {x}, loc);
}
Tensor resize_backward(const Tensor& dy, ops::ResizeBackward::Attrs attrs, const Loc& loc) {
  return apply<ops::ResizeBackward>(std::move(attrs), {dy}, loc);
}
Tensor resize_nearest2x(const Tensor& x, const Loc& loc) { return apply<ops::ResizeNearest2x>({}, {x}, loc); }
Tensor rms_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, ops::RmsNorm::Attrs attrs,
                const Loc& loc) {
  return apply<ops::RmsNorm>(std::move(attrs), {x, gamma, beta}, loc);
}
Tensor rms_norm_backward_beta(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                              ops::RmsNormBackwardBeta::Attrs attrs, const Loc& loc) {
  return apply<ops::RmsNormBackwardBeta>(std::move(attrs), {x, gamma, beta, dy}, loc);
}
Tensor rms_norm_backward_gamma(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                               ops::RmsNormBackwardGamma::Attrs attrs, const Loc& loc) {
  return apply<ops::RmsNormBackwardGamma>(std::move(attrs), {x, gamma, beta, dy}, loc);
}
Tensor rms_norm_backward_input(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                               ops::RmsNormBackwardInput::Attrs attrs, const Loc& loc) {
  return apply<ops::RmsNormBackwardInput>(std::move(attrs), {x, gamma, beta, dy}, loc);
}
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions,
            ops::Rope::Attrs attrs, const Loc& loc) {
  return apply<ops::Rope>(std::move(attrs), {x, cos, sin, positions}, loc);
}
Tensor rope_backward(const Tensor& dy, const Tensor& cos, const Tensor& sin, const Tensor& positions,
                     ops::RopeBackward::Attrs attrs, const Loc& loc) {
  return apply<ops::RopeBackward>(std::move(attrs), {dy, cos, sin, positions}, loc);
}
Tensor round(const Tensor& x, const Loc& loc) { return apply<ops::Round>({}, {x}, loc); }
Tensor rsqrt(const Tensor& x, const Loc& loc) { return apply<ops::Rsqrt>({}, {x}, loc); }
Tensor sample(const Tensor& logits, const Tensor& key, const Tensor& counter, ops::SampleTokens::Attrs attrs,
              const Loc& loc) {
  return apply<ops::SampleTokens>(std::move(attrs), {logits, key, counter}, loc);
}
Tensor scaled_matmul(const Tensor& x, const Tensor& w, const Tensor& x_scale, const Tensor& w_scale,
                     ops::ScaledMatmul::Attrs attrs, const Loc& loc) {
  return apply<ops::ScaledMatmul>(std::move(attrs), {x, w, x_scale, w_scale}, loc);
}
Tensor scatter(const Tensor& base, const Tensor& indices, const Tensor& updates, ops::Scatter::Attrs attrs,
               const Loc& loc) {
  return apply<ops::Scatter>(std::move(attrs), {base, indices, updates}, loc);
}
Tensor scatter_add(const Tensor& updates, const Tensor& indices, ops::ScatterAdd::Attrs attrs,
                   const Loc& loc) {
  return apply<ops::ScatterAdd>(std::move(attrs), {updates, indices}, loc);
}
Tensor selective_scan(const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b, const Tensor& c,
                      ops::SelectiveScan::Attrs attrs, const Loc& loc) {
  return apply<ops::SelectiveScan>(std::move(attrs), {x, delta, a, b, c}, loc);
}
std::array<Tensor, 2> shared_linear_pair(const Tensor& x, const Tensor& w_first, const Tensor& w_second,
                                         const Loc& loc) {
  return apply<ops::SharedLinearPair>({}, {x, w_first, w_second}, loc);
}
Tensor shift_left(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::ShiftLeft>({}, {a, b}, loc); }
Tensor shift_right(const Operand& a, const Operand& b, const Loc& loc) {
  return apply<ops::ShiftRight>({}, {a, b}, loc);
}
Tensor sigmoid(const Tensor& x, const Loc& loc) { return apply<ops::Sigmoid>({}, {x}, loc); }
Tensor sign(const Tensor& x, const Loc& loc) { return apply<ops::Sign>({}, {x}, loc); }
Tensor silu(const Tensor& x, const Loc& loc) { return apply<ops::Silu>({}, {x}, loc); }
Tensor sin(const Tensor& x, const Loc& loc) { return apply<ops::Sin>({}, {x}, loc); }
Tensor slice(const Tensor& x, ops::Slice::Attrs attrs, const Loc& loc) {
  return apply<ops::Slice>(std::move(attrs), {x}, loc);
}
std::array<Tensor, 2> slogdet(const Tensor& a, const Loc& loc) { return apply<ops::Slogdet>({}, {a}, loc); }
Tensor softmax(const Tensor& x, ops::Softmax::Attrs attrs, const Loc& loc) {
  return apply<ops::Softmax>(std::move(attrs), {x}, loc);
}
Tensor softmax_cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& d_loss,
                                      const Loc& loc) {
  return apply<ops::SoftmaxCrossEntropyBackward>({}, {logits, labels, d_loss}, loc);
}
Tensor softmax_cross_entropy_with_logits(const Tensor& logits, const Tensor& labels, const Loc& loc) {
  return apply<ops::SoftmaxCrossEntropyWithLogits>({}, {logits, labels}, loc);
}
Tensor softplus(const Tensor& x, const Loc& loc) { return apply<ops::Softplus>({}, {x}, loc); }
std::array<Tensor, 2> sort(const Tensor& x, ops::Sort::Attrs attrs, const Loc& loc) {
  return apply<ops::Sort>(std::move(attrs), {x}, loc);
}
Tensor sqrt(const Tensor& x, const Loc& loc) { return apply<ops::Sqrt>({}, {x}, loc); }
Tensor stop_gradient(const Tensor& x, const Loc& loc) { return apply<ops::StopGradient>({}, {x}, loc); }
Tensor sub(const Operand& a, const Operand& b, const Loc& loc) { return apply<ops::Sub>({}, {a, b}, loc); }
std::array<Tensor, 3> svd(const Tensor& a, const Loc& loc) { return apply<ops::Svd>({}, {a}, loc); }
Tensor svd_values(const Tensor& a, const Loc& loc) { return apply<ops::SvdValues>({}, {a}, loc); }
Tensor swiglu_ffn(const Tensor& x, const Tensor& up_w, const Tensor& gate_w, const Tensor& down_w,
                  const Loc& loc) {
  return apply<ops::SwigluFfn>({}, {x, up_w, gate_w, down_w}, loc);
}
Tensor take_along(const Tensor& x, const Tensor& indices, ops::TakeAlong::Attrs attrs, const Loc& loc) {
  return apply<ops::TakeAlong>(std::move(attrs), {x, indices}, loc);
}
Tensor tan(const Tensor& x, const Loc& loc) { return apply<ops::Tan>({}, {x}, loc); }
Tensor tanh(const Tensor& x, const Loc& loc) { return apply<ops::Tanh>({}, {x}, loc); }
std::array<Tensor, 2> top_k(const Tensor& x, ops::TopK::Attrs attrs, const Loc& loc) {
  return apply<ops::TopK>(std::move(attrs), {x}, loc);
}
Tensor transpose(const Tensor& x, ops::Transpose::Attrs attrs, const Loc& loc) {
  return apply<ops::Transpose>(std::move(attrs), {x}, loc);
}
Tensor triangular_solve(const Tensor& a, const Tensor& b, ops::TriangularSolve::Attrs attrs, const Loc& loc) {
  return apply<ops::TriangularSolve>(std::move(attrs), {a, b}, loc);
}
Tensor variance(const Tensor& x, ops::Variance::Attrs attrs, const Loc& loc) {
  return apply<ops::Variance>(std::move(attrs), {x}, loc);
}
Tensor where(const Operand& cond, const Operand& a, const Operand& b, const Loc& loc) {
  return apply<ops::Where>({}, {cond, a, b}, loc);
}
Tensor windows(const Tensor& x, ops::Windows::Attrs attrs, const Loc& loc) {
  return apply<ops::Windows>(std::move(attrs), {x}, loc);
}
Tensor windows_sum(const Tensor& x, ops::WindowsSum::Attrs attrs, const Loc& loc) {
  return apply<ops::WindowsSum>(std::move(attrs), {x}, loc);
}

}  // namespace rlx
