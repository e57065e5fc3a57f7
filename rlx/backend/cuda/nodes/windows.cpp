// Sliding windows, their sums and pooling with its gradient, as one thread for each result.
#include "rlx/ops/conv/windows.h"

#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/conv/pool.h"

namespace rlx::cuda {
namespace {

Support has_sums(const Request& r) {
  const DType t = r.in[0].dtype();
  if (is_storage_only(t) || t == DType::bool_) return Support::no("no sums of ", t);
  return Support::yes();
}

std::string_view sum_type(DType t) {
  return is_complex(t) ? "c128" : is_integer(t) ? "i64" : t == DType::f64 ? "f64" : "f32";
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
  std::string body = cat("  ", acc, " sum{};\n"), indent = "  ", from = "i64(0)";
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
  body += cat(indent, "sum = op_add(sum, as_", acc, "(x[", from, "]));\n");
  for (size_t k = 0; k < n; ++k) body += "  }\n";
  body += "  put(y[e], sum);\n";
  const std::string_view type = is_complex(x.dtype()) ? "c64" : memory_type(x.dtype());
  Source source =
      element_kernel("windows_sum", sizes_of(y.shape), cat("const ", type, "* x, ", type, "* y"), body);
  if (is_complex(x.dtype())) source.text = kComplexNumbers + source.text;
  return element_step(device_of(r), source, 1, 1, y.shape.elements(), "a thread for each result");
}

// Windows of a whole image are rows of a reduction, which more threads share.
constexpr int64_t kMostTaps = 64;

Support accepts_pool(const Request& r) {
  const DType t = r.in[0].dtype();
  if (!is_float(t) || is_storage_only(t)) return Support::no("a pool of ", t);
  int64_t taps = 1;
  for (const int64_t k : r.node.as<ops::Pool>().kernel_size) taps *= k;
  if (taps > kMostTaps) return Support::no("windows of ", taps, " elements; at most ", kMostTaps);
  return Support::yes();
}

// x is read once and no window is written down. What lies outside takes no part.
std::unique_ptr<Step> prepare_pool(const Request& r) {
  const auto& a = r.node.as<ops::Pool>();
  const Arg &x = r.in[0], &y = r.out[0];
  const size_t n = a.kernel_size.size(), lead = size_t(x.shape.rank()) - n;
  const std::string_view acc = sum_type(x.dtype());
  const bool wide = x.dtype() == DType::f64, mean = a.kind == ops::ReduceOp::mean;
  const std::string infinity = wide ? "from_bits(0x7ff0000000000000ull)" : "from_bits(0x7f800000u)";
  const auto [op, first] = [&]() -> std::pair<const char*, std::string> {
    switch (a.kind) {
      case ops::ReduceOp::max:
        return {"Max", "-" + infinity};
      case ops::ReduceOp::min:
        return {"Min", infinity};
      case ops::ReduceOp::prod:
        return {"Prod", "1"};
      default:
        return {"Sum", "0"};
    }
  }();
  std::string body = cat("  ", acc, " all = ", first, ";\n  int count = 0;\n"), indent = "  ",
              from = "i64(0)";
  for (size_t d = 0; d < lead; ++d) from += cat(" + i", d, " * i64(", x.layout.strides[d], ")");
  for (size_t k = 0; k < n; ++k) {
    body += cat(indent, "#pragma unroll\n", indent, "for (int k", k, " = 0; k", k, " < ", a.kernel_size[k],
                "; ++k", k, ") {\n");
    indent += "  ";
    body += cat(indent, "const i64 j", k, " = i", lead + k, " * i64(", a.stride[k], ") + k", k, " - i64(",
                a.padding[k], ");\n", indent, "if (j", k, " < 0 || j", k,
                " >= ", x.shape.dim(int(lead + k)).value(), ") continue;\n");
    from += cat(" + j", k, " * i64(", x.layout.strides[lead + k], ")");
  }
  body += cat(indent, "all = ", op, "::of(all, as_", acc, "(x[", from, "]));\n", indent, "++count;\n");
  for (size_t k = 0; k < n; ++k) body += "  }\n";
  int64_t taps = 1;
  for (const int64_t k : a.kernel_size) taps *= k;
  body += cat("  put(y[e], ",
              mean ? cat("all / ", acc, "(", a.count_include_pad ? cat(taps) : "count", ")") : "all", ");\n");
  const Source source =
      element_kernel("pool", sizes_of(y.shape), typed(x, "x") + ", " + typed(y, "y", true), body);
  return element_step(device_of(r), source, 1, 1, y.shape.elements(), "a thread for each result");
}

// ---- the gradient of a max pool ----

constexpr int64_t kNowhere = 255;  // no tap

Support accepts_max_gradient(const Request& r) {
  const DType t = r.in[0].dtype();
  if (!is_float(t) || is_storage_only(t)) return Support::no("a pool of ", t);
  const auto& size = r.node.as<ops::MaxPool2dBackward>().kernel_size;
  if (size[0] * size[1] >= kNowhere)
    return Support::no("windows of ", size[0] * size[1], " elements; below ", kNowhere);
  return Support::yes();
}

// dx[i] = sum of dy[o] over the windows o whose first maximum is x[i]. One kernel finds the tap of that maximum for each window, a byte, and reads x once; in the
// second a place looks at the windows that cover it. NaN is nobody's maximum.
std::string first_maximum_text(const ops::MaxPool2dBackward::Attrs& a, const Arg& x,
                               const std::string& lead) {
  const std::string_view acc = sum_type(x.dtype());
  const size_t n = x.layout.strides.size() - 2;
  std::string body = cat("  ", acc, " most = 0;\n  int tap = ", kNowhere, ";\n  bool valid = true;\n");
  for (size_t k = 0; k < 2; ++k) {
    body +=
        cat("  #pragma unroll\n  for (int k", k, " = 0; k", k, " < ", a.kernel_size[k], "; ++k", k,
            ") {\n  const i32 j", k, " = i32(i", n + k, ") * ", a.stride[k], " + k", k, " - ", a.padding[k],
            ";\n  if (j", k, " < 0 || j", k, " >= ", x.shape.dim(int(n + k)).value(), ") continue;\n");
  }
  return cat(body, "  const ", acc, " v = as_", acc, "(x[", lead, " + i64(j0) * ", x.layout.strides[n],
             " + i64(j1) * ", x.layout.strides[n + 1],
             "]);\n  valid = valid && v == v;\n  if (tap == ", kNowhere,
             " || v > most) most = v, tap = k0 * ", a.kernel_size[1],
             " + k1;\n  }\n  }\n  taps[e] = u8(valid ? tap : ", kNowhere, ");\n");
}

// Windows o with 0 <= i + padding - o stride < kernel_size.
std::string covering_windows_text(const ops::MaxPool2dBackward::Attrs& a, const Arg& dy,
                                  const std::string& dy_lead, const std::string& taps_lead) {
  const std::string_view acc = sum_type(dy.dtype());
  const size_t n = dy.layout.strides.size() - 2;
  const int64_t columns = dy.shape.dim(int(n) + 1).value();
  std::string body = cat("  ", acc, " sum = 0;\n");
  for (size_t k = 0; k < 2; ++k) {
    const int64_t reach = (a.kernel_size[k] - 1) / a.stride[k];
    body += cat("  const i32 p", k, " = i32(i", n + k, ") + ", a.padding[k], ", l", k, " = p", k, " / ",
                a.stride[k], ";\n  #pragma unroll\n  for (int u", k, " = 0; u", k, " <= ", reach, "; ++u", k,
                ") {\n  const i32 o", k, " = l", k, " - u", k, ", t", k, " = p", k, " - o", k, " * ",
                a.stride[k], ";\n  if (o", k, " < 0 || o", k, " >= ", dy.shape.dim(int(n + k)).value(),
                " || t", k, " >= ", a.kernel_size[k], ") continue;\n");
  }
  return cat(body, "  if (taps[", taps_lead, " + i64(o0) * ", columns, " + o1] == t0 * ", a.kernel_size[1],
             " + t1) sum += as_", acc, "(dy[", dy_lead, " + i64(o0) * ", dy.layout.strides[n],
             " + i64(o1) * ", dy.layout.strides[n + 1], "]);\n  }\n  }\n  put(y[e], sum);\n");
}

std::unique_ptr<Step> prepare_max_gradient(const Request& r) {
  const auto& a = r.node.as<ops::MaxPool2dBackward>();
  const Arg &x = r.in[0], &dy = r.in[1];
  const auto lead = [](std::vector<int64_t> strides) {
    strides.resize(strides.size() - 2);
    return offset_text(strides);
  };
  const int64_t places = x.shape.elements(), windows = dy.shape.elements();
  if (places == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const auto get = [&](const Source& s) { return device_of(r).functions().get(s); };
  const FunctionRef maxima =
                        get(element_kernel("first_maxima", sizes_of(dy.shape), typed(x, "x") + ", u8* taps",
                                           first_maximum_text(a, x, lead(x.layout.strides)))),
                    sums = get(element_kernel(
                        "max_pool_gradient", sizes_of(x.shape),
                        "const u8* taps, " + typed(dy, "dy") + ", " + typed(r.out[0], "y", true),
                        covering_windows_text(a, dy, lead(dy.layout.strides),
                                              lead(row_major_strides(dy.shape.dims())))));
  return make_gpu_step(
      "the tap of each maximum, then a thread for each result",
      [=](Stream& s, const Launch& l) {
        (*maxima)(s.handle, blocks_for(windows), {256}, 0, l.in[0], l.workspace);
        (*sums)(s.handle, blocks_for(places), {256}, 0, l.workspace, l.in[1], l.out[0]);
      },
      size_t(windows));
}

}  // namespace

void add_windows(KernelTable& table) {
  table.add<ops::Pool>({"pool", accepts_pool, prepare_pool});
  table.add<ops::MaxPool2dBackward>({"max_pool_gradient", accepts_max_gradient, prepare_max_gradient});
  table.add<ops::Windows>({"windows", accepts_any, prepare_windows});
  table.add<ops::WindowsSum>({"windows_sum", has_sums, prepare_windows_sum});
}

}  // namespace rlx::cuda
