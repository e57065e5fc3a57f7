// Convolutions in every form and type as products: w [filters, terms] times the gathered inputs [terms,
// positions].
//
// The specialised kernels come first; this one takes what they do not: f64, complex numbers and integers,
// strides that run backwards, strides together with a dilated input.
#include <array>
#include <cstring>

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/integer_product.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/conv/conv.h"

namespace rlx::cpu {
namespace {

constexpr size_t kAxes = 3;
using Sizes = std::array<int64_t, kAxes>;

Sizes spatial(const Shape& s) {
  Sizes out{1, 1, 1};
  for (int i = 0; i < s.rank() - 2; ++i) out[kAxes - 1 - size_t(i)] = s.dim(-1 - i).value();
  return out;
}
Sizes filled(const std::vector<int64_t>& list, int64_t fill) {
  Sizes out{fill, fill, fill};
  std::copy_backward(list.begin(), list.end(), out.end());
  return out;
}
int64_t volume(const Sizes& s) { return s[0] * s[1] * s[2]; }

struct GatheredConv {
  DType dtype;
  int64_t batch, groups, channels, filters;  // of a group
  Sizes x, w, y;
  /// Per axis, at o * w + k: the position in x that output o meets with tap k, or -1.
  std::array<std::vector<int64_t>, kAxes> source;
  int64_t chunk = 0;  // positions gathered at once

  int64_t terms() const { return channels * volume(w); }
  int64_t positions() const { return volume(y); }
  size_t gathered_bytes() const { return round_up(size_t(terms() * chunk) * dtype_size(dtype)); }

  Gemm product() const {
    Gemm g{.m = filters, .n = chunk, .k = terms()};
    g.a = {nullptr, dtype, g.k, 1};
    g.b = {nullptr, dtype, chunk, 1};
    g.c_dtype = dtype;
    g.c_row_stride = positions();
    return g;
  }

  // Row `term` of the gathered inputs for positions [first, first + count).
  template <class T>
  void gather(const T* plane, int64_t tap, int64_t first, int64_t count, T* out) const {
    const int64_t k2 = tap % w[2], k1 = tap / w[2] % w[1], k0 = tap / (w[2] * w[1]);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t o = first + i, o2 = o % y[2], o1 = o / y[2] % y[1], o0 = o / (y[2] * y[1]);
      const int64_t i0 = source[0][size_t(o0 * w[0] + k0)], i1 = source[1][size_t(o1 * w[1] + k1)];
      const int64_t i2 = source[2][size_t(o2 * w[2] + k2)];
      out[i] = i0 < 0 || i1 < 0 || i2 < 0 ? T(0) : plane[(i0 * x[1] + i1) * x[2] + i2];
    }
  }

  template <class T>
  void gather_all(Team team, const std::byte* image, int64_t first, int64_t count, std::byte* to) const {
    const int64_t taps = volume(w);
    team.parallel_for(terms(), std::max<int64_t>(1, 8192 / count), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        gather(reinterpret_cast<const T*>(image) + t / taps * volume(x), t % taps, first, count,
               reinterpret_cast<T*>(to) + t * count);
      }
    });
  }

  void multiply(const Launch& l, const std::byte* weights, const std::byte* gathered, int64_t count,
                std::byte* to) const {
    if (dtype == DType::i32 || dtype == DType::i64) {
      IntegerProduct p{.dtype = dtype, .m = filters, .n = count, .k = terms(), .a_row = terms()};
      p.b_row = count;
      p.c_row = positions();
      p.a = weights;
      p.b = gathered;
      p.c = to;
      return integer_product(l.team, p);
    }
    Gemm g = product();
    g.n = g.b.row_stride = count;
    g.a.data = weights;
    g.b.data = gathered;
    g.c = to;
    gemm(l.team, g, l.workspace + gathered_bytes());
  }

  void run(const Launch& l) const {
    const auto element = int64_t(dtype_size(dtype));
    for (int64_t i = 0; i < batch * groups; ++i) {
      const std::byte* image = l.in[0] + i * channels * volume(x) * element;
      const std::byte* weights = l.in[1] + i % groups * filters * terms() * element;
      std::byte* result = l.out[0] + i * filters * positions() * element;
      for (int64_t first = 0; first < positions(); first += chunk) {
        const int64_t count = std::min(chunk, positions() - first);
        if (element == 4) {
          gather_all<uint32_t>(l.team, image, first, count, l.workspace);
        } else {
          gather_all<uint64_t>(l.team, image, first, count, l.workspace);
        }
        multiply(l, weights, l.workspace, count, result + first * element);
      }
    }
  }
};

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64 && t != DType::c64 && t != DType::i32 && t != DType::i64)
    return Support::no("no product of ", t);
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

GatheredConv describe(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  const Shape &x = r.in[0].shape, &w = r.in[1].shape;
  GatheredConv p{.dtype = x.dtype(), .batch = x.dim(0).value(), .groups = a.groups.value()};
  p.channels = w.dim(1).value();
  p.filters = w.dim(0).value() / p.groups;
  p.x = spatial(x), p.w = spatial(w), p.y = spatial(r.out[0].shape);
  const Sizes stride = filled(a.stride, 1), padding = filled(a.padding, 0), dilation = filled(a.dilation, 1),
              input_dilation = filled(a.input_dilation, 1);
  for (size_t axis = 0; axis < kAxes; ++axis) {
    for (int64_t o = 0; o < p.y[axis]; ++o) {
      for (int64_t k = 0; k < p.w[axis]; ++k) {
        const int64_t t = o * stride[axis] + k * dilation[axis] - padding[axis];
        const int64_t i = t % input_dilation[axis] == 0 ? t / input_dilation[axis] : -1;
        p.source[axis].push_back(i < p.x[axis] ? std::max<int64_t>(i, -1) : -1);
      }
    }
  }
  constexpr int64_t kGatheredBytes = 4 << 20;
  const int64_t column = p.terms() * int64_t(dtype_size(p.dtype));
  p.chunk = std::min(p.positions(), std::max<int64_t>(64, kGatheredBytes / column));
  return p;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const GatheredConv p = describe(r);
  const bool integers = is_integer(p.dtype);
  return make_step([p](const Launch& l) { p.run(l); },
                   p.gathered_bytes() + (integers ? 0 : gemm_workspace(p.product(), r.threads)));
}

}  // namespace

void add_conv_gathered(KernelTable& table) {
  table.add<ops::Conv>({"conv_gathered", accepts, prepare});
  table.add<ops::Conv>(wide_kernel<accepts, prepare>("conv_gathered_wide"));
}

}  // namespace rlx::cpu
