// Convolution in its general form, sliding windows and their sums, as one thread for each result.
#include "rlx/ops/conv/windows.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/conv/conv.h"

namespace rlx::cuda {
namespace {

std::string typed(const Arg& x, std::string_view name, bool result = false) {
  return cat(result ? "" : "const ", memory_type(x.dtype()), "* ", name);
}

Support real_numbers(const Request& r) {
  const DType t = r.in[0].dtype();
  if (is_complex(t) || is_storage_only(t) || t == DType::bool_) return Support::no("no sums of ", t);
  return Support::yes();
}

std::string_view sum_type(DType t) { return is_integer(t) ? "i64" : t == DType::f64 ? "f64" : "f32"; }

Support accepts_conv(const Request& r) {
  if (!is_float(r.in[0].dtype()) || r.in[1].dtype() != r.in[0].dtype())
    return Support::no("a convolution of ", r.in[0].dtype(), " and ", r.in[1].dtype());
  return real_numbers(r);
}

// i input_dilation = o stride + k dilation - padding, absent where i is not whole or outside.
std::unique_ptr<Step> prepare_conv(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  const Arg &x = r.in[0], &w = r.in[1], &y = r.out[0];
  const int axes = x.shape.rank() - 2;
  const int64_t channels = w.shape.dim(1).value();
  const int64_t per_group = y.shape.dim(1).value() / std::max<int64_t>(a.groups.value(), 1);
  const std::string_view acc = sum_type(x.dtype());
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

std::unique_ptr<Step> prepare_windows(const Request& r) {
  const auto& a = r.node.as<ops::Windows>();
  const Arg &x = r.in[0], &y = r.out[0];
  const size_t n = a.kernel_size.size(), lead = size_t(x.shape.rank()) - n;
  const std::string_view word = word_type(dtype_size(x.dtype()));
  std::string body = "  bool inside = true;\n";
  for (size_t d = 0; d < lead; ++d) body += cat("  const i64 j", d, " = i", d, ";\n");
  for (size_t k = 0; k < n; ++k) {
    body += cat("  const i64 j", lead + k, " = i", lead + k, " * i64(", a.stride[k], ") + i", lead + n + k,
                " - i64(", a.padding[k], ");\n  inside = inside && j", lead + k, " >= 0 && j", lead + k,
                " < ", x.shape.dim(int(lead + k)).value(), ";\n");
  }
  body += cat("  y[e] = inside ? x[", offset_text(x.layout.strides, "j"), "] : ", word, "(0);\n");
  const Source source =
      element_kernel("windows", sizes_of(y.shape), cat("const ", word, "* x, ", word, "* y"), body);
  return element_step(device_of(r), source, 1, 1, y.shape.elements(), "element by element");
}

Support accepts_any(const Request&) { return Support::yes(); }

// Each place gathers the windows that cover it: o stride = i + padding - k.
std::unique_ptr<Step> prepare_windows_sum(const Request& r) {
  const auto& a = r.node.as<ops::WindowsSum>();
  const Arg &x = r.in[0], &y = r.out[0];
  const size_t n = a.stride.size(), lead = size_t(y.shape.rank()) - n;
  const std::string_view acc = sum_type(x.dtype());
  std::string body = cat("  ", acc, " sum = 0;\n"), indent = "  ", from = "i64(0)";
  for (size_t d = 0; d < lead; ++d) from += cat(" + i", d, " * i64(", x.layout.strides[d], ")");
  for (size_t k = 0; k < n; ++k) {
    const size_t o = lead + k, w = lead + n + k;
    body +=
        cat(indent, "for (int k", k, " = 0; k", k, " < ", x.shape.dim(int(w)).value(), "; ++k", k, ") {\n");
    indent += "  ";
    body += cat(indent, "const i64 p", k, " = i", o, " + i64(", a.padding[k], ") - k", k, ";\n");
    body += cat(indent, "if (p", k, " < 0 || p", k, " % ", a.stride[k], " != 0 || p", k, " / ", a.stride[k],
                " >= ", x.shape.dim(int(o)).value(), ") continue;\n");
    from += cat(" + p", k, " / ", a.stride[k], " * i64(", x.layout.strides[o], ") + k", k, " * i64(",
                x.layout.strides[w], ")");
  }
  body += cat(indent, "sum += as_", acc, "(x[", from, "]);\n");
  for (size_t k = 0; k < n; ++k) body += "  }\n";
  body += "  put(y[e], sum);\n";
  const Source source =
      element_kernel("windows_sum", sizes_of(y.shape), typed(x, "x") + ", " + typed(y, "y", true), body);
  return element_step(device_of(r), source, 1, 1, y.shape.elements(), "a thread for each result");
}

}  // namespace

void add_windows(KernelTable& table) {
  table.add<ops::Conv>({"conv_direct", accepts_conv, prepare_conv});
  table.add<ops::Windows>({"windows", accepts_any, prepare_windows});
  table.add<ops::WindowsSum>({"windows_sum", real_numbers, prepare_windows_sum});
}

}  // namespace rlx::cuda
