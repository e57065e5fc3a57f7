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
  using F32s = float __attribute__((vector_size(16)));
  using F64s = double __attribute__((vector_size(16)));
  using I32s = int32_t __attribute__((vector_size(16)));
  using I64s = int64_t __attribute__((vector_size(16)));
  template <class T>
  using Lanes =
      std::conditional_t<std::is_same_v<T, float>, F32s,
                         std::conditional_t<std::is_same_v<T, double>, F64s,
                                            std::conditional_t<std::is_same_v<T, int32_t>, I32s, I64s>>>;

  /// Operand `which` of an operation: 0 for a, 1 for b, 2 for c.
  template <int last, int which, class T>
  static T get(const Code& c, Slot* s, Carried carried) {
    if constexpr ((last >> which & 1) != 0) {
      return Lanes<T>(carried)[0];
    } else {
      return as<T>(s[which == 0 ? c.a : which == 1 ? c.b : c.c]);
    }
  }
  template <class T>
  static Carried put(const Code& c, Slot* s, T v) {
    as<T>(s[c.to]) = v;
#if defined(__x86_64__)
    if constexpr (std::is_floating_point_v<
                      T>) {  // the compiler would clear what nobody reads, by way of another register
      Carried out;
      asm("" : "=x"(out) : "0"(v));
      return out;
    }
#endif
    const Lanes<T> first{v};
    return Carried(first);
  }

  template <Op op, class T>
  struct Binary {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s, combined<op>(get<last, 0, T>(c, s, l), get<last, 1, T>(c, s, l)));
    }
  };
  template <Op op, class T>
  struct Comparison {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s, int64_t(holds_between<op>(get<last, 0, T>(c, s, l), get<last, 1, T>(c, s, l))));
    }
  };
  // A product and the sum or difference it goes into, rounded one after the other.
  template <Op op, bool product_first, class T>
  struct ProductAnd {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      const T product = get<last, 0, T>(c, s, l) * get<last, 1, T>(c, s, l), other = get<last, 2, T>(c, s, l);
      return put(c, s, product_first ? combined<op>(product, other) : combined<op>(other, product));
    }
  };
  template <class T>
  struct Neg {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s, T(-get<last, 0, T>(c, s, l)));
    }
  };
  template <class T>
  struct Square {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      const T v = get<last, 0, T>(c, s, l);
      return put(c, s, v * v);
    }
  };
  template <class T>
  struct Function {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s, reinterpret_cast<T (*)(T)>(c.kernel)(get<last, 0, T>(c, s, l)));
    }
  };
  template <class T>
  struct Power {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s,
                 reinterpret_cast<T (*)(T, T)>(c.kernel)(get<last, 0, T>(c, s, l), get<last, 1, T>(c, s, l)));
    }
  };
  template <class T>
  struct Select {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s,
                 get<last, 0, int64_t>(c, s, l) != 0 ? get<last, 1, T>(c, s, l) : get<last, 2, T>(c, s, l));
    }
  };
  template <class To, class From>
  struct Convert {
    template <int last>
    static Carried run(const ScalarProgram&, const Code& c, Slot* s, Carried l) {
      return put(c, s, To(get<last, 0, From>(c, s, l)));
    }
  };
  struct Rare {
    template <int>
    static Carried run(const ScalarProgram& program, const Code& c, Slot* s, Carried) {
      const auto& r = program.rare_[size_t(c.rare)];
      return put(c, s,
                 slot_of(r.instruction.lane,
                         region::evaluate(r.instruction, r.from, constant_of(r.from, s[c.a]),
                                          constant_of(r.from, s[c.b]), constant_of(r.from, s[c.c])))
                     .i64);
    }
  };

  template <class Form>
  static constexpr Run kForms[8] = {Form::template run<0>, Form::template run<1>, Form::template run<2>,
                                    Form::template run<3>, Form::template run<4>, Form::template run<5>,
                                    Form::template run<6>, Form::template run<7>};

  template <class T>
  static const Run* product_form(Op op, bool product_first) {
    if (op == Op::add)
      return product_first ? kForms<ProductAnd<Op::add, true, T>> : kForms<ProductAnd<Op::add, false, T>>;
    return product_first ? kForms<ProductAnd<Op::sub, true, T>> : kForms<ProductAnd<Op::sub, false, T>>;
  }
  template <class T>
  static const Run* plain(Op op) {
    switch (op) {
      case Op::add:
        return kForms<Binary<Op::add, T>>;
      case Op::sub:
        return kForms<Binary<Op::sub, T>>;
      case Op::mul:
        return kForms<Binary<Op::mul, T>>;
      case Op::max:
        return kForms<Binary<Op::max, T>>;
      case Op::min:
        return kForms<Binary<Op::min, T>>;
      case Op::eq:
        return kForms<Comparison<Op::eq, T>>;
      case Op::ne:
        return kForms<Comparison<Op::ne, T>>;
      case Op::lt:
        return kForms<Comparison<Op::lt, T>>;
      case Op::le:
        return kForms<Comparison<Op::le, T>>;
      case Op::gt:
        return kForms<Comparison<Op::gt, T>>;
      case Op::ge:
        return kForms<Comparison<Op::ge, T>>;
      default:
        return nullptr;
    }
  }
  template <class T>
  static const Run* plain_float(Op op) {
    if (op == Op::div) return kForms<Binary<Op::div, T>>;
    if (op == Op::neg) return kForms<Neg<T>>;
    if (op == Op::square) return kForms<Square<T>>;
    return plain<T>(op);
  }

  // Numbers as floats, which a single instruction does.
  template <class To>
  static const Run* to_float(Lane from) {
    switch (from) {
      case Lane::f32:
        return kForms<Convert<To, float>>;
      case Lane::f64:
        return kForms<Convert<To, double>>;
      case Lane::i32:
        return kForms<Convert<To, int32_t>>;
      default:
        return kForms<Convert<To, int64_t>>;
    }
  }
  static const Run* conversion(Lane from, Lane to) {
    if (to == Lane::f32) return to_float<float>(from);
    return to == Lane::f64 ? to_float<double>(from) : nullptr;
  }

  // By the lane of the operands.
  static const Run* of(Op op, Lane lane) {
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
  c.forms = i.lane == Lane::f64 ? Forms::product_form<double>(i.op, which == 0)
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
  const Run* const conversion = i.op == Op::convert ? Forms::conversion(from, i.lane) : nullptr;
  if (conversion != nullptr) {
    c.forms = conversion;
  } else if (i.op == Op::select) {
    const bool four = i.lane == Lane::f32 || i.lane == Lane::i32;
    c.forms = four ? Forms::kForms<Forms::Select<int32_t>> : Forms::kForms<Forms::Select<int64_t>>;
  } else if (const Run* forms = Forms::of(i.op, from)) {
    c.forms = forms;
  } else if (const auto kernel = kernel_named(region::op_name(i.op)); kernel && region::is_float(from)) {
    const bool wide = from == Lane::f64;
    const SingleKernels& k = single_kernels();
    c.kernel = wide ? reinterpret_cast<Kernel>(k.f64[size_t(*kernel)])
                    : reinterpret_cast<Kernel>(k.f32[size_t(*kernel)]);
    c.forms = wide ? Forms::kForms<Forms::Function<double>> : Forms::kForms<Forms::Function<float>>;
  } else if (i.op == Op::pow && region::is_float(from)) {
    const bool wide = from == Lane::f64;
    c.kernel = wide ? reinterpret_cast<Kernel>(single_kernels().power_f64)
                    : reinterpret_cast<Kernel>(single_kernels().power_f32);
    c.forms = wide ? Forms::kForms<Forms::Power<double>> : Forms::kForms<Forms::Power<float>>;
  } else {
    c.forms = Forms::kForms<Forms::Rare>;
    if (c.b < 0) c.b = c.a;
    if (c.c < 0) c.c = c.a;
    c.rare = int(rare_.size());
    rare_.push_back({i, from});
  }
  return c;
}

int ScalarProgram::converted(int slot, Lane from, Lane to) {
  if (from == to) return slot;
  Code c;
  c.a = c.b = c.c = slot;
  c.forms = Forms::conversion(from, to);
  if (c.forms == nullptr) {
    c.forms = Forms::kForms<Forms::Rare>;
    c.rare = int(rare_.size());
    rare_.push_back({{.op = Op::convert, .lane = to}, from});
  }
  c.run = c.forms[0];
  c.to = add_slot();
  code_.push_back(c);
  return c.to;
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
      const Lane stored = lane_of(r.arguments[size_t(i.argument)].dtype);
      places[n] = converted(inputs[size_t(i.argument)], stored, i.lane);
    } else if (i.op == Op::constant) {
      places[n] = add_slot();
      start_.back() = slot_of(i.lane, i.constant);
    } else if (i.op == Op::store) {
      const auto value = size_t(i.operands[0]);
      const Lane stored = lane_of(r.arguments[size_t(i.argument)].dtype);
      results[size_t(i.argument) - inputs.size()] = converted(places[value], r.code[value].lane, stored);
    } else {
      Code c = product[n] >= 0 ? with_product(r, i, product[n], places) : code_of(r, i, places);
      c.run = c.forms[0];
      c.to = places[n] = add_slot();
      code_.push_back(c);
    }
  }
  return results;
}

}  // namespace rlx::cpu
