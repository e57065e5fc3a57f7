// Convolutions of 8-bit codes: the windows of an image become rows of a product with packed weights.
#include <cstring>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/packed.h"
#include "rlx/backend/cpu/nodes/requantize.h"
#include "rlx/ops/quant/q_conv2d.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

// One image and group: rows [out_height out_width][channels kernel_height kernel_width] of codes, taps
// outside the image being the code of zero; their product with the weights lies with channels last and is
// turned at the end.
struct CodeImage {
  int64_t batch, groups, channels, height, width, filters, out_height,
      out_width;  // channels, filters: of a group
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  int8_t zero;
  GemmInt8 product;
  std::vector<double> mults;  // of all filters, or none

  int64_t places() const { return out_height * out_width; }
  int64_t taps() const { return channels * kernel[0] * kernel[1]; }
  size_t rows_bytes() const { return round_up(size_t(places() * taps())); }
  size_t result_bytes() const { return round_up(size_t(places() * filters)); }

  void gather_row(const int8_t* image, int64_t oy, int8_t* rows) const {
    for (int64_t ox = 0; ox < out_width; ++ox) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t ky = 0; ky < kernel[0]; ++ky) {
          const int64_t y = oy * stride[0] + ky * dilation[0] - padding[0];
          for (int64_t kx = 0; kx < kernel[1]; ++kx) {
            const int64_t x = ox * stride[1] + kx * dilation[1] - padding[1];
            const bool inside = y >= 0 && y < height && x >= 0 && x < width;
            *rows++ = inside ? image[(c * height + y) * width + x] : zero;
          }
        }
      }
    }
  }

  void run(const Launch& l, const PackedInt8* weights) const {
    auto* rows = reinterpret_cast<int8_t*>(l.workspace);
    std::byte* result = l.workspace + rows_bytes();
    for (int64_t i = 0; i < batch * groups; ++i) {
      const int64_t group = i % groups;
      const auto* image = reinterpret_cast<const int8_t*>(l.in[0]) + i * channels * height * width;
      const int64_t grain = std::max<int64_t>(1, 16384 / (out_width * taps()));
      l.team.parallel_for(out_height, grain, [&](int64_t begin, int64_t end) {
        for (int64_t y = begin; y < end; ++y) gather_row(image, y, rows + y * out_width * taps());
      });
      GemmInt8 now = product;
      now.a.data = rows;
      now.b = weights + group;
      now.bias = reinterpret_cast<const int32_t*>(l.in[2]) + group * filters;
      if (!mults.empty()) now.requantize.multipliers = mults.data() + group * filters;
      now.c = result;
      gemm_int8(l.team, now, result + result_bytes());
      StridedCopy turn{.rank = 2, .size = {filters, places()}, .from_stride = {1, filters}};
      turn.to_stride[0] = places(), turn.to_stride[1] = 1;
      turn.element_bytes = 1;
      turn.from = result;
      turn.to = l.out[0] + i * filters * places();
      strided_copy(l.team, turn);
    }
  }
};

CodeImage describe(const Request& r) {
  const auto& a = r.node.as<ops::QConv2d>();
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  CodeImage p{.batch = x.dim(0).value(), .groups = a.groups};
  p.channels = x.dim(1).value() / a.groups, p.height = x.dim(2).value(), p.width = x.dim(3).value();
  p.filters = y.dim(1).value() / a.groups, p.out_height = y.dim(2).value(), p.out_width = y.dim(3).value();
  for (size_t i = 0; i < 2; ++i) {
    p.kernel[i] = a.kernel_size[i], p.stride[i] = a.stride[i];
    p.padding[i] = a.padding[i], p.dilation[i] = a.dilation[i];
  }
  p.zero = int8_t(a.x_zp);  // the bits of a u8 code, too
  GemmInt8& g = p.product;
  g.m = p.places(), g.n = p.filters, g.k = p.taps();
  g.a = {nullptr, r.in[0].shape.dtype(), g.k, 1};
  g.a_zero = int32_t(a.x_zp);
  g.c_dtype = r.out[0].shape.dtype();
  g.c_row_stride = g.n;
  g.requantize = requantize_of(a);
  p.mults = a.mults;
  return p;
}

// Weights [filters, taps] of each group, read as [taps, filters].
Packing packing_of(const CodeImage& p, int32_t zero) {
  const int64_t k = p.taps(), n = p.filters, groups = p.groups;
  Packing packing{.operand = 1};
  packing.form = cat("filters ", isa_name(current_isa()), " ", groups, "x", k, "x", n, " zero ", zero);
  packing.bytes = groups * k * n;
  packing.make = [k, n, groups, zero](Team team, const std::byte* data) -> std::shared_ptr<const void> {
    auto made = std::make_shared<std::vector<PackedInt8>>();
    for (int64_t g = 0; g < groups; ++g)
      made->push_back(PackedInt8::pack(team, {data + g * k * n, DType::i8, 1, k}, k, n, zero));
    return {made, made->data()};
  };
  return packing;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const CodeImage p = describe(r);
  const auto zero = int32_t(r.node.as<ops::QConv2d>().w_zp);
  const int8_t code = 0;  // whether there is a zero point decides what the product needs
  const PackedInt8 like = PackedInt8::pack(Team(default_pool(), 1), {&code, DType::i8, 1, 1}, 1, 1, zero);
  GemmInt8 sized = p.product;
  sized.b = &like;
  auto step = with_packed(
      r, packing_of(p, zero), p.rows_bytes() + p.result_bytes() + gemm_int8_workspace(sized, r.threads),
      [p](const Launch& l, const void* codes) { p.run(l, static_cast<const PackedInt8*>(codes)); });
  step->note = "packed codes";
  return step;
}

}  // namespace

void add_quant_conv(KernelTable& table) { table.add<ops::QConv2d>({"q_conv2d_codes_i8", accepts, prepare}); }

}  // namespace rlx::cpu
