// Convolution: a product of matrices in tiles for most, a thread for a few results where groups have few channels, a thread for each result for what is left.
#include "rlx/ops/conv/conv.h"

#include "rlx/backend/cuda/kernels/conv_fma.h"
#include "rlx/backend/cuda/kernels/conv_groups.h"
#include "rlx/backend/cuda/kernels/conv_mma.h"
#include "rlx/backend/cuda/kernels/conv_parts.h"
#include "rlx/backend/cuda/kernels/conv_pieces.h"
#include "rlx/backend/cuda/kernels/conv_results.h"
#include "rlx/backend/cuda/kernels/conv_slices.h"
#include "rlx/backend/cuda/kernels/matrix_fragments.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/nodes/conv_rings.h"
#include "rlx/backend/cuda/nodes/conv_tiles.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

// Whether eight terms in a row are neighbours in w that begin at a multiple of 16 bytes, from the first address on: channels of a tap, or taps of a channel.
bool is_direct(const ConvPart& p, const ConvTiling& t) {
  if (!t.matrix_units || p.ws.outer % 8 != 0 || p.ws.offset % 8 != 0) return false;
  if (!t.along) {
    const auto whole = [&](size_t d) { return p.w[d] == 1 || p.ws.axis[d] % 8 == 0; };
    return p.ws.channel == 1 && p.inputs % 8 == 0 && whole(0) && whole(1) && whole(2);
  }
  const Axes runs{p.w[1] * p.w[2], p.w[2], 1};
  const auto run = [&](size_t d) { return p.w[d] == 1 || p.ws.axis[d] == runs[d]; };
  return p.ws.channel % 8 == 0 && p.taps() % 8 == 0 && run(0) && run(1) && run(2);
}

std::unique_ptr<Step> prepare_tiles(const Request& r) { return conv_step(r, plain_conv(r), plan_conv_tiles); }
std::unique_ptr<Step> prepare_few(const Request& r) { return conv_step(r, plain_conv(r), plan_conv_few); }

// ---- a thread for each result ----

Support accepts_direct(const Request& r) {
  if (!is_float(r.in[0].dtype()) || is_storage_only(r.in[0].dtype()) || r.in[1].dtype() != r.in[0].dtype())
    return Support::no("a convolution of ", r.in[0].dtype(), " and ", r.in[1].dtype());
  return Support::yes();
}

// i input_dilation = o stride + k dilation - padding, absent where i is not whole or outside.
std::unique_ptr<Step> prepare_direct(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  const Arg &x = r.in[0], &w = r.in[1], &y = r.out[0];
  const int axes = x.shape.rank() - 2;
  const int64_t channels = w.shape.dim(1).value();
  const int64_t per_group = y.shape.dim(1).value() / std::max<int64_t>(a.groups.value(), 1);
  const std::string_view acc = x.dtype() == DType::f64 ? "f64" : "f32";
  std::string body = cat("  ", acc, " sum = 0;\n  const i64 first = i1 / ", std::max<int64_t>(per_group, 1),
                         " * ", channels, ";\n");
  std::string indent = "  ", from = cat("i0 * i64(", x.layout.strides[0], ")"),
              weight = cat("i1 * i64(", w.layout.strides[0], ")");
  for (int d = 0; d < axes; ++d) {
    const auto k = size_t(d);
    body +=
        cat(indent, "for (int k", d, " = 0; k", d, " < ", w.shape.dim(d + 2).value(), "; ++k", d, ") {\n");
    indent += "  ";
    body += cat(indent, "const i64 p", d, " = i", d + 2, " * i64(", a.stride[k], ") + k", d, " * i64(",
                a.dilation[k], ") - i64(", a.padding[k], ");\n");
    const int64_t step = a.input_dilation[k];
    if (step != 1) body += cat(indent, "if (p", d, " % i64(", step, ") != 0) continue;\n");
    body += cat(indent, "const i64 q", d, " = p", d, " / i64(", step, ");\n");
    body += cat(indent, "if (q", d, " < 0 || q", d, " >= ", x.shape.dim(d + 2).value(), ") continue;\n");
    from += cat(" + q", d, " * i64(", x.layout.strides[k + 2], ")");
    weight += cat(" + k", d, " * i64(", w.layout.strides[k + 2], ")");
  }
  body += cat(indent, "for (int c = 0; c < ", channels, "; ++c) sum = op_fma(as_", acc, "(x[", from,
              " + (first + c) * i64(", x.layout.strides[1], ")]), as_", acc, "(w[", weight, " + c * i64(",
              w.layout.strides[1], ")]), sum);\n");
  for (int d = 0; d < axes; ++d) body += "  }\n";
  body += "  put(y[e], sum);\n";
  const Source source = element_kernel(
      "conv", sizes_of(y.shape), typed(x, "x") + ", " + typed(w, "w") + ", " + typed(y, "y", true), body);
  return element_step(device_of(r), source, 2, 1, y.shape.elements(), "a thread for each result");
}

}  // namespace

// Weights in the order of the tiles where those cannot read them as they lie, the products, and the sum of parts.
ConvPlan plan_conv_tiles(const Device& device, const ConvPart& p, const ConvResults& results) {
  if (auto plan = plan_conv_rings(device, p, results)) return *std::move(plan);
  const ConvTiling t = tiling_of(p, conv_processors(device));
  const bool direct = is_direct(p, t);
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  const std::string head =
      conv_head(p, results,
                cat("constexpr bool kAlong = ", flag(t.along), ", kAcross = false, kTurned = ", flag(!t.matrix_units),
                    ", kDirect = ", flag(direct), ";\nconstexpr int kSub = ", t.sub, ", kChunk = 0, kSlice = ", t.slice,
                    ", kSplits = ", t.splits, ";\nconstexpr u32 kRows = ", t.rows, ";\n"));
  const std::string tile =
      cat("constexpr int kM = ", t.m, ", kN = ", t.n, ", kStages = ", t.stages, ", kWarpM = ", t.warp_m,
          ", kBlocks = ", t.blocks, ", kNumbers = ", t.numbers, ", kWriters = ", t.threads, ", kLanes = ", t.lanes, ";\n",
          kMatrixFragments);
  const std::string slices = t.matrix_units ? cat(kConvPieces, kConvResults, kConvSlices) : "";
  ConvPlan plan;
  if (!direct) {
    plan.packed = size_t(t.packed(p)) * dtype_size(p.dtype);
    plan.launches.push_back({device.functions().get({"conv_pack", head + kConvPack}),
                             {(t.slices * t.slice + 31) / 32, (t.rows + 31) / 32, p.groups},
                             {256},
                             0,
                             {ConvArg::w, ConvArg::packed}});
  }
  const Source products = t.groups
                              ? Source{"conv_groups", head + tile + kMatrixGroups + slices + kConvGroups}
                          : t.matrix_units ? Source{"conv_mma", head + tile + slices + kConvMma}
                                           : Source{"conv_fma", head + tile + kConvFma};
  plan.launches.push_back({device.functions().get(products),
                           {t.tiles(p), p.groups, t.splits},
                           {t.threads},
                           size_t(t.shared),
                           {ConvArg::x, direct ? ConvArg::w : ConvArg::packed, ConvArg::y, ConvArg::sums}});
  if (t.splits > 1) plan.launches.push_back(conv_sum(device, p.groups * p.outputs * p.positions(), head));
  plan.sums = conv_sum_bytes(p, t.splits);
  plan.note =
      cat(t.groups         ? "groups of warps, "
          : t.matrix_units ? "matrix units, "
                           : "",
          "tiles of ", t.m, " x ", t.n, t.along ? ", lanes along terms" : "",
          t.splits > 1 ? cat(", terms in ", t.splits, " parts") : "", direct ? "" : ", packed weights");
  return plan;
}

void add_conv(KernelTable& table) {
  table.add<ops::Conv>({"conv_few", accepts_few, prepare_few});
  table.add<ops::Conv>({"conv_tiles", accepts_conv_parts, prepare_tiles});
  table.add<ops::Conv>({"conv_direct", accepts_direct, prepare_direct});
}

}  // namespace rlx::cuda
