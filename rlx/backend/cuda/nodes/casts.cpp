// Casts between any two types that regions do not take: f8 formats, complex numbers, types of different widths at once.
#include "rlx/backend/cuda/kernels/casts.h"

#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/elementwise/cast.h"

namespace rlx::cuda {
namespace {

std::string_view number_type(DType t) { return t == DType::bool_ ? "Truth" : dtype_name(t); }

Support accepts(const Request& r) {
  return r.node.is<ops::Cast>() ? Support::yes() : Support::no("not among its operators");
}

std::unique_ptr<Step> prepare(const Request& r) {
  const DType from = r.in[0].dtype(), to = r.out[0].dtype();
  const std::string x = cat("x[", offset_text(r.in[0].layout.strides), "]");
  std::string body;
  if (is_complex(from)) {
    body = cat("  const c64 z = ", x, ";\n  ", is_complex(to) ? "y[e] = z" : "y[e].is = z.x != 0 || z.y != 0",
               ";\n");
  } else {
    const bool whole = from == DType::i64 && is_integer(to);
    body = cat("  put_cast(y[e], ", whole ? "as_i64(" : "as_f64(", x, "));\n");
  }
  Source s = element_kernel("cast", sizes_of(r.out[0].shape),
                            cat("const ", number_type(from), "* x, ", number_type(to), "* y"), body);
  s.text = cat(kComplexNumbers, kCasts, s.text);
  return element_step(device_of(r), s, 1, 1, r.out[0].shape.elements(), "element by element");
}

}  // namespace

void add_casts(KernelTable& table) { table.add_general({"cast", accepts, prepare}); }

}  // namespace rlx::cuda
