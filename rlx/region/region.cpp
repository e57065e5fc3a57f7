#include "rlx/region/region.h"

#include <algorithm>
#include <bit>

#include "rlx/base/text.h"

namespace rlx::region {
namespace {

constexpr std::string_view kOpNames[] = {
    "load",        "store",      "constant",   "barrier",  "neg",     "abs",     "sign",       "square",
    "sqrt",        "rsqrt",      "reciprocal", "exp",      "expm1",   "log",     "log1p",      "sin",
    "cos",         "tan",        "atan",       "tanh",     "sigmoid", "erf",     "relu",       "silu",
    "gelu",        "gelu_tanh",  "gelu_quick", "softplus", "floor",   "ceil",    "round",      "round_f16",
    "round_bf16",  "convert",    "bit_not",    "add",      "sub",     "mul",     "div",        "max",
    "min",         "rem",        "pow",        "bit_and",  "bit_or",  "bit_xor", "shift_left", "shift_right",
    "eq",          "ne",         "lt",         "le",       "gt",      "ge",      "select",     "reduce_sum",
    "reduce_prod", "reduce_max", "reduce_min"};
static_assert(std::size(kOpNames) == kOpCount);

int64_t product(const std::vector<int64_t>& dims, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t d = from; d < to; ++d) n *= dims[d];
  return n;
}

std::string argument_name(const Region& r, int a) {
  const Role role = r.arguments[size_t(a)].role;
  int number = 0;
  for (int i = 0; i < a; ++i) number += r.arguments[size_t(i)].role == role;
  return cat(role == Role::in ? "in " : role == Role::out ? "out " : "scratch ", number);
}

}  // namespace

std::string_view op_name(Op op) { return kOpNames[size_t(op)]; }

std::string_view lane_name(Lane lane) {
  constexpr std::string_view names[kLaneCount] = {"mask", "i32", "i64", "f32", "f64"};
  return names[size_t(lane)];
}

int lane_bytes(Lane lane) {
  if (lane == Lane::mask) return 0;
  return lane == Lane::i64 || lane == Lane::f64 ? 8 : 4;
}

bool operator==(const Constant& a, const Constant& b) {
  return std::bit_cast<uint64_t>(a.real) == std::bit_cast<uint64_t>(b.real) && a.integer == b.integer;
}

int64_t Region::rows() const { return product(dims, 0, size_t(row_rank)); }
int64_t Region::columns() const { return product(dims, size_t(row_rank), dims.size()); }

int Region::phases() const {
  int n = 1;
  for (const Instruction& i : code) n += i.op == Op::barrier;
  return n;
}

int Region::count(Role role) const {
  int n = 0;
  for (const Argument& a : arguments) n += a.role == role;
  return n;
}

int Region::width() const {
  int width = 0;
  for (const Instruction& i : code) width = std::max(width, lane_bytes(i.lane));
  return width == 0 ? 4 : width;
}

bool Region::has_reduction() const {
  for (const Instruction& i : code) {
    if (is_reduction(i.op)) return true;
  }
  return false;
}

bool Region::is_per_row(const Argument& a) const {
  for (size_t d = size_t(row_rank); d < dims.size(); ++d) {
    if (a.strides[d] != 0) return false;
  }
  return a.role != Role::scratch;
}

bool can_load(DType from, Lane to) {
  switch (to) {
    case Lane::mask:
      return from == DType::bool_;
    case Lane::i32:
      return from == DType::u8 || from == DType::i8 || from == DType::i16 || from == DType::i32;
    case Lane::i64:
      return is_integer(from);
    case Lane::f32:
    case Lane::f64:
      return is_integer(from) || (is_float(from) && !is_storage_only(from));
  }
  return false;
}

bool can_store(Lane from, DType to) {
  switch (from) {
    case Lane::mask:
      return to == DType::bool_;
    case Lane::i32:
      return to == DType::u8 || to == DType::i8 || to == DType::i16 || to == DType::i32;
    case Lane::i64:
      return is_integer(to);
    case Lane::f32:
      return to == DType::f16 || to == DType::bf16 || to == DType::f32;
    case Lane::f64:
      return to == DType::f32 || to == DType::f64;
  }
  return false;
}

namespace {

std::optional<std::string> lane_problem(const Region& r, const Instruction& i) {
  const auto lane = [&](int k) { return r.code[size_t(i.operands[size_t(k)])].lane; };
  if (i.op == Op::load) {
    const DType t = r.arguments[size_t(i.argument)].dtype;
    if (!can_load(t, i.lane)) return cat("loads ", t, " as ", lane_name(i.lane));
  } else if (i.op == Op::store) {
    const DType t = r.arguments[size_t(i.argument)].dtype;
    if (!can_store(lane(0), t)) return cat("stores ", lane_name(lane(0)), " as ", t);
  } else if (i.op == Op::select) {
    if (lane(0) != Lane::mask || lane(1) != i.lane || lane(2) != i.lane) return "selects between other lanes";
  } else if (is_comparison(i.op)) {
    if (lane(0) != lane(1) || i.lane != Lane::mask) return "compares different lanes";
  } else if (i.op != Op::convert) {
    for (int k = 0; k < arity(i.op); ++k) {
      if (lane(k) != i.lane) return cat("takes ", lane_name(lane(k)), " and gives ", lane_name(i.lane));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> problem(const Region& r) {
  if (r.dims.empty() || r.rank() > kMaxRank || r.row_rank < 0 || r.row_rank >= r.rank())
    return cat("dims ", r.dims, " with ", r.row_rank, " row dims");
  int phase = 0;
  std::vector<int> phase_of(r.code.size());
  for (size_t n = 0; n < r.code.size(); ++n) {
    const Instruction& i = r.code[n];
    const auto wrong = [&](const auto&... why) { return cat("%", n, " ", op_name(i.op), ": ", why...); };
    phase += i.op == Op::barrier;
    phase_of[n] = phase;
    if ((i.op == Op::load || i.op == Op::store) && (i.argument < 0 || i.argument >= int(r.arguments.size())))
      return wrong("argument ", i.argument, " of ", r.arguments.size());
    for (int k = 0; k < arity(i.op); ++k) {
      const int o = i.operands[size_t(k)];
      if (o < 0 || o >= int(n)) return wrong("operand ", o, " is not an earlier instruction");
      const Instruction& from = r.code[size_t(o)];
      if (from.op == Op::barrier || from.op == Op::store) return wrong("operand %", o, " has no value");
      if (!from.per_row && phase_of[size_t(o)] != phase) return wrong("operand %", o, " crosses a barrier");
      if (is_reduction(from.op) && phase_of[size_t(o)] == phase)
        return wrong("operand %", o, " is known behind the next barrier only");
      if (i.per_row && !from.per_row && !is_reduction(i.op)) return wrong("a row value of an element value");
    }
    if (const auto why = lane_problem(r, i)) return wrong(*why);
  }
  return std::nullopt;
}

void append_text(std::string& out, Op op) { out += op_name(op); }
void append_text(std::string& out, Lane lane) { out += lane_name(lane); }

void append_text(std::string& out, const Region& r) {
  const auto dims = [&](int from, int to) {
    return std::vector<int64_t>(r.dims.begin() + from, r.dims.begin() + to);
  };
  out += cat("region rows ", dims(0, r.row_rank), " columns ", dims(r.row_rank, r.rank()), "\n");
  for (size_t a = 0; a < r.arguments.size(); ++a) {
    const Argument& x = r.arguments[a];
    out += cat("  ", argument_name(r, int(a)), ": ", x.dtype);
    if (x.role != Role::scratch)
      out += cat(" ", std::vector<int64_t>(x.strides.begin(), x.strides.begin() + r.rank()));
    out += "\n";
  }
  for (size_t n = 0; n < r.code.size(); ++n) {
    const Instruction& i = r.code[n];
    out += "  ";
    if (i.op == Op::barrier) {
      out += "barrier\n";
      continue;
    }
    if (i.op != Op::store) out += cat("%", n, " = ");
    out += op_name(i.op);
    if (i.argument >= 0) out += cat(" ", argument_name(r, i.argument));
    if (i.op == Op::constant)
      out += is_float(i.lane) ? cat(" ", i.constant.real) : cat(" ", i.constant.integer);
    for (int k = 0; k < arity(i.op); ++k)
      out += cat(k == 0 && i.argument < 0 ? " %" : ", %", i.operands[size_t(k)]);
    if (i.op != Op::store) out += cat(" : ", lane_name(i.lane));
    if (i.per_row && i.op != Op::constant) out += " per row";
    out += "\n";
  }
}

}  // namespace rlx::region
