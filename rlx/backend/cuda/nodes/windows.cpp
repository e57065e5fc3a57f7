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

Support accepts_max_gradient(const Request& r) {
  const DType t = r.in[0].dtype();
  return is_float(t) && !is_storage_only(t) ? Support::yes() : Support::no("a pool of ", t);
}

// dx[i] = sum of dy[o] over the windows o whose first maximum is x[i]. A place looks through the windows that cover it: it must be larger than all in front of it
// there and not smaller than those behind. Neighbours share windows, so x is read from the caches.
std::unique_ptr<Step> prepare_max_gradient(const Request& r) {
  const auto& a = r.node.as<ops::MaxPool2dBackward>();
  const Arg &x = r.in[0], &dy = r.in[1];
  const std::string_view acc = sum_type(x.dtype());
  const size_t lead = size_t(x.shape.rank()) - 2;
  const auto read = [&](const Arg& from, const char* name, const std::string& row,
                        const std::string& column) {
    const auto& s = from.layout.strides;
    const std::vector<int64_t> first(s.begin(), s.begin() + ptrdiff_t(lead));
    return cat("as_", acc, "(", name, "[", offset_text(first), " + ", row, " * i64(", s[lead], ") + ", column,
               " * i64(", s[lead + 1], ")])");
  };
  std::string body = cat("  const ", acc, " mine = ", read(x, "x", cat("i", lead), cat("i", lead + 1)),
                         ";\n  ", acc, " sum = 0;\n");
  for (size_t k = 0; k < 2; ++k) {
    body += cat("  for (int k", k, " = 0; k", k, " < ", a.kernel_size[k], "; ++k", k, ") {\n  const i64 p", k,
                " = i", lead + k, " + i64(", a.padding[k], ") - k", k, ", o", k, " = p", k, " / ",
                a.stride[k], ";\n  if (p", k, " < 0 || p", k, " % ", a.stride[k], " != 0 || o", k,
                " >= ", dy.shape.dim(int(lead + k)).value(), ") continue;\n");
  }
  body += "  bool first = mine == mine;\n";
  for (size_t k = 0; k < 2; ++k) {
    body += cat("  for (int u", k, " = 0; u", k, " < ", a.kernel_size[k], " && first; ++u", k,
                ") {\n  const i64 j", k, " = i", lead + k, " - k", k, " + u", k, ";\n  if (j", k, " < 0 || j",
                k, " >= ", x.shape.dim(int(lead + k)).value(), ") continue;\n");
  }
  body += cat("  const ", acc, " other = ", read(x, "x", "j0", "j1"),
              ";\n  first = u0 < k0 || (u0 == k0 && u1 < k1) ? other < mine : other <= mine;\n  }\n  }\n"
              "  if (first) sum += ",
              read(dy, "dy", "o0", "o1"), ";\n  }\n  }\n  put(y[e], sum);\n");
  const Source source =
      element_kernel("max_pool_gradient", sizes_of(x.shape),
                     typed(x, "x") + ", " + typed(dy, "dy") + ", " + typed(r.out[0], "y", true), body);
  return element_step(device_of(r), source, 2, 1, x.shape.elements(), "a thread for each result");
}

}  // namespace

void add_windows(KernelTable& table) {
  table.add<ops::Pool>({"pool", accepts_pool, prepare_pool});
  table.add<ops::MaxPool2dBackward>({"max_pool_gradient", accepts_max_gradient, prepare_max_gradient});
  table.add<ops::Windows>({"windows", accepts_any, prepare_windows});
  table.add<ops::WindowsSum>({"windows_sum", has_sums, prepare_windows_sum});
}

}  // namespace rlx::cuda
