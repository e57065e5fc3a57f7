// Pools: over windows, over everything, and back.
#include <cmath>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/window.h"

namespace rlx::onnx {
namespace {

using ops::ReduceOp;

std::vector<int> last_axes(int rank, int count) {
  std::vector<int> out;
  for (int i = rank - count; i < rank; ++i) out.push_back(i);
  return out;
}

// Padding that the operator can take: the same at both ends, less than a window.
bool has_plain_padding(const WindowSpec& s) {
  for (size_t i = 0; i < s.kernel.size(); ++i) {
    if (s.low[i] != s.high[i] || s.low[i] >= s.kernel[i]) return false;
  }
  return true;
}

Tensor pooled(const Call& c, const Tensor& x, const WindowSpec& s, ReduceOp kind, double padding) {
  const int n = int(s.kernel.size());
  if (s.is_dilated() || n > 3) {
    const Tensor w = windows_of(c, x, s, padding);
    return rlx::reduce(w, {.kind = kind, .axes = last_axes(w.rank(), n), .keep_dim = false});
  }
  if (has_plain_padding(s))
    return rlx::pool(extended(x, s, padding),
                     {.kind = kind, .kernel_size = s.kernel, .stride = s.stride, .padding = s.low});
  WindowSpec all = s;  // the padding as part of the tensor
  for (int i = 0; i < n; ++i) {
    const size_t k = size_t(i);
    all.before[k] = all.before[k] + Dim(s.low[k]), all.after[k] = all.after[k] + Dim(s.high[k]);
  }
  return rlx::pool(extended(x, all, padding), {.kind = kind, .kernel_size = s.kernel, .stride = s.stride});
}

// The place of each maximum in the whole tensor, row-major or with the spatial axes in reverse order.
Tensor places_of_maxima(const Call& c, const Tensor& x, const WindowSpec& s, bool column_major) {
  const int n = int(s.kernel.size());
  const Dims spatial(x.shape().dims().end() - n, x.shape().dims().end());
  const Shape map(DType::i64, spatial);
  Tensor flat = c.full(spatial, DType::i64, 0);
  for (int k = 0; k < n; ++k) {
    const int i = column_major ? n - 1 - k : k;
    flat = flat * c.dim_value(spatial[size_t(i)]) + c.iota(map, i);
  }
  const Tensor values = windows_of(c, x, s, -std::numeric_limits<double>::infinity());
  const Tensor places = windows_of(c, flat, s, 0);
  const auto joined = [&](const Tensor& w) {
    Dims dims(w.shape().dims().begin(), w.shape().dims().end() - n);
    int64_t taps = 1;
    for (const int64_t k : s.kernel) taps *= k;
    dims.push_back(taps);
    return w.reshape(dims);
  };
  const Tensor v = joined(values), p = joined(places).expand(v.shape().dims());
  const Tensor at = rlx::argmax(v, {.axis = -1, .keep_dim = true, .dtype = DType::i64});
  const Tensor best = rlx::take_along(p, at, {.axis = -1}).squeeze(-1);
  Dims maps(size_t(x.rank()), 1);
  maps[0] = x.dim(0), maps[1] = x.dim(1);
  const Tensor base =
      c.iota(Shape(DType::i64, {x.dim(0) * x.dim(1)}), 0).reshape(maps) * c.dim_value(product(spatial));
  return best + base;
}

Items max_pool(Call& c) {
  const Tensor x = c.in(0);
  const WindowSpec s = read_window(c, x.shape(), c.integers("kernel_shape"));
  const bool column_major = c.flag("storage_order");
  Items out{pooled(c, x, s, ReduceOp::max, -std::numeric_limits<double>::infinity())};
  if (c.node().outputs.size() > 1) out.push_back(places_of_maxima(c, x, s, column_major));
  return out;
}

}  // namespace

Tensor average_pooled(const Call& c, const Tensor& x) {
  const WindowSpec s = read_window(c, x.shape(), c.integers("kernel_shape"));
  const bool count_pad = c.flag("count_include_pad");
  if (!s.is_dilated() && !s.is_extended() && has_plain_padding(s) && s.kernel.size() <= 3) {
    return rlx::pool(x, {.kind = ReduceOp::mean,
                         .kernel_size = s.kernel,
                         .stride = s.stride,
                         .padding = s.low,
                         .count_include_pad = count_pad});
  }
  // Sums over windows, divided by how many of their places count.
  const int n = int(s.kernel.size());
  const Dims spatial(x.shape().dims().end() - n, x.shape().dims().end());
  Tensor ones = c.full(spatial, x.dtype(), 1);
  WindowSpec counted = s;
  if (count_pad) {
    Dims low, high;
    for (int i = 0; i < n; ++i) low.push_back(s.low[size_t(i)]), high.push_back(s.high[size_t(i)]);
    ones = rlx::pad(ones, {.low = low, .high = high, .value = 1});
    counted.low.assign(size_t(n), 0), counted.high.assign(size_t(n), 0);
    if (c.text("auto_pad", "NOTSET").starts_with("SAME")) {  // its padding counts too
      ones = rlx::pad(ones, {.low = s.before, .high = s.after, .value = 1});
      counted.before.assign(size_t(n), Dim(0)), counted.after.assign(size_t(n), Dim(0));
    }
  }
  return pooled(c, x, s, ReduceOp::sum, 0) / pooled(c, ones, counted, ReduceOp::sum, 0);
}

namespace {

Items average_pool(Call& c) { return {average_pooled(c, c.in(0))}; }

Tensor power(const Tensor& x, double p) {
  const Tensor a = rlx::abs(x);
  return p == 1 ? a : p == 2 ? a * a : a.pow(p);
}

Tensor root(const Tensor& x, double p) { return p == 1 ? x : p == 2 ? rlx::sqrt(x) : x.pow(1 / p); }

Items lp_pool(Call& c) {
  const Tensor x = c.in(0);
  const double p = double(c.integer("p", 2));
  const WindowSpec s = read_window(c, x.shape(), c.integers("kernel_shape"));
  return {root(pooled(c, power(x, p), s, ReduceOp::sum, 0), p)};
}

template <ReduceOp kKind>
Items global_pool(Call& c) {
  const Tensor x = c.in(0);
  return {rlx::reduce(x, {.kind = kKind, .axes = last_axes(x.rank(), x.rank() - 2), .keep_dim = true})};
}

Items global_lp_pool(Call& c) {
  const Tensor x = c.in(0);
  const double p = double(c.integer("p", 2));
  return {root(power(x, p).sum(last_axes(x.rank(), x.rank() - 2), true), p)};
}

// Values go back to the places they were taken from; all others are 0.
Items max_unpool(Call& c) {
  const Tensor x = c.in(0);
  const auto kernel = c.integers("kernel_shape");
  const size_t n = kernel.size();
  const auto stride = c.integers("strides", std::vector<int64_t>(n, 1));
  const auto pads = c.integers("pads", std::vector<int64_t>(2 * n, 0));
  Dims natural{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < n; ++i)
    natural.push_back((x.dim(int(i) + 2) - Dim(1)) * Dim(stride[i]) + Dim(kernel[i]) -
                      Dim(pads[i] + pads[i + n]));
  Dims out = natural;
  if (c.has(2)) out = c.dims(2, "the size of the output");
  // Places count in the tensor that was pooled, which has the natural size.
  const Dim count = x.shape().num_elements();
  Tensor at = c.in(1).cast(DType::i64);
  if (out != natural) {
    Tensor rest = at, flat;
    std::vector<Tensor> parts;
    for (size_t i = natural.size(); i-- > 0;) {
      const Tensor size = c.dim_value(natural[i]);
      parts.insert(parts.begin(), rlx::rem(rest, size));
      rest = rlx::div(rest, size);
    }
    flat = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) flat = flat * c.dim_value(out[i]) + parts[i];
    at = flat;
  }
  const Tensor zeros = c.full({product(out)}, x.dtype(), 0);
  return {rlx::scatter(zeros, at.reshape({count}), x.reshape({count})).reshape(out)};
}

}  // namespace

std::span<const Entry> pool_entries() {
  static const std::vector<Entry> kEntries{
      {"AveragePool", 1, average_pool, BoundsRule::rows},
      {"GlobalAveragePool", 1, global_pool<ReduceOp::mean>, BoundsRule::rows},
      {"GlobalLpPool", 2, global_lp_pool, BoundsRule::rows},
      {"GlobalMaxPool", 1, global_pool<ReduceOp::max>, BoundsRule::rows},
      {"LpPool", 2, lp_pool, BoundsRule::rows},
      {"MaxPool", 1, max_pool, BoundsRule::rows},
      {"MaxUnpool", 9, max_unpool},
  };
  return kEntries;
}

}  // namespace rlx::onnx
