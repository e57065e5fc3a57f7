// The one list of operators in the system. A new operator is its file pair and its name here.
#pragma once

#include "rlx/ir/leaves.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/attention/fused_block.h"
#include "rlx/ops/attention/paged_attention.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/block/linear.h"
#include "rlx/ops/block/llama_decoder.h"
#include "rlx/ops/block/qwen35_mtp_head.h"
#include "rlx/ops/block/residual_rms_norm.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/ops/conv/conv.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/depthwise_causal.h"
#include "rlx/ops/conv/pool.h"
#include "rlx/ops/conv/resize.h"
#include "rlx/ops/conv/windows.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/activation_backward.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/fft/fft.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/index/take_along.h"
#include "rlx/ops/linalg/cholesky.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/einsum.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/solve.h"
#include "rlx/ops/linalg/svd.h"
#include "rlx/ops/linalg/triangular_solve.h"
#include "rlx/ops/linear/fused_linear.h"
#include "rlx/ops/linear/grouped_matmul.h"
#include "rlx/ops/linear/swiglu.h"
#include "rlx/ops/loss/cross_entropy.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/axis_norm_backward.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/norm/residual_norm.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/dequantize_blocks.h"
#include "rlx/ops/quant/encode_blocks.h"
#include "rlx/ops/quant/fake_quantize.h"
#include "rlx/ops/quant/fake_quantize_lsq.h"
#include "rlx/ops/quant/q_conv2d.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/quant/scaled_matmul.h"
#include "rlx/ops/random/dropout.h"
#include "rlx/ops/random/random.h"
#include "rlx/ops/random/sample.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/sort.h"
#include "rlx/ops/reduce/variance.h"
#include "rlx/ops/sequence/gated_delta_net.h"
#include "rlx/ops/sequence/selective_scan.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/dynamic_slice.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/flip.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/slice.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/ops/splat/lists.h"
#include "rlx/ops/splat/prepare.h"
#include "rlx/ops/splat/rasterize.h"
#include "rlx/ops/splat/render.h"

namespace rlx::ops {

template <class... Ops>
struct OpList {};

using All =
    OpList<Input, Param, Constant, Full,
           // block
           LinearBlock, LinearFusedBlock, LlamaDecoderBlock, Qwen35MtpHead, ResidualRmsNorm, SharedLinearPair,
           SwigluFfn,
           // control
           CustomFn, Fused, If, Scan, While,
           // elementwise
           Abs, ActivationBackward, Add, Atan, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor, Cast, Ceil,
           Clamp, Compare, ComplexNormSq, ComplexNormSqBackward, Conjugate, Cos, Div, Erf, Exp, Expm1, Floor,
           Gelu, GeluApprox, ImagPart, IsFinite, IsNan, Log, Log1p, LogicalAnd, LogicalNot, LogicalOr,
           LogicalXor, MakeComplex, Max, Min, Mul, Neg, Pow, RealPart, Relu, ReluBackward, Rem, Round, Rsqrt,
           ShiftLeft, ShiftRight, Sigmoid, Sign, Silu, Sin, Softplus, Sqrt, StopGradient, Sub, Tan, Tanh,
           Where,
           // reduce
           AllOf, AnyOf, Argmax, Argmin, Argsort, Cummax, Cummin, Cumprod, Cumsum, CumsumBackward,
           LinearRecurrence, LogSoftmax, Logsumexp, Reduce, Softmax, Sort, TopK, Variance,
           // shape
           Concat, DynamicSlice, DynamicUpdateSlice, Expand, Flip, Iota, Narrow, OneHot, Pad, Reshape, Slice,
           Transpose,
           // linalg
           BatchedDenseSolve, Cholesky, DenseSolve, Det, DotGeneral, Eigh, EighValues, Einsum, Inverse,
           Logdet, Matmul, Qr, Slogdet, Svd, SvdValues, TriangularSolve,
           // fft
           Fft,
           // quant
           Dequantize, DequantizeBlocks, DequantizePerChannel, DequantGroupedMatmul, DequantMatmul,
           DequantMatmulTransposed, DequantMoeWeights, EncodeBlocks, FakeQuantize, FakeQuantizeBackward,
           FakeQuantizeLsq, FakeQuantizeLsqBackwardScale, FakeQuantizeLsqBackwardX, QConv2d, QMatmul,
           Quantize, QuantizePerChannel, ScaledMatmul,
           // attention
           Attention, AttentionBackward, AxialRope2d, FusedAttentionBlock, FusedTransformerLayer,
           PagedAttention, Rope, RopeBackward,
           // sequence
           GatedDeltaNet, GatedDeltaNetCarry, SelectiveScan,
           // index
           BatchedGather, Gather, GatherBackward, Scatter, ScatterAdd, TakeAlong,
           // random
           Dropout, RandomBits, RandomNormal, RandomUniform, SampleTokens,
           // splat
           GaussianSplatLists, GaussianSplatPrepare, GaussianSplatRasterize, GaussianSplatRender,
           // conv
           Conv, Conv1d, Conv2d, Conv2dBackwardInput, Conv2dBackwardWeight, Conv3d, ConvTranspose1d,
           ConvTranspose2d, ConvTranspose3d, DepthwiseConv1dCausal, MaxPool2dBackward, Pool, Resize,
           ResizeBackward, ResizeNearest2x, Windows, WindowsSum,
           // norm
           FusedResidualLn, FusedResidualRmsNorm, GroupNorm, GroupNormBackwardBeta, GroupNormBackwardGamma,
           GroupNormBackwardInput, LayerNorm, LayerNorm2d, LayerNormBackwardGamma, LayerNormBackwardInput,
           RmsNorm, RmsNormBackwardBeta, RmsNormBackwardGamma, RmsNormBackwardInput,
           // linear
           FusedMatmulBiasAct, FusedSwiglu, GroupedMatmul, GroupedOuter, LoraMatmul,
           // loss
           SoftmaxCrossEntropyBackward, SoftmaxCrossEntropyWithLogits>;

/// All of them by name.
const OpTable& table();

}  // namespace rlx::ops
