#include "rlx/backend/cpu/vm/scalars.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/single.h"
#include "rlx/base/error.h"
#include "rlx/region/scalar.h"

namespace rlx::cpu {

RLX_ISA_TABLE(SingleKernels, single_kernels)

namespace {

using region::Constant;
using region::Instruction;
using region::Lane;
using region::Op;
using region::Region;
using Slot = ScalarProgram::Slot;

Lane lane_of(DType t) {
  switch (t) {
    case DType::f32:
      return Lane::f32;
    case DType::f64:
      return Lane::f64;
    case DType::i32:
      return Lane::i32;
    case DType::i64:
      return Lane::i64;
    default:
      return Lane::mask;
  }
}

template <class T>
T& as(Slot& s) {
  if constexpr (std::is_same_v<T, float>) return s.f32;
  if constexpr (std::is_same_v<T, double>) return s.f64;
  if constexpr (std::is_same_v<T, int32_t>) return s.i32;
  if constexpr (std::is_same_v<T, int64_t>) return s.i64;
}

Constant constant_of(Lane lane, Slot s) {
  Constant c;
  if (lane == Lane::f32) c.real = double(s.f32);
  if (lane == Lane::f64) c.real = s.f64;
  if (lane == Lane::i32) c.integer = s.i32;
  if (lane == Lane::i64 || lane == Lane::mask) c.integer = s.i64;
  return c;
}

Slot slot_of(Lane lane, const Constant& c) {
  Slot s{};
  if (lane == Lane::f32) s.f32 = float(c.real);
  if (lane == Lane::f64) s.f64 = c.real;
  if (lane == Lane::i32) s.i32 = int32_t(c.integer);
  if (lane == Lane::i64 || lane == Lane::mask) s.i64 = c.integer;
  return s;
}

// The kernel of a function of one float that vectors have too.
std::optional<Unary> kernel_named(std::string_view name) {
  for (int i = 0; i < kUnaryCount; ++i) {
    if (unary_name(Unary(i)) == name) return Unary(i);
  }
  return std::nullopt;
}

// What a single instruction of every machine computes alike. NaN wins in max and min, and b where both are equal.
template <Op op, class T>
T combined(T a, T b) {
  if constexpr (op == Op::max) return a != a ? a : (a > b ? a : b);
  if constexpr (op == Op::min) return a != a ? a : (a < b ? a : b);
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (op == Op::add) return a + b;
    if constexpr (op == Op::sub) return a - b;
    if constexpr (op == Op::mul) return a * b;
    if constexpr (op == Op::div) return a / b;
  } else {
    using U = std::make_unsigned_t<T>;
    if constexpr (op == Op::add) return T(U(a) + U(b));
    if constexpr (op == Op::sub) return T(U(a) - U(b));
    if constexpr (op == Op::mul) return T(U(a) * U(b));
  }
}

template <Op op, class T>
bool holds_between(T a, T b) {
  if constexpr (op == Op::eq) return a == b;
  if constexpr (op == Op::ne) return a != b;
  if constexpr (op == Op::lt) return a < b;
  if constexpr (op == Op::le) return a <= b;
  if constexpr (op == Op::gt) return a > b;
  if constexpr (op == Op::ge) return a >= b;
}

}  // namespace

struct ScalarProgram::Forms {
  using Run = void (*)(const ScalarProgram&, const Code&, Slot*);

  template <Op op, class T>
  static void binary(const ScalarProgram&, const Code& c, Slot* s) {
    as<T>(s[c.to]) = combined<op>(as<T>(s[c.a]), as<T>(s[c.b]));
  }
  template <Op op, class T>
  static void comparison(const ScalarProgram&, const Code& c, Slot* s) {
    s[c.to].i64 = holds_between<op>(as<T>(s[c.a]), as<T>(s[c.b]));
  }
  // A product and the sum or difference it goes into, rounded one after the other.
  template <Op op, bool product_first, class T>
  static void product_and(const ScalarProgram&, const Code& c, Slot* s) {
    const T product = as<T>(s[c.a]) * as<T>(s[c.b]), other = as<T>(s[c.c]);
    as<T>(s[c.to]) = product_first ? combined<op>(product, other) : combined<op>(other, product);
  }
  template <class T>
  static Run product_form(Op op, bool product_first) {
    if (op == Op::add) return product_first ? product_and<Op::add, true, T> : product_and<Op::add, false, T>;
    return product_first ? product_and<Op::sub, true, T> : product_and<Op::sub, false, T>;
  }
  template <class T>
  static void neg(const ScalarProgram&, const Code& c, Slot* s) {
    as<T>(s[c.to]) = -as<T>(s[c.a]);
  }
  template <class T>
  static void square(const ScalarProgram&, const Code& c, Slot* s) {
    as<T>(s[c.to]) = as<T>(s[c.a]) * as<T>(s[c.a]);
  }
  template <class T>
  static void function(const ScalarProgram&, const Code& c, Slot* s) {
    as<T>(s[c.to]) = reinterpret_cast<T (*)(T)>(c.kernel)(as<T>(s[c.a]));
  }
  template <class T>
  static void power(const ScalarProgram&, const Code& c, Slot* s) {
    as<T>(s[c.to]) = reinterpret_cast<T (*)(T, T)>(c.kernel)(as<T>(s[c.a]), as<T>(s[c.b]));
  }
  template <class T>
  static void select(const ScalarProgram&, const Code& c, Slot* s) {
    as<T>(s[c.to]) = as<T>(s[s[c.a].i64 != 0 ? c.b : c.c]);
  }
  static void rare(const ScalarProgram& program, const Code& c, Slot* s) {
    const Rare& r = program.rare_[size_t(c.rare)];
    s[c.to] = slot_of(r.instruction.lane,
                      region::evaluate(r.instruction, r.from, constant_of(r.from, s[c.a]),
                                       constant_of(r.from, s[c.b]), constant_of(r.from, s[c.c])));
  }

  template <class T>
  static Run plain(Op op) {
    switch (op) {
      case Op::add:
        return binary<Op::add, T>;
      case Op::sub:
        return binary<Op::sub, T>;
      case Op::mul:
        return binary<Op::mul, T>;
      case Op::max:
        return binary<Op::max, T>;
      case Op::min:
        return binary<Op::min, T>;
      case Op::eq:
        return comparison<Op::eq, T>;
      case Op::ne:
        return comparison<Op::ne, T>;
      case Op::lt:
        return comparison<Op::lt, T>;
      case Op::le:
        return comparison<Op::le, T>;
      case Op::gt:
        return comparison<Op::gt, T>;
      case Op::ge:
        return comparison<Op::ge, T>;
      default:
        return nullptr;
    }
  }
  template <class T>
  static Run plain_float(Op op) {
    if (op == Op::div) return binary<Op::div, T>;
    if (op == Op::neg) return neg<T>;
    if (op == Op::square) return square<T>;
    return plain<T>(op);
  }

  // By the lane of the operands.
  static Run of(Op op, Lane lane) {
    switch (lane) {
      case Lane::f32:
        return plain_float<float>(op);
      case Lane::f64:
        return plain_float<double>(op);
      case Lane::i32:
        return plain<int32_t>(op);
      case Lane::i64:
        return plain<int64_t>(op);
      default:
        return nullptr;
    }
  }
};

bool ScalarProgram::holds(DType t) { return lane_of(t) != Lane::mask || t == DType::bool_; }

void ScalarProgram::read(DType t, const std::byte* from, Slot& to) {
  if (t == DType::f32 || t == DType::i32) {
    std::memcpy(&to, from, 4);
  } else if (t == DType::bool_) {
    to.i64 = *from != std::byte(0);
  } else {
    std::memcpy(&to, from, 8);
  }
}

void ScalarProgram::write(DType t, const Slot& from, std::byte* to) {
  if (t == DType::f32 || t == DType::i32) {
    std::memcpy(to, &from, 4);
  } else if (t == DType::bool_) {
    *to = std::byte(from.i64 != 0);
  } else {
    std::memcpy(to, &from, 8);
  }
}

void ScalarProgram::copy(DType t, const Slot& from, Slot& to) {
  if (t == DType::f32 || t == DType::i32) {
    to.i32 = from.i32;
  } else {
    to.i64 = from.i64;
  }
}

std::optional<std::string> ScalarProgram::refuses(const Region& r) {
  if (r.rows() * r.columns() != 1) return cat(r.rows() * r.columns(), " elements, not one");
  for (const region::Argument& a : r.arguments) {
    if (a.role == region::Role::scratch) return "a scratch row";
    if (!holds(a.dtype)) return cat("no slot holds ", a.dtype);
  }
  for (const Instruction& i : r.code) {
    if (region::is_reduction(i.op)) return "a reduction";
    if ((i.op == Op::load || i.op == Op::store) && lane_of(r.arguments[size_t(i.argument)].dtype) != i.lane)
      return "a conversion on the way from or to memory";
  }
  return std::nullopt;
}

int ScalarProgram::add_slot() {
  start_.push_back(Slot{});
  return int(start_.size()) - 1;
}

int ScalarProgram::add_constant(DType t, const std::byte* value) {
  const int slot = add_slot();
  read(t, value, start_.back());
  return slot;
}

bool ScalarProgram::redirect(int from, int to) {
  const auto made = std::find_if(code_.begin(), code_.end(), [&](const Code& c) { return c.to == from; });
  if (made == code_.end()) return false;
  const auto reads = [](const Code& c, int slot) { return c.a == slot || c.b == slot || c.c == slot; };
  for (const Code& c : code_) {
    if (c.to == to || (&c > &*made && reads(c, to))) return false;
  }
  made->to = to;
  for (Code& c : code_) {
    for (int* operand : {&c.a, &c.b, &c.c}) {
      if (*operand == from) *operand = to;
    }
  }
  return true;
}

void ScalarProgram::begin(Slot* slots) const {
  std::memcpy(slots, start_.data(), start_.size() * sizeof(Slot));
}

namespace {

// For each sum or difference of floats the operand that is a product nobody else reads, 0 or 1; else -1.
std::vector<int> products_inside(const Region& r) {
  std::vector<int> uses(r.code.size(), 0), out(r.code.size(), -1);
  for (const Instruction& i : r.code) {
    for (int k = 0; k < region::arity(i.op); ++k) ++uses[size_t(i.operands[size_t(k)])];
  }
  for (size_t n = 0; n < r.code.size(); ++n) {
    const Instruction& i = r.code[n];
    if ((i.op != Op::add && i.op != Op::sub) || !region::is_float(i.lane)) continue;
    for (int k = 0; k < 2 && out[n] < 0; ++k) {
      const auto operand = size_t(i.operands[size_t(k)]);
      if (r.code[operand].op == Op::mul && uses[operand] == 1) out[n] = k;
    }
  }
  return out;
}

}  // namespace

ScalarProgram::Code ScalarProgram::with_product(const Region& r, const Instruction& i, int which,
                                                std::span<const int> places) {
  const Instruction& product = r.code[size_t(i.operands[size_t(which)])];
  Code c;
  c.a = places[size_t(product.operands[0])];
  c.b = places[size_t(product.operands[1])];
  c.c = places[size_t(i.operands[size_t(1 - which)])];
  c.run = i.lane == Lane::f64 ? Forms::product_form<double>(i.op, which == 0)
                              : Forms::product_form<float>(i.op, which == 0);
  return c;
}

ScalarProgram::Code ScalarProgram::code_of(const Region& r, const Instruction& i,
                                           std::span<const int> places) {
  Code c;
  const int count = region::arity(i.op);
  int* const operands[] = {&c.a, &c.b, &c.c};
  for (int k = 0; k < count; ++k) *operands[k] = places[size_t(i.operands[size_t(k)])];
  const Lane from = r.code[size_t(i.operands[0])].lane;
  if (i.op == Op::select) {
    const bool four = i.lane == Lane::f32 || i.lane == Lane::i32;
    c.run = four ? Forms::select<int32_t> : Forms::select<int64_t>;
  } else if (Forms::Run run = Forms::of(i.op, from)) {
    c.run = run;
  } else if (const auto kernel = kernel_named(region::op_name(i.op)); kernel && region::is_float(from)) {
    const bool wide = from == Lane::f64;
    const SingleKernels& k = single_kernels();
    c.kernel = wide ? reinterpret_cast<Kernel>(k.f64[size_t(*kernel)])
                    : reinterpret_cast<Kernel>(k.f32[size_t(*kernel)]);
    c.run = wide ? Forms::function<double> : Forms::function<float>;
  } else if (i.op == Op::pow && region::is_float(from)) {
    const bool wide = from == Lane::f64;
    c.kernel = wide ? reinterpret_cast<Kernel>(single_kernels().power_f64)
                    : reinterpret_cast<Kernel>(single_kernels().power_f32);
    c.run = wide ? Forms::power<double> : Forms::power<float>;
  } else {
    c.run = Forms::rare;
    if (c.b < 0) c.b = c.a;
    if (c.c < 0) c.c = c.a;
    c.rare = int(rare_.size());
    rare_.push_back({i, from});
  }
  return c;
}

std::vector<int> ScalarProgram::add(const Region& r, std::span<const int> inputs) {
  std::vector<int> places(r.code.size(), -1);  // by instruction
  std::vector<int> results(size_t(r.count(region::Role::out)), -1);
  const std::vector<int> product = products_inside(r);
  std::vector<bool> inside(r.code.size(), false);
  for (size_t n = 0; n < r.code.size(); ++n) {
    if (product[n] >= 0) inside[size_t(r.code[n].operands[size_t(product[n])])] = true;
  }
  for (size_t n = 0; n < r.code.size(); ++n) {
    const Instruction& i = r.code[n];
    if (i.op == Op::barrier || inside[n]) continue;
    if (i.op == Op::load) {
      places[n] = inputs[size_t(i.argument)];
    } else if (i.op == Op::constant) {
      places[n] = add_slot();
      start_.back() = slot_of(i.lane, i.constant);
    } else if (i.op == Op::store) {
      results[size_t(i.argument) - inputs.size()] = places[size_t(i.operands[0])];
    } else {
      Code c = product[n] >= 0 ? with_product(r, i, product[n], places) : code_of(r, i, places);
      c.to = places[n] = add_slot();
      code_.push_back(c);
    }
  }
  return results;
}

}  // namespace rlx::cpu
