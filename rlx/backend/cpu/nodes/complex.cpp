// Elementwise operators of complex numbers, which fused regions do not know.
#include "rlx/backend/cpu/kernels/complex.h"

#include <optional>

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"

namespace rlx::cpu {
namespace {

Support few_axes(const Request& r) {
  const int rank = r.out[0].shape.rank();
  return rank <= Broadcast::kMaxRank ? Support::yes() : Support::no(rank, " axes");
}

// Operand i as it broadcasts to the result: stride 0 where it has one element or none of its own.
void read_strides(Broadcast& box, int i, const Arg& x, const Arg& y) {
  const int missing = y.shape.rank() - x.shape.rank();
  for (int axis = missing; axis < box.rank; ++axis) {
    const bool repeats = x.shape.dim(axis - missing) == Dim(1);
    box.strides[i][axis] = repeats ? 0 : x.layout.strides[size_t(axis - missing)];
  }
}

Broadcast box_of(const Request& r) {
  Broadcast box{.rank = r.out[0].shape.rank()};
  for (int axis = 0; axis < box.rank; ++axis) box.size[axis] = r.out[0].shape.dim(axis).value();
  for (size_t i = 0; i < r.in.size(); ++i) read_strides(box, int(i), r.in[i], r.out[0]);
  return box;
}

// ---- two operands ----

std::optional<ComplexBinary> binary_of(const ir::Node& n) {
  if (n.is<ops::Add>()) return ComplexBinary::add;
  if (n.is<ops::Sub>()) return ComplexBinary::sub;
  if (n.is<ops::Mul>()) return ComplexBinary::mul;
  if (n.is<ops::Div>()) return ComplexBinary::div;
  if (n.is<ops::MakeComplex>()) return ComplexBinary::make;
  return std::nullopt;
}

Support accepts_binary(const Request& r) {
  const auto op = binary_of(r.node);
  if (!op) return Support::no("not among its operators");
  const DType from = *op == ComplexBinary::make ? DType::f32 : DType::c64;
  for (const Arg& x : r.in) {
    if (x.dtype() != from) return Support::no("an operand is ", x.dtype());
  }
  return few_axes(r);
}

std::unique_ptr<Step> prepare_binary(const Request& r) {
  const ComplexMap p{.op = *binary_of(r.node), .box = box_of(r)};
  return make_step([p, any = r.out[0].shape.elements() > 0](const Launch& l) {
    if (!any) return;
    ComplexMap now = p;
    now.a = l.in[0];
    now.b = l.in[1];
    now.y = l.out[0];
    complex_binary(l.team, now);
  });
}

// ---- one operand ----

std::optional<ComplexUnary> unary_of(const ir::Node& n) {
  if (n.is<ops::Conjugate>()) return ComplexUnary::conjugate;
  if (n.is<ops::Neg>()) return ComplexUnary::negative;
  if (n.is<ops::Exp>()) return ComplexUnary::exp;
  if (n.is<ops::Log>()) return ComplexUnary::log;
  if (n.is<ops::Sqrt>()) return ComplexUnary::sqrt;
  if (n.is<ops::IsFinite>()) return ComplexUnary::is_finite;
  if (n.is<ops::IsNan>()) return ComplexUnary::is_nan;
  if (n.is<ops::ComplexNormSq>()) return ComplexUnary::norm_squared;
  if (n.is<ops::RealPart>()) return ComplexUnary::real;
  if (n.is<ops::ImagPart>()) return ComplexUnary::imaginary;
  return std::nullopt;
}

Support accepts_unary(const Request& r) {
  if (!unary_of(r.node)) return Support::no("not among its operators");
  if (r.in[0].dtype() != DType::c64) return Support::no("x is ", r.in[0].dtype());
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_unary(const Request& r) {
  auto step = make_step([op = *unary_of(r.node), n = r.in[0].shape.elements()](const Launch& l) {
    complex_unary(l.team, op, l.in[0], l.out[0], n);
  });
  if (r.out[0].dtype() == DType::c64) step->in_place = {0};
  return step;
}

// ---- real numbers as complex ones ----

Support accepts_cast(const Request& r) {
  if (!r.node.is<ops::Cast>()) return Support::no("not among its operators");
  if (r.in[0].dtype() != DType::f32 || r.out[0].dtype() != DType::c64)
    return Support::no("from ", r.in[0].dtype(), " to ", r.out[0].dtype());
  return few_axes(r);
}

std::unique_ptr<Step> prepare_cast(const Request& r) {
  Broadcast box = box_of(r);  // the imaginary part is one zero for all
  return make_step([box, any = r.out[0].shape.elements() > 0](const Launch& l) {
    static constexpr float kZero = 0;
    if (any) complex_binary(l.team, {ComplexBinary::make, box, l.in[0], &kZero, l.out[0]});
  });
}

// ---- a choice between two arrays, whatever they hold ----

Support accepts_choice(const Request& r) {
  if (!r.node.is<ops::Where>()) return Support::no("not among its operators");
  const size_t bytes = dtype_size(r.out[0].dtype());
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
    return Support::no("elements of ", bytes, " bytes");
  if (r.in[0].dtype() != DType::bool_) return Support::no("the condition is ", r.in[0].dtype());
  return few_axes(r);
}

std::unique_ptr<Step> prepare_choice(const Request& r) {
  const Select p{.element_bytes = int(dtype_size(r.out[0].dtype())), .box = box_of(r)};
  return make_step([p, any = r.out[0].shape.elements() > 0](const Launch& l) {
    if (!any) return;
    Select now = p;
    now.condition = reinterpret_cast<const uint8_t*>(l.in[0]);
    now.a = l.in[1];
    now.b = l.in[2];
    now.y = l.out[0];
    select(l.team, now);
  });
}

}  // namespace

void add_complex(KernelTable& table) {
  table.add_general({"complex_binary_c64", accepts_binary, prepare_binary});
  table.add_general({"complex_unary_c64", accepts_unary, prepare_unary});
  table.add_general({"complex_of_real_f32", accepts_cast, prepare_cast});
  table.add_general({"select_bytes", accepts_choice, prepare_choice});
}

}  // namespace rlx::cpu
