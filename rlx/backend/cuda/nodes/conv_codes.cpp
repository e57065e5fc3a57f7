// Convolutions of 8-bit codes: on integer matrix units where groups have channels enough, else a thread for each result.
#include "rlx/backend/cuda/kernels/conv_codes.h"

#include <bit>
#include <limits>

#include "rlx/backend/cuda/kernels/casts.h"
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/nodes/conv_walk.h"
#include "rlx/ops/quant/q_conv2d.h"

namespace rlx::cuda {
namespace {

/// finish(to, sum, channel): a sum becomes a code, in f64 as the reference rule has it.
std::string finish_text(const ops::QConv2d::Attrs& a) {
  std::string text = cat(kComplexNumbers, kCasts);
  const bool of_channels = !a.mults.empty();
  if (of_channels) {
    text += "__device__ const u64 multipliers[] = {";
    for (const double m : a.mults) text += cat(std::bit_cast<uint64_t>(m), "ull,");
    text += "};\n";
  }
  return cat(
      text,
      "template <class Y> void finish(Y& to, i64 sum, i64 channel) {\n  const f64 v = f64(sum) * from_bits(",
      of_channels ? "multipliers[channel]" : cat("u64(", std::bit_cast<uint64_t>(a.mult), "ull)"),
      ");\n  put_cast(to, ", a.rounding == ops::Rounding::half_even ? "rint" : "round", "(v) + ", a.out_zp,
      ".0);\n}\n");
}

Support accepts(const Request& r) {
  return r.in[2].is_row_major() ? Support::yes() : Support::no("the bias is strided");
}

constexpr int64_t kLeastChannels = 16;  // below, most of a tile would be empty

Support accepts_tiles(const Request& r) {
  if (const Support s = accepts(r); !s) return s;
  if (!r.in[1].is_row_major()) return Support::no("the weights are strided");
  const auto& a = r.node.as<ops::QConv2d>();
  const Shape &w = r.in[1].shape, &y = r.out[0].shape;
  const int64_t inputs = w.dim(1).value(), outputs = y.dim(1).value() / a.groups;
  if (inputs < kLeastChannels || outputs < kLeastChannels)
    return Support::no("groups of ", inputs, " and ", outputs, " channels; at least ", kLeastChannels);
  constexpr int64_t kMostTerms = 1 << 16, kMostPositions = std::numeric_limits<int32_t>::max() / 2,
                    kMostBlocks = 65535;
  if (const int64_t terms = inputs * a.kernel_size[0] * a.kernel_size[1]; terms > kMostTerms)
    return Support::no("sums of ", terms, " terms; at most ", kMostTerms);
  if (y.elements() > kMostPositions || a.groups > kMostBlocks)
    return Support::no(y, " has more elements or groups than kernels count");
  return Support::yes();
}

std::unique_ptr<Step> prepare_tiles(const Request& r) {
  const auto& a = r.node.as<ops::QConv2d>();
  const Arg &x = r.in[0], &y = r.out[0];
  const int64_t inputs = r.in[1].shape.dim(1).value(), outputs = y.shape.dim(1).value() / a.groups,
                positions = y.shape.elements() / std::max<int64_t>(y.shape.dim(1).value(), 1);
  if (y.shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  std::string constants;
  const auto constant = [&](std::string_view name, int64_t value) {
    constants += cat("constexpr int ", name, " = ", value, ";\n");
  };
  const auto pair = [&](std::string_view name, const std::vector<int64_t>& two) {
    constant(cat(name, "H"), two[0]), constant(cat(name, "W"), two[1]);
  };
  constant("kInputs", inputs), constant("kOutputs", outputs), constant("kGroups", a.groups);
  constant("kPositions", positions), constant("kXZero", a.x_zp), constant("kWZero", a.w_zp);
  constant("kHeight", x.shape.dim(2).value()), constant("kWidth", x.shape.dim(3).value());
  pair("kOut", {y.shape.dim(2).value(), y.shape.dim(3).value()});
  pair("kTaps", a.kernel_size), pair("kStride", a.stride), pair("kPad", a.padding), pair("kStep", a.dilation);
  for (size_t i = 0; i < 4; ++i) constants += cat("constexpr i64 kXs", i, " = ", x.layout.strides[i], ";\n");
  const FunctionRef kernel = device_of(r).functions().get(
      {"conv_codes", cat(finish_text(a), "typedef ", memory_type(x.dtype()),
                         " X;\nconstexpr bool kUnsigned = ", x.dtype() == DType::u8 ? "true" : "false", ";\n",
                         constants, kConvCodes)});
  constexpr int64_t kM = 64, kN = 128;
  const Grid grid{(positions + kN - 1) / kN, (outputs + kM - 1) / kM, a.groups};
  return make_gpu_step(cat("integer matrix units, tiles of ", kM, " x ", kN),
                       [=](Stream& s, const Launch& l) {
                         (*kernel)(s.handle, grid, {256}, 0, l.in[0], l.in[1], l.in[2], l.out[0]);
                       });
}

std::unique_ptr<Step> prepare_direct(const Request& r) {
  const auto& a = r.node.as<ops::QConv2d>();
  const Arg &x = r.in[0], &w = r.in[1], &y = r.out[0];
  const std::string body =
      conv_walk_text({a.stride,
                      a.padding,
                      a.dilation,
                      {},
                      a.groups,
                      "i64(bias[i1])",
                      cat("sum + i64(i32(a) - ", a.x_zp, ") * i64(i32(b) - ", a.w_zp, ")")},
                     x, w, y) +
      "  finish(y[e], sum, i1);\n";
  Source source = element_kernel(
      "q_conv2d", sizes_of(y.shape),
      typed(x, "x") + ", " + typed(w, "w") + ", const i32* bias, " + typed(y, "y", true), body);
  source.text = finish_text(a) + source.text;
  return element_step(device_of(r), source, 3, 1, y.shape.elements(), "a thread for each result");
}

}  // namespace

void add_conv_codes(KernelTable& table) {
  table.add<ops::QConv2d>({"conv_codes", accepts_tiles, prepare_tiles});
  table.add<ops::QConv2d>({"conv_codes_direct", accepts, prepare_direct});
}

}  // namespace rlx::cuda
