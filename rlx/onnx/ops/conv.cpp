// Convolutions.
#include "rlx/lang/operators.h"
#include "rlx/onnx/product.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/window.h"

namespace rlx::onnx {
namespace {

Tensor with_bias(const Tensor& y, const Tensor& bias) {
  Dims dims(size_t(y.rank()), 1);
  dims[1] = bias.dim(0);
  return y + bias.reshape(dims);
}

Tensor convolved(const Call& c, const Tensor& input, const Tensor& w, const WindowSpec& s, int64_t groups) {
  const Tensor x = extended(input, s, 0);
  std::vector<int64_t> pads = s.low;
  pads.insert(pads.end(), s.high.begin(), s.high.end());
  const auto attrs = [&]<class Attrs>(Attrs a) {
    a.stride = s.stride, a.padding = pads, a.dilation = s.dilation, a.groups = int(groups);
    return a;
  };
  switch (x.rank()) {
    case 3:
      return rlx::conv1d(x, w, attrs(ops::Conv1d::Attrs{}));
    case 4:
      return rlx::conv2d(x, w, attrs(ops::Conv2d::Attrs{}));
    case 5:
      return rlx::conv3d(x, w, attrs(ops::Conv3d::Attrs{}));
    default:
      c.unsupported(cat("a convolution over ", x.rank() - 2, " axes"));
  }
}

WindowSpec spec_of(const Call& c, const Shape& x, const Shape& w) {
  if (x.rank() < 3 || w.rank() != x.rank()) throw c.wrong("the input is ", x, " and the weights are ", w);
  std::vector<int64_t> kernel;
  for (int i = 2; i < w.rank(); ++i) kernel.push_back(w.dim(i).value());
  return read_window(c, x, c.integers("kernel_shape", kernel));
}

}  // namespace

Items convolution(Call& c) {
  const Tensor x = c.in(0), w = c.in(1);
  const Tensor y = convolved(c, x, w, spec_of(c, x.shape(), w.shape()), c.integer("group", 1));
  return {c.has(2) ? with_bias(y, c.in(2)) : y};
}

namespace {

// Codes minus their zero points, as numbers in which sums of products are exact.
Tensor centred(const Call& c, int value, int zero, int channel_axis) {
  const Tensor x = c.in(value).cast(DType::f32);
  if (!c.has(zero)) return x;
  const Tensor z = c.in(zero).cast(DType::f32);
  if (z.rank() == 0 || z.shape().num_elements() == Dim(1)) return x - z.reshape({});
  Dims dims(size_t(x.rank()), 1);
  dims[size_t(channel_axis)] = z.dim(0);
  return x - z.reshape(dims);
}

Items conv_integer(Call& c) {
  const Tensor x = centred(c, 0, 2, 1), w = centred(c, 1, 3, 0);
  const WindowSpec s = spec_of(c, x.shape(), w.shape());
  return {convolved(c, x.cast(DType::f64), w.cast(DType::f64), s, c.integer("group", 1)).cast(DType::i32)};
}

Items conv_transpose(Call& c) {
  const Tensor x = c.in(0), w = c.in(1);
  const int n = x.rank() - 2;
  if (n < 1 || w.rank() != x.rank())
    throw c.wrong("the input is ", x.shape(), " and the weights are ", w.shape());
  std::vector<int64_t> kernel;
  for (int i = 2; i < w.rank(); ++i) kernel.push_back(w.dim(i).value());
  kernel = c.integers("kernel_shape", kernel);
  const std::vector<int64_t> ones(size_t(n), 1), zeros(size_t(n), 0);
  const auto stride = c.integers("strides", ones), dilation = c.integers("dilations", ones);
  auto extra = c.integers("output_padding", zeros);
  const auto size = c.integers("output_shape");
  const std::string auto_pad = c.text("auto_pad", "NOTSET");
  std::vector<int64_t> pads = c.integers("pads", std::vector<int64_t>(size_t(2 * n), 0));
  if (int(pads.size()) != 2 * n) throw c.wrong(pads.size(), " pads for ", n, " axes");
  if (auto_pad == "VALID") pads.assign(size_t(2 * n), 0);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!size.empty() || same) {
    for (int i = 0; i < n; ++i) {
      const size_t k = size_t(i);
      // What is made, less what is wanted, is cut off at both ends; where less is made than a
      // given size, zeros are added behind.
      const Dim in = x.dim(i + 2);
      int64_t total = extra[k] + (kernel[k] - 1) * dilation[k] + 1;
      if (size.empty()) {
        total -= stride[k];  // size in * stride
      } else {
        const size_t from = size.size() == size_t(n + 2) ? k + 2 : k;
        total += stride[k] * (in.value() - 1) - size.at(from);
      }
      const int64_t cut = std::max<int64_t>(total, 0);
      if (total < 0 && !size.empty()) extra[k] -= total;
      const int64_t half = cut / 2;
      pads[k] = auto_pad == "SAME_UPPER" ? half : cut - half;
      pads[k + size_t(n)] = cut - pads[k];
    }
  }
  const auto attrs = [&]<class Attrs>(Attrs a) {
    a.stride = stride, a.padding = pads, a.dilation = dilation, a.output_padding = extra;
    a.groups = int(c.integer("group", 1));
    return a;
  };
  Tensor y;
  switch (n) {
    case 1:
      y = rlx::conv_transpose1d(x, w, attrs(ops::ConvTranspose1d::Attrs{}));
      break;
    case 2:
      y = rlx::conv_transpose2d(x, w, attrs(ops::ConvTranspose2d::Attrs{}));
      break;
    case 3:
      y = rlx::conv_transpose3d(x, w, attrs(ops::ConvTranspose3d::Attrs{}));
      break;
    default:
      c.unsupported(cat("a convolution over ", n, " axes"));
  }
  return {c.has(2) ? with_bias(y, c.in(2)) : y};
}

// Columns of windows [N, C k, windows] added up where they overlap.
Items col2im(Call& c) {
  const Tensor x = c.in(0);
  const auto image = c.known_ints(1, "the size of the image"), block = c.known_ints(2, "the size of a block");
  const size_t n = image.size();
  const std::vector<int64_t> ones(n, 1);
  const auto stride = c.integers("strides", ones), dilation = c.integers("dilations", ones);
  const auto pads = c.integers("pads", std::vector<int64_t>(2 * n, 0));
  int64_t taps = 1;
  for (const int64_t b : block) taps *= b;
  const Dim batch = x.dim(0), channels = floordiv(x.dim(1), taps);
  // Each column is a pixel of an image of one channel per tap, spread by a kernel that holds a one at its tap.
  Dims grid{batch * channels, taps};
  for (size_t i = 0; i < n; ++i) {
    const int64_t span = image[i] + pads[i] + pads[i + n] - dilation[i] * (block[i] - 1) - 1;
    grid.push_back(span / stride[i] + 1);
  }
  Dims kernel{taps, 1};
  kernel.insert(kernel.end(), block.begin(), block.end());
  const Tensor taps_kernel = c.iota(Shape(DType::i64, {taps, taps}), 0)
                                 .eq(c.iota(Shape(DType::i64, {taps, taps}), 1))
                                 .cast(x.dtype())
                                 .reshape(kernel);
  const auto attrs = [&]<class Attrs>(Attrs a) {
    a.stride = stride, a.padding = pads, a.dilation = dilation;
    for (size_t i = 0; i < n; ++i) {
      const int64_t made =
          (grid[i + 2].value() - 1) * stride[i] + dilation[i] * (block[i] - 1) + 1 - pads[i] - pads[i + n];
      a.output_padding.push_back(image[i] - made);
    }
    return a;
  };
  const Tensor spread = x.reshape(grid);
  Tensor y;
  switch (n) {
    case 1:
      y = rlx::conv_transpose1d(spread, taps_kernel, attrs(ops::ConvTranspose1d::Attrs{}));
      break;
    case 2:
      y = rlx::conv_transpose2d(spread, taps_kernel, attrs(ops::ConvTranspose2d::Attrs{}));
      break;
    case 3:
      y = rlx::conv_transpose3d(spread, taps_kernel, attrs(ops::ConvTranspose3d::Attrs{}));
      break;
    default:
      c.unsupported(cat("an image of ", n, " axes"));
  }
  Dims out{batch, channels};
  out.insert(out.end(), image.begin(), image.end());
  return {y.reshape(out)};
}

}  // namespace

std::span<const Entry> conv_entries() {
  static const std::vector<Entry> kEntries{
      {"Col2Im", 18, col2im},
      {"Conv", 1, convolution, BoundsRule::rows},
      {"ConvInteger", 10, conv_integer, BoundsRule::rows},
      {"ConvTranspose", 1, conv_transpose, BoundsRule::rows},
  };
  return kEntries;
}

}  // namespace rlx::onnx
