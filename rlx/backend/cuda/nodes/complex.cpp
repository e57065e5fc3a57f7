// Operators of complex numbers, which regions do not know: elementwise ones, a choice between any two arrays, sums and products.
#include "rlx/backend/cuda/kernels/complex.h"

#include <optional>

#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/regions.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/region/from_graph.h"

namespace rlx::cuda {
namespace {

/// One element of the result from a, b of its operands; nothing for operators that are not among these.
std::optional<std::string_view> formula_of(const ir::Node& n) {
  if (n.is<ops::Add>()) return "a + b";
  if (n.is<ops::Sub>()) return "a - b";
  if (n.is<ops::Mul>()) return "as_c64(as_c128(a) * as_c128(b))";
  if (n.is<ops::Div>()) return "quotient(a, b)";
  if (n.is<ops::MakeComplex>()) return "c64{f32(a), f32(b)}";
  if (n.is<ops::Compare>()) return n.as<ops::Compare>().kind == ops::CompareOp::eq ? "a == b" : "!(a == b)";
  if (n.is<ops::Neg>()) return "c64{-a.x, -a.y}";
  if (n.is<ops::Exp>()) return "exponential(a)";
  if (n.is<ops::Log>()) return "logarithm(a)";
  if (n.is<ops::Sqrt>()) return "square_root(a)";
  if (n.is<ops::Conjugate>()) return "c64{a.x, -a.y}";
  if (n.is<ops::ComplexNormSq>()) return "f32(f64(a.x) * a.x + f64(a.y) * a.y)";
  if (n.is<ops::RealPart>()) return "a.x";
  if (n.is<ops::ImagPart>()) return "a.y";
  if (n.is<ops::IsFinite>()) return "is_finite(a.x) && is_finite(a.y)";
  if (n.is<ops::IsNan>()) return "a.x != a.x || a.y != a.y";
  if (n.is<ops::StopGradient>()) return "a";
  return std::nullopt;
}

std::string_view number_type(DType t) { return is_complex(t) ? "c64" : memory_type(t); }

bool has_complex(const Request& r) {
  for (const Arg& x : r.in) {
    if (is_complex(x.dtype())) return true;
  }
  return is_complex(r.out[0].dtype());
}

/// Where an operand's element for i0, i1, .. of the result lies: an axis of size 1 repeats.
std::string broadcast_offset(const Arg& x, const Shape& y) {
  std::vector<int64_t> strides(size_t(y.rank()), 0);
  const int missing = y.rank() - x.shape.rank();
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (x.shape.dim(axis) != Dim(1)) strides[size_t(axis + missing)] = x.layout.strides[size_t(axis)];
  }
  return offset_text(strides);
}

Support accepts(const Request& r) {
  if (!formula_of(r.node)) return Support::no("not among its operators");
  return has_complex(r) ? Support::yes() : Support::no("no complex numbers");
}

std::unique_ptr<Step> prepare(const Request& r) {
  const Shape& y = r.out[0].shape;
  std::string parameters, body;
  for (size_t i = 0; i < r.in.size(); ++i) {
    parameters += cat("const ", number_type(r.in[i].dtype()), "* x", i, ", ");
    body += cat("  const auto ", i == 0 ? "a" : "b", " = x", i, "[", broadcast_offset(r.in[i], y), "];\n");
  }
  body += cat("  y[e] = ", *formula_of(r.node), ";\n");
  Source s =
      element_kernel("complex_elements", sizes_of(y), parameters + cat(number_type(y.dtype()), "* y"), body);
  s.text = cat(kComplexNumbers, kComplexFunctions, s.text);
  auto step = element_step(device_of(r), s, r.in.size(), 1, y.elements(), "element by element");
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (r.in[i].shape == y && r.in[i].is_row_major()) step->in_place.push_back(int(i));
  }
  return step;
}

// ---- a choice between two arrays, whatever they hold ----

Support accepts_choice(const Request& r) {
  if (!r.node.is<ops::Where>()) return Support::no("not among its operators");
  if (is_storage_only(r.in[0].dtype())) return Support::no("the condition is ", r.in[0].dtype());
  return Support::yes();
}

std::unique_ptr<Step> prepare_choice(const Request& r) {
  const Shape& y = r.out[0].shape;
  const std::string_view word = word_type(dtype_size(y.dtype()));
  const std::string body =
      cat("  const bool yes = as_f64(x0[", broadcast_offset(r.in[0], y), "]) != 0;\n  y[e] = yes ? x1[",
          broadcast_offset(r.in[1], y), "] : x2[", broadcast_offset(r.in[2], y), "];\n");
  const Source s = element_kernel("choice", sizes_of(y),
                                  cat("const ", memory_type(r.in[0].dtype()), "* x0, const ", word,
                                      "* x1, const ", word, "* x2, ", word, "* y"),
                                  body);
  return element_step(device_of(r), s, 3, 1, y.elements(), "element by element");
}

// ---- sums, means and products ----

/// The same reduction of real parts and of imaginary parts, which are one more axis of two.
region::Built parts_region(const Request& r) {
  const auto& a = r.node.as<ops::Reduce>();
  const auto parts = [](const Shape& s) {
    Dims dims = s.dims();
    dims.push_back(2);
    return Shape(DType::f32, dims);
  };
  ir::Graph body("parts");
  const ir::Expr x{&body, body.input("x", parts(r.in[0].shape))};
  body.set_outputs({ops::reduce(x, a.kind, a.axes, a.keep_dim)});
  region::Layout from;
  for (const int64_t stride : r.in[0].layout.strides) from.strides.push_back(2 * stride);
  from.strides.push_back(1);
  return region::from_graph(body, std::span(&from, 1), {});
}

Support accepts_reduce(const Request& r) {
  if (!is_complex(r.in[0].dtype())) return Support::no("operand 0 is ", r.in[0].dtype());
  const auto& a = r.node.as<ops::Reduce>();
  if (a.kind == ops::ReduceOp::prod) return Support::yes();
  if (a.axes.empty()) return Support::no("no axes");
  const region::Built built = parts_region(r);
  return built ? Support::yes() : Support::no(built.refusal);
}

/// A thread for each product walks along all that it multiplies.
std::unique_ptr<Step> prepare_product(const Request& r) {
  const auto& a = r.node.as<ops::Reduce>();
  const Arg& x = r.in[0];
  std::vector<int64_t> kept, strides;
  std::string body = "  c128 all = {1, 0};\n", loops, at;
  int reduced = 0;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const int64_t size = x.shape.dim(axis).value(), stride = x.layout.strides[size_t(axis)];
    if (std::find(a.axes.begin(), a.axes.end(), axis) == a.axes.end()) {
      kept.push_back(size), strides.push_back(stride);
      continue;
    }
    loops += cat("  for (i64 r", reduced, " = 0; r", reduced, " < ", size, "; ++r", reduced, ")\n");
    at += cat(" + r", reduced++, " * i64(", stride, ")");
  }
  body += cat(loops, "    all = all * as_c128(x[", offset_text(strides), at, "]);\n  put(y[e], all);\n");
  Source s = element_kernel("complex_product", kept, "const c64* x, c64* y", body);
  s.text = kComplexNumbers + s.text;
  return element_step(device_of(r), s, 1, 1, r.out[0].shape.elements(), "a thread for each product");
}

std::unique_ptr<Step> prepare_reduce(const Request& r) {
  if (r.node.as<ops::Reduce>().kind == ops::ReduceOp::prod) return prepare_product(r);
  return region_step(r, *parts_region(r).region);
}

}  // namespace

void add_complex(KernelTable& table) {
  table.add_general({"complex_elements", accepts, prepare});
  table.add_general({"choice", accepts_choice, prepare_choice});
  table.add<ops::Reduce>({"complex_reduce", accepts_reduce, prepare_reduce});
}

}  // namespace rlx::cuda
