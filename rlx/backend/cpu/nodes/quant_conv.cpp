// Convolutions of 8-bit codes, requantised exactly. Channels are last inside; the result is turned at the end.
#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/conv/conv_codes.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/packed.h"
#include "rlx/ops/quant/q_conv2d.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  if (const Support s = none_empty(r); !s) return s;
  for (size_t i = 1; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

CodeConvShape shape_of(const Request& r) {
  const auto& a = r.node.as<ops::QConv2d>();
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  CodeConvShape s{.batch = x.dim(0).value(), .groups = a.groups};
  s.in_channels = x.dim(1).value(), s.out_channels = y.dim(1).value();
  for (size_t i = 0; i < 2; ++i) {
    s.size[i] = x.dim(int(i) + 2).value(), s.out[i] = y.dim(int(i) + 2).value();
    s.kernel[i] = a.kernel_size[i], s.stride[i] = a.stride[i];
    s.low[i] = a.padding[i], s.dilation[i] = a.dilation[i];
  }
  return s;
}

/// What is planned once.
struct QuantConv {
  std::shared_ptr<const CodeLayout> plan;
  CodeConv conv;
  std::vector<double> multipliers;  // of all channels
  int64_t batch, channels, places;
  size_t result_bytes;

  void run(const Launch& l, const void* weights) const {
    CodeConv now = conv;
    now.plan = plan.get();
    now.x.data = l.in[0];
    now.weights = static_cast<const PackedCodeWeights*>(weights);
    now.exact.multipliers = multipliers.data();
    now.exact.start = reinterpret_cast<const int32_t*>(l.in[2]);
    now.y = l.workspace;
    conv_codes(l.team, now, l.workspace + result_bytes);
    StridedCopy turn{.rank = 3, .element_bytes = 1};
    const int64_t sizes[] = {batch, channels, places};
    const int64_t from[] = {channels * places, 1, channels}, to[] = {channels * places, places, 1};
    for (int i = 0; i < 3; ++i)
      turn.size[i] = sizes[i], turn.from_stride[i] = from[i], turn.to_stride[i] = to[i];
    turn.from = l.workspace, turn.to = l.out[0];
    strided_copy(l.team, turn);
  }
};

QuantConv describe(const Request& r) {
  const auto& a = r.node.as<ops::QConv2d>();
  const CodeConvShape s = shape_of(r);
  QuantConv q{.plan = plan_conv_codes(s, {r.in[0].dtype(), int32_t(a.x_zp)}, {DType::i8, int32_t(a.w_zp)}),
              .batch = s.batch,
              .channels = s.out_channels,
              .places = s.out[0] * s.out[1]};
  q.result_bytes = round_up(size_t(q.batch * q.channels * q.places));
  q.multipliers = a.mults.empty() ? std::vector<double>(size_t(s.out_channels), a.mult) : a.mults;
  CodeConv& c = q.conv;
  const auto& strides = r.in[0].layout.strides;
  c.x = {nullptr, r.in[0].dtype(), int32_t(a.x_zp), strides[0], strides[2], strides[3], strides[1]};
  c.y_dtype = r.out[0].dtype(), c.y_zero = int32_t(a.out_zp);
  const float lowest = c.y_dtype == DType::i8 ? -128 : 0;
  c.least = lowest - float(a.out_zp), c.most = lowest + 255 - float(a.out_zp);
  c.exact.half_away = a.rounding == ops::Rounding::half_away;
  return q;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::QConv2d>();
  const QuantConv q = describe(r);
  const int64_t taps = a.kernel_size[0] * a.kernel_size[1], part = r.in[1].shape.dim(1).value();
  const PackedCodeWeights::Source w{nullptr,          DType::i8, int32_t(a.w_zp), part * taps, taps,
                                    a.kernel_size[1], 1};
  Packing packing{.operand = 1};
  packing.form = cat("filters ", PackedCodeWeights::kLayoutVersion, " ", isa_name(current_isa()), " ",
                     PackedCodeWeights::form(*q.plan), " zero ", w.zero);
  packing.bytes = int64_t(PackedCodeWeights::bytes(*q.plan));
  const PackedNow now = add_makers<PackedCodeWeights>(
      packing, size_t(packing.bytes), [plan = q.plan, w](Team team, const std::byte* data, std::byte* lent) {
        PackedCodeWeights::Source from = w;
        from.data = data;
        return PackedCodeWeights::pack(team, *plan, from, lent);
      });
  packing.bytes_of = [bytes = size_t(packing.bytes)](const void* form) {
    const auto* codes = static_cast<const PackedCodeWeights*>(form);
    return std::span(codes->data(), bytes);
  };
  packing.restore = [plan = q.plan](Team, std::span<const std::byte> bytes) -> std::shared_ptr<const void> {
    return std::make_shared<const PackedCodeWeights>(PackedCodeWeights::from_bytes(*plan, bytes));
  };
  auto step = with_packed(r, packing, now, q.result_bytes + conv_codes_workspace(*q.plan, r.threads),
                          [q](const Launch& l, const void* weights) { q.run(l, weights); });
  step->note = "packed codes";
  return step;
}

}  // namespace

void add_quant_conv(KernelTable& table) { table.add<ops::QConv2d>({"q_conv2d_codes_i8", accepts, prepare}); }

}  // namespace rlx::cpu
