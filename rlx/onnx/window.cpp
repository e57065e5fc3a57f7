#include "rlx/onnx/window.h"

#include <algorithm>

#include "rlx/lang/operators.h"

namespace rlx::onnx {

bool WindowSpec::is_dilated() const {
  return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; });
}

bool WindowSpec::is_extended() const {
  const auto is_some = [](const Dim& d) { return !(d == Dim(0)); };
  return std::any_of(before.begin(), before.end(), is_some) ||
         std::any_of(after.begin(), after.end(), is_some);
}

namespace {

// How much a is above b, or 0; no part of it is negative.
Dim above(Dim a, Dim b) { return max(a, b) - b; }

// As many windows as strides fit; what they need beyond the input is divided between both ends.
void pad_to_same(WindowSpec& s, size_t i, Dim size, int64_t span, bool more_behind) {
  Dim total(std::max<int64_t>(span - s.stride[i], 0));
  if (s.stride[i] != 1)
    total = above((ceildiv(size, Dim(s.stride[i])) - Dim(1)) * Dim(s.stride[i]) + Dim(span), size);
  const Dim half = floordiv(total, Dim(2));
  const Dim low = more_behind ? half : total - half;
  if (total.is_static()) {
    s.low[i] = low.value(), s.high[i] = total.value() - low.value();
  } else {
    s.low[i] = s.high[i] = 0;
    s.before[i] = low, s.after[i] = total - low;
  }
}

// The count of windows is rounded up; a last window that would start behind the input is left out.
Dim beyond(const WindowSpec& s, size_t i, Dim size, int64_t span) {
  const Dim stride(s.stride[i]), start = size + Dim(s.low[i]) + s.before[i];
  const Dim room = start + Dim(s.high[i]) + s.after[i] - Dim(span);
  const Dim steps = ceildiv(room, stride);
  const Dim left_out = min(above(steps * stride + Dim(1), start), Dim(1));
  return above((steps - left_out) * stride, room);
}

}  // namespace

WindowSpec read_window(const Call& c, const Shape& x, std::vector<int64_t> kernel) {
  const size_t n = size_t(x.rank() - 2);
  WindowSpec s;
  s.kernel = std::move(kernel);
  const std::vector<int64_t> ones(n, 1);
  s.stride = c.integers("strides", ones);
  s.dilation = c.integers("dilations", ones);
  const auto pads = c.integers("pads", std::vector<int64_t>(2 * n, 0));
  const std::string mode = c.text("auto_pad", "NOTSET");
  const bool ceil = c.flag("ceil_mode");
  if (s.kernel.size() != n || s.stride.size() != n || s.dilation.size() != n || pads.size() != 2 * n)
    throw c.wrong("kernel ", s.kernel, ", strides ", s.stride, ", dilations ", s.dilation, " and pads ", pads,
                  " for ", n, " spatial axes");
  for (size_t i = 0; i < n; ++i) {
    if (s.kernel[i] < 1 || s.stride[i] < 1 || s.dilation[i] < 1)
      throw c.wrong("kernel ", s.kernel, ", strides ", s.stride, " and dilations ", s.dilation,
                    " must be 1 or more");
  }
  s.low.assign(pads.begin(), pads.begin() + ptrdiff_t(n));
  s.high.assign(pads.begin() + ptrdiff_t(n), pads.end());
  s.before.assign(n, Dim(0)), s.after.assign(n, Dim(0));
  for (size_t i = 0; i < n; ++i) {
    const int64_t span = s.dilation[i] * (s.kernel[i] - 1) + 1;
    const Dim size = x.dim(int(i) + 2);
    if (mode == "VALID") s.low[i] = s.high[i] = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      pad_to_same(s, i, size, span, mode == "SAME_UPPER");
    } else if (mode != "NOTSET" && mode != "VALID") {
      throw c.wrong("auto_pad is '", mode, "'");
    }
    if (ceil) s.after[i] = s.after[i] + beyond(s, i, size, span);
  }
  return s;
}

Tensor extended(const Tensor& x, const WindowSpec& s, double value) {
  if (!s.is_extended()) return x;
  const size_t first = size_t(x.rank()) - s.kernel.size();
  Dims low(first, 0), high(first, 0);
  low.insert(low.end(), s.before.begin(), s.before.end());
  high.insert(high.end(), s.after.begin(), s.after.end());
  return rlx::pad(x, {.low = low, .high = high, .value = value});
}

Tensor windows_of(const Call& c, const Tensor& x, const WindowSpec& s, double value) {
  const int n = int(s.kernel.size()), first = x.rank() - n;
  Dims low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  for (int i = 0; i < n; ++i) {
    low[size_t(first + i)] = Dim(s.low[size_t(i)]) + s.before[size_t(i)];
    high[size_t(first + i)] = Dim(s.high[size_t(i)]) + s.after[size_t(i)];
  }
  Tensor y = rlx::pad(x, {.low = low, .high = high, .value = value});
  // Axis after axis becomes [out, kernel] by gathering; then the kernels go to the end.
  std::vector<int> outs, kernels;
  for (int i = 0; i < n; ++i) {
    const size_t k = size_t(i);
    const int axis = first + 2 * i;
    const int64_t span = s.dilation[k] * (s.kernel[k] - 1) + 1;
    const Dim size = y.dim(axis);
    if (size.is_static() && size.value() < span) throw c.wrong("a window of ", span, " on an axis of ", size);
    const Shape places(DType::i64, {floordiv(size - Dim(span), Dim(s.stride[k])) + Dim(1), s.kernel[k]});
    y = rlx::gather(y, c.iota(places, 0) * double(s.stride[k]) + c.iota(places, 1) * double(s.dilation[k]),
                    {.axis = axis});
    outs.push_back(axis);
    kernels.push_back(axis + 1);
  }
  std::vector<int> perm;
  for (int i = 0; i < first; ++i) perm.push_back(i);
  perm.insert(perm.end(), outs.begin(), outs.end());
  perm.insert(perm.end(), kernels.begin(), kernels.end());
  return y.transpose(perm);
}

}  // namespace rlx::onnx
