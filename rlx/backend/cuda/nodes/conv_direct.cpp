// Convolutions with a thread for each result: those of integers and complex numbers, and what no tiles take.
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/nodes/conv_walk.h"
#include "rlx/ops/conv/conv.h"

namespace rlx::cuda {

// i input_dilation = o stride + k dilation - padding, absent where i is not whole or outside.
std::string conv_walk_text(const ConvWalk& t, const Arg& x, const Arg& w, const Arg& y) {
  const int axes = x.shape.rank() - 2;
  const int64_t channels = w.shape.dim(1).value();
  const int64_t per_group = y.shape.dim(1).value() / std::max<int64_t>(t.groups, 1);
  std::string body = cat("  auto sum = ", t.start, ";\n  const i64 first = i1 / ",
                         std::max<int64_t>(per_group, 1), " * ", channels, ";\n");
  std::string indent = "  ", from = cat("i0 * i64(", x.layout.strides[0], ")"),
              weight = cat("i1 * i64(", w.layout.strides[0], ")");
  for (int d = 0; d < axes; ++d) {
    const auto k = size_t(d);
    body +=
        cat(indent, "for (int k", d, " = 0; k", d, " < ", w.shape.dim(d + 2).value(), "; ++k", d, ") {\n");
    indent += "  ";
    body += cat(indent, "const i64 p", d, " = i", d + 2, " * i64(", t.stride[k], ") + k", d, " * i64(",
                t.dilation[k], ") - i64(", t.padding[k], ");\n");
    const int64_t step = t.input_dilation.empty() ? 1 : t.input_dilation[k];
    if (step != 1) body += cat(indent, "if (p", d, " % i64(", step, ") != 0) continue;\n");
    body += cat(indent, "const i64 q", d, " = p", d, " / i64(", step, ");\n");
    body += cat(indent, "if (q", d, " < 0 || q", d, " >= ", x.shape.dim(d + 2).value(), ") continue;\n");
    from += cat(" + q", d, " * i64(", x.layout.strides[k + 2], ")");
    weight += cat(" + k", d, " * i64(", w.layout.strides[k + 2], ")");
  }
  body += cat(indent, "for (int c = 0; c < ", channels, "; ++c) {\n");
  body += cat(indent, "  const auto a = x[", from, " + (first + c) * i64(", x.layout.strides[1], ")];\n");
  body += cat(indent, "  const auto b = w[", weight, " + c * i64(", w.layout.strides[1], ")];\n");
  body += cat(indent, "  sum = ", t.next, ";\n", indent, "}\n");
  for (int d = 0; d < axes; ++d) body += "  }\n";
  return body;
}

namespace {

Support accepts(const Request& r) {
  if (is_storage_only(r.in[0].dtype()) || r.in[1].dtype() != r.in[0].dtype())
    return Support::no("a convolution of ", r.in[0].dtype(), " and ", r.in[1].dtype());
  return Support::yes();
}

// Sums of f32 and narrower are in f32, of f64 in f64, of integers in i64, of which the low bits are kept, of complex numbers in f64.
std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  const Arg &x = r.in[0], &w = r.in[1], &y = r.out[0];
  const DType t = x.dtype();
  const std::string_view type = is_complex(t) ? "c64" : memory_type(t);
  const std::string_view acc = is_complex(t)     ? "c128"
                               : is_integer(t)   ? "i64"
                               : t == DType::f64 ? "f64"
                                                 : "f32";
  const std::string wide_a = cat("as_", acc, "(a)"), wide_b = cat("as_", acc, "(b)");
  const std::string next = is_float(t) ? cat("op_fma(", wide_a, ", ", wide_b, ", sum)")
                                       : cat("op_add(sum, op_mul(", wide_a, ", ", wide_b, "))");
  const std::string body = conv_walk_text({a.stride, a.padding, a.dilation, a.input_dilation,
                                           a.groups.value(), cat(acc, "{}"), next},
                                          x, w, y) +
                           "  put(y[e], sum);\n";
  Source source = element_kernel("conv", sizes_of(y.shape),
                                 cat("const ", type, "* x, const ", type, "* w, ", type, "* y"), body);
  if (is_complex(t)) source.text = kComplexNumbers + source.text;
  return element_step(device_of(r), source, 2, 1, y.shape.elements(), "a thread for each result");
}

}  // namespace

void add_conv_direct(KernelTable& table) { table.add<ops::Conv>({"conv_direct", accepts, prepare}); }

}  // namespace rlx::cuda
