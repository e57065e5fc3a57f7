#include "rlx/onnx/window.h"

#include <algorithm>

#include "rlx/lang/operators.h"

namespace rlx::onnx {

bool WindowSpec::is_dilated() const {
  return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; });
}

bool WindowSpec::is_symmetric() const {
  return low == high && std::all_of(round_up.begin(), round_up.end(), [](int64_t v) { return v == 0; });
}

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
  s.round_up.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const int64_t span = s.dilation[i] * (s.kernel[i] - 1) + 1;
    const Dim size = x.dim(int(i) + 2);
    if (mode == "VALID") s.low[i] = s.high[i] = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      // As many windows as strides fit; what they need beyond the input is divided between both ends.
      int64_t total = span - s.stride[i];
      if (s.stride[i] != 1) {
        const int64_t v = size.value();
        total = ((v + s.stride[i] - 1) / s.stride[i] - 1) * s.stride[i] + span - v;
      }
      total = std::max<int64_t>(total, 0);
      s.low[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      s.high[i] = total - s.low[i];
    } else if (mode != "NOTSET" && mode != "VALID") {
      throw c.wrong("auto_pad is '", mode, "'");
    }
    if (ceil) {
      const int64_t v = size.value(), room = v + s.low[i] + s.high[i] - span;
      int64_t count = (room + s.stride[i] - 1) / s.stride[i] + 1;
      // A last window that would start behind the input is left out.
      if ((count - 1) * s.stride[i] >= v + s.low[i]) --count;
      s.round_up[i] = std::max<int64_t>(0, (count - 1) * s.stride[i] - room);
    }
  }
  return s;
}

Tensor windows_of(const Call& c, const Tensor& x, const WindowSpec& s, double value) {
  const int n = int(s.kernel.size()), first = x.rank() - n;
  Dims low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  for (int i = 0; i < n; ++i) {
    low[size_t(first + i)] = s.low[size_t(i)];
    high[size_t(first + i)] = s.high[size_t(i)] + s.round_up[size_t(i)];
  }
  Tensor y = rlx::pad(x, {.low = low, .high = high, .value = value});
  // Axis after axis becomes [out, kernel] by gathering; then the kernels go to the end.
  std::vector<int> outs, kernels;
  for (int i = 0; i < n; ++i) {
    const size_t k = size_t(i);
    const int axis = first + 2 * i;
    const int64_t span = s.dilation[k] * (s.kernel[k] - 1) + 1, size = y.dim(axis).value();
    if (size < span) throw c.wrong("a window of ", span, " on an axis of ", size);
    const int64_t count = (size - span) / s.stride[k] + 1;
    std::vector<int64_t> places;
    for (int64_t o = 0; o < count; ++o) {
      for (int64_t t = 0; t < s.kernel[k]; ++t) places.push_back(o * s.stride[k] + t * s.dilation[k]);
    }
    y = rlx::gather(y, c.constant(Literal::of<int64_t>({count, s.kernel[k]}, places)), {.axis = axis});
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
