// Every operator as a free function of tensors: operands, then attributes by name, then the caller's place.
//
//   const Tensor y = einsum({a, b}, {.equation = "ij,jk->ik"});
//   const auto [u, s, vt] = svd(a);
//   const auto [values, indices] = top_k(x, {.k = 5});
//
// An operand left out is an empty tensor. What each means and takes: docs/ops.md.
// Made by ./dev docs from the records of rlx/ops; see docs/operators.py.
// clang-format off
#pragma once

#include <array>

#include "rlx/lang/apply.h"
#include "rlx/ops/all.h"

namespace rlx {

/// Absolute value.
Tensor abs(const Tensor& x, const Loc& loc = Loc::current());
/// Gradient of an activation.
Tensor activation_backward(const Tensor& x, const Tensor& dy, ops::ActivationBackward::Attrs attrs = {},
                           const Loc& loc = Loc::current());
/// Sum of two tensors.
Tensor add(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Whether every condition holds.
Tensor all(const Tensor& x, ops::AllOf::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Whether at least one condition holds.
Tensor any(const Tensor& x, ops::AnyOf::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Position of the largest element along an axis.
Tensor argmax(const Tensor& x, ops::Argmax::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Position of the smallest element along an axis.
Tensor argmin(const Tensor& x, ops::Argmin::Attrs attrs = {}, const Loc& loc = Loc::current());
/// The order of elements along an axis.
Tensor argsort(const Tensor& x, ops::Argsort::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Arc tangent.
Tensor atan(const Tensor& x, const Loc& loc = Loc::current());
/// Scaled dot-product attention.
std::array<Tensor, 2> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                const Tensor& mask_or_bias = {}, const Tensor& bias = {},
                                ops::Attention::Attrs attrs = {}, const Loc& loc = Loc::current());
/// All gradients of attention from its log-sum-exp.
Tensors attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dy,
                           const Tensor& lse, const Tensor& delta, const Tensor& mask_or_bias = {},
                           const Tensor& bias = {}, ops::AttentionBackward::Attrs attrs = {},
                           const Loc& loc = Loc::current());
/// Rotary encoding of a grid: half the lanes by column, half by row.
Tensor axial_rope2d(const Tensor& x, ops::AxialRope2d::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Solutions of square linear systems, one per batch entry.
Tensor batched_dense_solve(const Tensor& a, const Tensor& b, const Loc& loc = Loc::current());
/// Slices along an axis, with indices per batch.
Tensor batched_gather(const Tensor& table, const Tensor& indices, ops::BatchedGather::Attrs attrs = {},
                      const Loc& loc = Loc::current());
/// Bits set in both integers.
Tensor bitwise_and(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// All bits inverted.
Tensor bitwise_not(const Tensor& x, const Loc& loc = Loc::current());
/// Bits set in at least one integer.
Tensor bitwise_or(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Bits set in exactly one integer.
Tensor bitwise_xor(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Conversion to another element type.
Tensor cast(const Tensor& x, ops::Cast::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Smallest whole number not below x.
Tensor ceil(const Tensor& x, const Loc& loc = Loc::current());
/// Lower triangular factor of positive definite matrices.
Tensor cholesky(const Tensor& a, const Loc& loc = Loc::current());
/// Elements limited to a range.
Tensor clamp(const Tensor& x, ops::Clamp::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Comparison of two tensors.
Tensor compare(const Operand& a, const Operand& b, ops::Compare::Attrs attrs = {},
               const Loc& loc = Loc::current());
/// Squared modulus of a complex number.
Tensor complex_norm_sq(const Tensor& z, const Loc& loc = Loc::current());
/// Gradient of complex_norm_sq.
Tensor complex_norm_sq_backward(const Tensor& z, const Tensor& g, const Loc& loc = Loc::current());
/// Tensors joined along one axis.
Tensor concat(const Tensors& parts, ops::Concat::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Complex conjugate.
Tensor conjugate(const Tensor& z, const Loc& loc = Loc::current());
/// Convolution over one to three axes, in its general form.
Tensor conv(const Tensor& x, const Tensor& w, ops::Conv::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Convolution along one axis, [N, C, L].
Tensor conv1d(const Tensor& x, const Tensor& w, ops::Conv1d::Attrs attrs = {},
              const Loc& loc = Loc::current());
/// Convolution of images, [N, C, H, W].
Tensor conv2d(const Tensor& x, const Tensor& w, ops::Conv2d::Attrs attrs = {},
              const Loc& loc = Loc::current());
/// Gradient of conv2d in its input.
Tensor conv2d_backward_input(const Tensor& dy, const Tensor& w, ops::Conv2dBackwardInput::Attrs attrs = {},
                             const Loc& loc = Loc::current());
/// Gradient of conv2d in its weight.
Tensor conv2d_backward_weight(const Tensor& x, const Tensor& dy, ops::Conv2dBackwardWeight::Attrs attrs = {},
                              const Loc& loc = Loc::current());
/// Convolution of volumes, [N, C, D, H, W].
Tensor conv3d(const Tensor& x, const Tensor& w, ops::Conv3d::Attrs attrs = {},
              const Loc& loc = Loc::current());
/// Transposed convolution along one axis, [N, C, L].
Tensor conv_transpose1d(const Tensor& x, const Tensor& w, ops::ConvTranspose1d::Attrs attrs = {},
                        const Loc& loc = Loc::current());
/// Transposed convolution of images, [N, C, H, W].
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, ops::ConvTranspose2d::Attrs attrs = {},
                        const Loc& loc = Loc::current());
/// Transposed convolution of volumes, [N, C, D, H, W].
Tensor conv_transpose3d(const Tensor& x, const Tensor& w, ops::ConvTranspose3d::Attrs attrs = {},
                        const Loc& loc = Loc::current());
/// Cosine.
Tensor cos(const Tensor& x, const Loc& loc = Loc::current());
/// Running maximum along an axis, and where it is.
std::array<Tensor, 2> cummax(const Tensor& x, ops::Cummax::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Running minimum along an axis, and where it is.
std::array<Tensor, 2> cummin(const Tensor& x, ops::Cummin::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Running product along one axis.
Tensor cumprod(const Tensor& x, ops::Cumprod::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Running sum along one axis.
Tensor cumsum(const Tensor& x, ops::Cumsum::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of cumsum.
Tensor cumsum_backward(const Tensor& dy, ops::CumsumBackward::Attrs attrs = {},
                       const Loc& loc = Loc::current());
/// Solution of one square linear system.
Tensor dense_solve(const Tensor& a, const Tensor& b, const Loc& loc = Loc::current());
/// Causal convolution of each channel along the sequence.
Tensor depthwise_conv1d_causal(const Tensor& input, const Tensor& weight, const Tensor& left_pad,
                               const Loc& loc = Loc::current());
/// Product of each row with the packed weights of its expert.
Tensor dequant_grouped_matmul(const Tensor& x, const Tensor& packed, const Tensor& experts,
                              ops::DequantGroupedMatmul::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Matrix product with quantised weights.
Tensor dequant_matmul(const Tensor& x, const Tensor& w, const Tensor& scale = {}, const Tensor& zp = {},
                      ops::DequantMatmul::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Matrix product with quantised weights transposed.
Tensor dequant_matmul_transposed(const Tensor& x, const Tensor& w,
                                 ops::DequantMatmulTransposed::Attrs attrs = {},
                                 const Loc& loc = Loc::current());
/// Packed expert weights decoded to one tensor.
Tensor dequant_moe_weights(const Tensor& packed, ops::DequantMoeWeights::Attrs attrs = {},
                           const Loc& loc = Loc::current());
/// i8 codes to f32.
Tensor dequantize(const Tensor& q, ops::Dequantize::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Packed weight codes decoded to numbers.
Tensor dequantize_blocks(const Tensor& packed, ops::DequantizeBlocks::Attrs attrs = {},
                         const Loc& loc = Loc::current());
/// i8 codes to f32, a scale per channel.
Tensor dequantize_per_channel(const Tensor& q, ops::DequantizePerChannel::Attrs attrs = {},
                              const Loc& loc = Loc::current());
/// Determinant of square matrices.
Tensor det(const Tensor& a, const Loc& loc = Loc::current());
/// Quotient of two tensors.
Tensor div(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Contraction over any axes, batched.
Tensor dot_general(const Tensor& lhs, const Tensor& rhs, ops::DotGeneral::Attrs attrs = {},
                   const Loc& loc = Loc::current());
/// Elements set to zero at random, the others scaled up.
Tensor dropout(const Tensor& x, const Tensor& key, const Tensor& counter, ops::Dropout::Attrs attrs = {},
               const Loc& loc = Loc::current());
/// A box at a place given at run time.
Tensor dynamic_slice(const Tensor& x, const Tensor& starts, ops::DynamicSlice::Attrs attrs = {},
                     const Loc& loc = Loc::current());
/// A tensor with a box replaced, at a place given at run time.
Tensor dynamic_update_slice(const Tensor& x, const Tensor& update, const Tensor& starts,
                            const Loc& loc = Loc::current());
/// Eigen decomposition of symmetric or Hermitian matrices.
std::array<Tensor, 2> eigh(const Tensor& a, const Loc& loc = Loc::current());
/// Eigenvalues of symmetric or Hermitian matrices.
Tensor eigh_values(const Tensor& a, const Loc& loc = Loc::current());
/// Sum of products in index notation.
Tensor einsum(const Tensors& rest, ops::Einsum::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Numbers encoded in blocks of few bits.
Tensor encode_blocks(const Tensor& x, ops::EncodeBlocks::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Error function.
Tensor erf(const Tensor& x, const Loc& loc = Loc::current());
/// Exponential.
Tensor exp(const Tensor& x, const Loc& loc = Loc::current());
/// Broadcast to given extents.
Tensor expand(const Tensor& x, ops::Expand::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Exponential minus one, exact near 0.
Tensor expm1(const Tensor& x, const Loc& loc = Loc::current());
/// Rounding to a few bits with a straight-through gradient.
std::array<Tensor, 2> fake_quantize(const Tensor& x, const Tensor& state = {},
                                    ops::FakeQuantize::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of fake_quantize at the scale it used.
Tensor fake_quantize_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                              ops::FakeQuantizeBackward::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Rounding to a few bits with a learned scale.
Tensor fake_quantize_lsq(const Tensor& x, const Tensor& scale, ops::FakeQuantizeLsq::Attrs attrs = {},
                         const Loc& loc = Loc::current());
/// Gradient of fake_quantize_lsq in its scale.
Tensor fake_quantize_lsq_backward_scale(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                        ops::FakeQuantizeLsqBackwardScale::Attrs attrs = {},
                                        const Loc& loc = Loc::current());
/// Gradient of fake_quantize_lsq in x.
Tensor fake_quantize_lsq_backward_x(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                    ops::FakeQuantizeLsqBackwardX::Attrs attrs = {},
                                    const Loc& loc = Loc::current());
/// Discrete Fourier transform along the last axis.
Tensor fft(const Tensor& x, ops::Fft::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Order of elements reversed along axes.
Tensor flip(const Tensor& x, ops::Flip::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Largest whole number not above x.
Tensor floor(const Tensor& x, const Loc& loc = Loc::current());
/// Projection to q, k, v, masked attention, projection back.
Tensor fused_attention_block(const Tensor& hidden, const Tensor& qkv_w, const Tensor& out_w,
                             const Tensor& mask, const Tensors& rest,
                             ops::FusedAttentionBlock::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Matrix product, bias and activation.
Tensor fused_matmul_bias_act(const Tensor& x, const Tensor& w, const Tensor& bias,
                             ops::FusedMatmulBiasAct::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Residual sum, and its layer norm over the last axis.
std::array<Tensor, 2> fused_residual_ln(const Tensor& x, const Tensor& residual, const Tensor& bias_or_gamma,
                                        const Tensor& gamma_or_beta, const Tensor& beta = {},
                                        ops::FusedResidualLn::Attrs attrs = {},
                                        const Loc& loc = Loc::current());
/// Residual sum, and its RMS norm over the last axis.
std::array<Tensor, 2> fused_residual_rms_norm(const Tensor& x, const Tensor& residual,
                                              const Tensor& bias_or_gamma, const Tensor& gamma_or_beta,
                                              const Tensor& beta = {},
                                              ops::FusedResidualRmsNorm::Attrs attrs = {},
                                              const Loc& loc = Loc::current());
/// Gated unit of the two halves of the last axis.
Tensor fused_swiglu(const Tensor& x, ops::FusedSwiglu::Attrs attrs = {}, const Loc& loc = Loc::current());
/// A post-norm encoder layer as in BERT.
Tensor fused_transformer_layer(const Tensor& hidden, const Tensors& rest,
                               ops::FusedTransformerLayer::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gated delta rule from an empty state.
std::array<Tensor, 2> gated_delta_net(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                                      const Tensor& beta, ops::GatedDeltaNet::Attrs attrs = {},
                                      const Loc& loc = Loc::current());
/// Gated delta rule from a given state.
std::array<Tensor, 2> gated_delta_net_carry(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& g, const Tensor& beta, const Tensor& state,
                                            ops::GatedDeltaNetCarry::Attrs attrs = {},
                                            const Loc& loc = Loc::current());
/// Slices along an axis, picked by indices (take).
Tensor gather(const Tensor& table, const Tensor& indices, ops::Gather::Attrs attrs = {},
              const Loc& loc = Loc::current());
/// Gradient of gather with respect to the table.
Tensor gather_backward(const Tensor& dy, const Tensor& indices, ops::GatherBackward::Attrs attrs = {},
                       const Loc& loc = Loc::current());
/// The splats that each tile of the picture sees, nearest first.
std::array<Tensor, 3> gaussian_splat_lists(const Tensor& positions, const Tensor& scales,
                                           const Tensor& rotations, const Tensor& opacities,
                                           const Tensor& meta, ops::GaussianSplatLists::Attrs attrs = {},
                                           const Loc& loc = Loc::current());
/// Splats as seen by a camera, ready to be drawn.
std::array<Tensor, 8> gaussian_splat_prepare(const Tensor& positions, const Tensor& scales,
                                             const Tensor& rotations, const Tensor& opacities,
                                             const Tensor& colors, const Tensor& sh, const Tensor& meta,
                                             ops::GaussianSplatPrepare::Attrs attrs = {},
                                             const Loc& loc = Loc::current());
/// Prepared splats blended front to back.
std::array<Tensor, 2> gaussian_splat_rasterize(const Tensor& color, const Tensor& opacity,
                                               const Tensor& origin, const Tensor& transform,
                                               const Tensor& rays, const Tensor& ids, const Tensor& ranges,
                                               const Tensor& background,
                                               ops::GaussianSplatRasterize::Attrs attrs = {},
                                               const Loc& loc = Loc::current());
/// A picture of Gaussian splats.
std::array<Tensor, 3> gaussian_splat_render(const Tensor& positions, const Tensor& scales,
                                            const Tensor& rotations, const Tensor& opacities,
                                            const Tensor& colors, const Tensor& sh, const Tensor& meta,
                                            ops::GaussianSplatRender::Attrs attrs = {},
                                            const Loc& loc = Loc::current());
/// Gaussian error linear unit, exact.
Tensor gelu(const Tensor& x, const Loc& loc = Loc::current());
/// Gaussian error linear unit by tanh.
Tensor gelu_approx(const Tensor& x, const Loc& loc = Loc::current());
/// Normalisation of groups of channels of [N, C, ..].
Tensor group_norm(const Tensor& x, const Tensor& gamma = {}, const Tensor& beta = {},
                  ops::GroupNorm::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of group_norm in beta.
Tensor group_norm_backward_beta(const Tensor& x, const Tensor& dy,
                                ops::GroupNormBackwardBeta::Attrs attrs = {},
                                const Loc& loc = Loc::current());
/// Gradient of group_norm in gamma.
Tensor group_norm_backward_gamma(const Tensor& x, const Tensor& dy,
                                 ops::GroupNormBackwardGamma::Attrs attrs = {},
                                 const Loc& loc = Loc::current());
/// Gradient of group_norm in x.
Tensor group_norm_backward_input(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                                 ops::GroupNormBackwardInput::Attrs attrs = {},
                                 const Loc& loc = Loc::current());
/// Each row times the matrix of its expert.
Tensor grouped_matmul(const Tensor& x, const Tensor& w, const Tensor& e, const Loc& loc = Loc::current());
/// Outer products of rows, summed per expert.
Tensor grouped_outer(const Tensor& x, const Tensor& y, const Tensor& e, ops::GroupedOuter::Attrs attrs = {},
                     const Loc& loc = Loc::current());
/// Imaginary part of a complex number.
Tensor imag(const Tensor& z, const Loc& loc = Loc::current());
/// Inverse of square matrices.
Tensor inverse(const Tensor& a, const Loc& loc = Loc::current());
/// Whether an element is neither infinite nor NaN.
Tensor is_finite(const Tensor& x, const Loc& loc = Loc::current());
/// Whether an element is not a number.
Tensor is_nan(const Tensor& x, const Loc& loc = Loc::current());
/// Layer normalisation over one axis.
Tensor layer_norm(const Tensor& x, const Tensor& gamma = {}, const Tensor& beta = {},
                  ops::LayerNorm::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Layer normalisation of the channels of [N, C, H, W].
Tensor layer_norm2d(const Tensor& x, const Tensor& gamma = {}, const Tensor& beta = {},
                    ops::LayerNorm2d::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of layer_norm in gamma.
Tensor layer_norm_backward_gamma(const Tensor& x, const Tensor& dy,
                                 ops::LayerNormBackwardGamma::Attrs attrs = {},
                                 const Loc& loc = Loc::current());
/// Gradient of layer_norm in x.
Tensor layer_norm_backward_input(const Tensor& x, const Tensor& gamma, const Tensor& dy,
                                 ops::LayerNormBackwardInput::Attrs attrs = {},
                                 const Loc& loc = Loc::current());
/// Linear layer (block).
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {}, ops::LinearBlock::Attrs attrs = {},
              const Loc& loc = Loc::current());
/// Linear layer with bias (block).
Tensor linear_fused(const Tensor& x, const Tensor& w, const Tensor& bias,
                    ops::LinearFusedBlock::Attrs attrs = {}, const Loc& loc = Loc::current());
/// First-order linear recurrence along an axis.
Tensor linear_recurrence(const Tensor& a, const Tensor& b, ops::LinearRecurrence::Attrs attrs = {},
                         const Loc& loc = Loc::current());
/// Decoder layer of the Llama family (block).
Tensor llama_decoder_block(const Tensor& x, const Tensor& ln1_g, const Tensor& ln1_b, const Tensor& q_w,
                           const Tensor& k_w, const Tensor& v_w, const Tensor& o_w, const Tensor& ln2_g,
                           const Tensor& ln2_b, const Tensor& up_w, const Tensor& gate_w,
                           const Tensor& down_w, const Tensor& cos, const Tensor& sin,
                           const Tensor& mask = {}, ops::LlamaDecoderBlock::Attrs attrs = {},
                           const Loc& loc = Loc::current());
/// Natural logarithm.
Tensor log(const Tensor& x, const Loc& loc = Loc::current());
/// Logarithm of one plus x, exact near 0.
Tensor log1p(const Tensor& x, const Loc& loc = Loc::current());
/// Logarithm of softmax.
Tensor log_softmax(const Tensor& x, ops::LogSoftmax::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Logarithm of the determinant.
Tensor logdet(const Tensor& a, const Loc& loc = Loc::current());
/// Both of two conditions.
Tensor logical_and(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Negation of a condition.
Tensor logical_not(const Tensor& x, const Loc& loc = Loc::current());
/// At least one of two conditions.
Tensor logical_or(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Exactly one of two conditions.
Tensor logical_xor(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Logarithm of a sum of exponentials.
Tensor logsumexp(const Tensor& x, ops::Logsumexp::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Matrix product with a scaled low-rank update.
Tensor lora_matmul(const Tensor& x, const Tensor& w, const Tensor& a, const Tensor& b,
                   ops::LoraMatmul::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Complex number from two real parts.
Tensor make_complex(const Operand& re, const Operand& im, const Loc& loc = Loc::current());
/// Matrix product, batched.
Tensor matmul(const Tensor& lhs, const Tensor& rhs, const Loc& loc = Loc::current());
/// Larger of two elements.
Tensor max(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Gradient of max pooling over the last two axes.
Tensor maxpool2d_backward(const Tensor& x, const Tensor& dy, ops::MaxPool2dBackward::Attrs attrs = {},
                          const Loc& loc = Loc::current());
/// Smaller of two elements.
Tensor min(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Product of two tensors, element by element.
Tensor mul(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// A contiguous range of one axis.
Tensor narrow(const Tensor& x, ops::Narrow::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Negation.
Tensor neg(const Tensor& x, const Loc& loc = Loc::current());
/// Indices as vectors with a single one.
Tensor one_hot(const Tensor& indices, ops::OneHot::Attrs attrs = {}, const Loc& loc = Loc::current());
/// A tensor with a constant border.
Tensor pad(const Tensor& x, ops::Pad::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Attention over keys and values in pages.
Tensor paged_attention(const Tensor& q, const Tensor& k, const Tensor& pages, const Tensor& positions,
                       const Tensor& v = {}, ops::PagedAttention::Attrs attrs = {},
                       const Loc& loc = Loc::current());
/// Max, mean, sum, min or product over sliding windows.
Tensor pool(const Tensor& x, ops::Pool::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Real power.
Tensor pow(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Convolution of 8-bit codes, requantised.
Tensor q_conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, ops::QConv2d::Attrs attrs = {},
                const Loc& loc = Loc::current());
/// Product of 8-bit codes, requantised.
Tensor q_matmul(const Tensor& x, const Tensor& w, const Tensor& bias, ops::QMatmul::Attrs attrs = {},
                const Loc& loc = Loc::current());
/// Reduced QR factorisation of matrices.
std::array<Tensor, 2> qr(const Tensor& a, const Loc& loc = Loc::current());
/// Floats to i8 codes.
Tensor quantize(const Tensor& x, ops::Quantize::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Floats to i8 codes, a scale per channel.
Tensor quantize_per_channel(const Tensor& x, ops::QuantizePerChannel::Attrs attrs = {},
                            const Loc& loc = Loc::current());
/// Multi-token-prediction head of Qwen 3.5 (block).
Tensor qwen35_mtp_head(const Tensor& h_pre_norm, const Tensor& input_ids, const Tensor& cos,
                       const Tensor& sin, const Tensor& last_token_idx, const Tensor& embed_w,
                       const Tensor& hnorm_w, const Tensor& hnorm_b, const Tensor& enorm_w,
                       const Tensor& enorm_b, const Tensor& eh_w, const Tensor& attn_norm_w,
                       const Tensor& attn_norm_b, const Tensor& q_gate_w, const Tensor& k_w,
                       const Tensor& v_w, const Tensor& q_norm_w, const Tensor& q_norm_b,
                       const Tensor& k_norm_w, const Tensor& k_norm_b, const Tensor& o_w,
                       const Tensor& post_norm_w, const Tensor& post_norm_b, const Tensor& up_w,
                       const Tensor& gate_w, const Tensor& down_w, const Tensor& head_norm_w,
                       const Tensor& head_norm_b, const Tensor& lm_head_w,
                       ops::Qwen35MtpHead::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Uniform 32-bit words.
Tensor random_bits(const Tensor& key, const Tensor& counter, ops::RandomBits::Attrs attrs = {},
                   const Loc& loc = Loc::current());
/// Normally distributed numbers.
Tensor random_normal(const Tensor& key, const Tensor& counter, ops::RandomNormal::Attrs attrs = {},
                     const Loc& loc = Loc::current());
/// Uniform numbers between two bounds.
Tensor random_uniform(const Tensor& key, const Tensor& counter, ops::RandomUniform::Attrs attrs = {},
                      const Loc& loc = Loc::current());
/// Real part of a complex number.
Tensor real(const Tensor& z, const Loc& loc = Loc::current());
/// Sum, mean, max, min or product over axes.
Tensor reduce(const Tensor& x, ops::Reduce::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Rectifier.
Tensor relu(const Tensor& x, const Loc& loc = Loc::current());
/// Gradient of relu.
Tensor relu_backward(const Tensor& x, const Tensor& dy, const Loc& loc = Loc::current());
/// Remainder of a division, with the sign of the dividend.
Tensor rem(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// The same elements, row-major, under other extents.
Tensor reshape(const Tensor& x, ops::Reshape::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Residual sum, then its root-mean-square norm (block).
std::array<Tensor, 2> residual_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma,
                                        const Tensor& beta, ops::ResidualRmsNorm::Attrs attrs = {},
                                        const Loc& loc = Loc::current());
/// Resampling of the last axes, nearest or linear.
Tensor resize(const Tensor& x, ops::Resize::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of resize in its input: its transpose.
Tensor resize_backward(const Tensor& dy, ops::ResizeBackward::Attrs attrs = {},
                       const Loc& loc = Loc::current());
/// An image [N, C, H, W] doubled by repetition.
Tensor resize_nearest2x(const Tensor& x, const Loc& loc = Loc::current());
/// Root-mean-square normalisation over an axis.
Tensor rms_norm(const Tensor& x, const Tensor& gamma = {}, const Tensor& beta = {},
                ops::RmsNorm::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of rms_norm in beta.
Tensor rms_norm_backward_beta(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                              ops::RmsNormBackwardBeta::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of rms_norm in gamma.
Tensor rms_norm_backward_gamma(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                               ops::RmsNormBackwardGamma::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of rms_norm in x.
Tensor rms_norm_backward_input(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& dy,
                               ops::RmsNormBackwardInput::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Rotary position encoding.
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions = {},
            ops::Rope::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of rope in its input.
Tensor rope_backward(const Tensor& dy, const Tensor& cos, const Tensor& sin, const Tensor& positions = {},
                     ops::RopeBackward::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Nearest whole number, halves to even.
Tensor round(const Tensor& x, const Loc& loc = Loc::current());
/// Reciprocal square root.
Tensor rsqrt(const Tensor& x, const Loc& loc = Loc::current());
/// A token drawn from logits.
Tensor sample(const Tensor& logits, const Tensor& key, const Tensor& counter,
              ops::SampleTokens::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Matrix product of fp8 with fp8, scaled.
Tensor scaled_matmul(const Tensor& x, const Tensor& w, const Tensor& x_scale = {}, const Tensor& w_scale = {},
                     ops::ScaledMatmul::Attrs attrs = {}, const Loc& loc = Loc::current());
/// A tensor with rows replaced or combined by index.
Tensor scatter(const Tensor& base, const Tensor& indices, const Tensor& updates,
               ops::Scatter::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Rows summed by index.
Tensor scatter_add(const Tensor& updates, const Tensor& indices, ops::ScatterAdd::Attrs attrs = {},
                   const Loc& loc = Loc::current());
/// Selective state-space scan.
Tensor selective_scan(const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b, const Tensor& c,
                      ops::SelectiveScan::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Two products of one input (block).
std::array<Tensor, 2> shared_linear_pair(const Tensor& x, const Tensor& w_first, const Tensor& w_second,
                                         const Loc& loc = Loc::current());
/// Bits moved up.
Tensor shift_left(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Bits moved down.
Tensor shift_right(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Logistic function.
Tensor sigmoid(const Tensor& x, const Loc& loc = Loc::current());
/// -1, 0 or 1.
Tensor sign(const Tensor& x, const Loc& loc = Loc::current());
/// x times its sigmoid (swish).
Tensor silu(const Tensor& x, const Loc& loc = Loc::current());
/// Sine.
Tensor sin(const Tensor& x, const Loc& loc = Loc::current());
/// A box of a tensor, with steps.
Tensor slice(const Tensor& x, ops::Slice::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Sign and logarithm of the determinant.
std::array<Tensor, 2> slogdet(const Tensor& a, const Loc& loc = Loc::current());
/// Exponentials divided by their sum.
Tensor softmax(const Tensor& x, ops::Softmax::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Gradient of softmax_cross_entropy_with_logits in the logits.
Tensor softmax_cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& d_loss,
                                      const Loc& loc = Loc::current());
/// Cross entropy of each row against its label.
Tensor softmax_cross_entropy_with_logits(const Tensor& logits, const Tensor& labels,
                                         const Loc& loc = Loc::current());
/// Smooth rectifier.
Tensor softplus(const Tensor& x, const Loc& loc = Loc::current());
/// Elements in order along an axis, and where they were.
std::array<Tensor, 2> sort(const Tensor& x, ops::Sort::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Square root.
Tensor sqrt(const Tensor& x, const Loc& loc = Loc::current());
/// The operand, held constant for derivatives.
Tensor stop_gradient(const Tensor& x, const Loc& loc = Loc::current());
/// Difference of two tensors.
Tensor sub(const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// Reduced singular value decomposition.
std::array<Tensor, 3> svd(const Tensor& a, const Loc& loc = Loc::current());
/// Singular values.
Tensor svd_values(const Tensor& a, const Loc& loc = Loc::current());
/// Gated feed-forward net (block).
Tensor swiglu_ffn(const Tensor& x, const Tensor& up_w, const Tensor& gate_w, const Tensor& down_w,
                  const Loc& loc = Loc::current());
/// Elements along an axis, one index for each.
Tensor take_along(const Tensor& x, const Tensor& indices, ops::TakeAlong::Attrs attrs = {},
                  const Loc& loc = Loc::current());
/// Tangent.
Tensor tan(const Tensor& x, const Loc& loc = Loc::current());
/// Hyperbolic tangent.
Tensor tanh(const Tensor& x, const Loc& loc = Loc::current());
/// The k largest elements along an axis, and where they are.
std::array<Tensor, 2> top_k(const Tensor& x, ops::TopK::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Permutation of axes.
Tensor transpose(const Tensor& x, ops::Transpose::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Solutions of triangular linear systems.
Tensor triangular_solve(const Tensor& a, const Tensor& b, ops::TriangularSolve::Attrs attrs = {},
                        const Loc& loc = Loc::current());
/// Mean squared distance from the mean.
Tensor variance(const Tensor& x, ops::Variance::Attrs attrs = {}, const Loc& loc = Loc::current());
/// One of two tensors, chosen by a condition.
Tensor where(const Operand& cond, const Operand& a, const Operand& b, const Loc& loc = Loc::current());
/// All sliding windows of the last axes.
Tensor windows(const Tensor& x, ops::Windows::Attrs attrs = {}, const Loc& loc = Loc::current());
/// Sum of overlapping windows: the transpose of windows.
Tensor windows_sum(const Tensor& x, ops::WindowsSum::Attrs attrs = {}, const Loc& loc = Loc::current());

}  // namespace rlx
