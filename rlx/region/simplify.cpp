#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "rlx/base/error.h"
#include "rlx/region/canonical.h"
#include "rlx/region/scalar.h"

namespace rlx::region {
namespace {

/// Rebuilds a program value by value; `made` says where an old value is now.
class Simplifier {
 public:
  explicit Simplifier(const Region& from) : from_(from) {}

  std::vector<Instruction> run() {
    made_.resize(from_.code.size(), -1);
    for (size_t n = 0; n < from_.code.size(); ++n) {
      Instruction i = from_.code[n];
      for (int k = 0; k < arity(i.op); ++k) i.operands[size_t(k)] = made_[size_t(i.operands[size_t(k)])];
      made_[n] = i.op == Op::store ? store(i) : value(i);
    }
    return needed();
  }

 private:
  const Instruction& at(int n) const { return code_[size_t(n)]; }
  const Instruction& operand(const Instruction& i, int k) const { return at(i.operands[size_t(k)]); }
  bool is_constant(int n) const { return at(n).op == Op::constant; }
  bool is_number(int n, double v) const {
    return is_constant(n) && is_float(at(n).lane) &&
           std::bit_cast<uint64_t>(at(n).constant.real) == std::bit_cast<uint64_t>(v);
  }

  int store(Instruction i) {
    // The store itself rounds to the type of its memory.
    const DType t = from_.arguments[size_t(i.argument)].dtype;
    const Op rounding = operand(i, 0).op;
    if ((rounding == Op::round_bf16 && t == DType::bf16) || (rounding == Op::round_f16 && t == DType::f16))
      i.operands[0] = operand(i, 0).operands[0];
    code_.push_back(i);
    return int(code_.size()) - 1;
  }

  int value(Instruction i) {
    if (i.op == Op::constant && i.lane == Lane::f32) i.constant.real = double(float(i.constant.real));
    if (const int n = folded(i); n >= 0) return n;
    if (const int n = known(i); n >= 0) return n;
    respell(i);
    return once(i);
  }

  int folded(const Instruction& i) {
    const int n = arity(i.op);
    if (n == 0 || is_reduction(i.op) || !is_exact(i.op)) return -1;
    Constant in[3];
    for (int k = 0; k < n; ++k) {
      if (!is_constant(i.operands[size_t(k)])) return -1;
      in[k] = operand(i, k).constant;
    }
    Instruction c{.op = Op::constant, .lane = i.lane, .per_row = true};
    c.constant = evaluate(i, operand(i, 0).lane, in[0], in[1], in[2]);
    return once(c);
  }

  /// The value that an operation merely repeats, or -1.
  int known(const Instruction& i) const {
    const auto o = [&](int k) { return i.operands[size_t(k)]; };
    if ((i.op == Op::mul || i.op == Op::div) && is_number(o(1), 1)) return o(0);
    if (i.op == Op::mul && is_number(o(0), 1)) return o(1);
    if (i.op == Op::sub && is_number(o(1), 0.0)) return o(0);
    if (i.op == Op::convert && at(o(0)).lane == i.lane) return o(0);
    if (i.op == Op::bit_not && at(o(0)).op == Op::bit_not) return at(o(0)).operands[0];
    if ((i.op == Op::round_bf16 || i.op == Op::round_f16) && at(o(0)).op == i.op) return o(0);
    if (i.op == Op::select && o(1) == o(2)) return o(1);
    if (i.op == Op::select && is_constant(o(0))) return at(o(0)).constant.integer ? o(1) : o(2);
    return -1;
  }

  void respell(Instruction& i) {
    auto& o = i.operands;
    if (i.op == Op::gt || i.op == Op::ge) {
      std::swap(o[0], o[1]);
      i.op = i.op == Op::gt ? Op::lt : Op::le;
    }
    if (i.op == Op::mul && o[0] == o[1])
      i = {.op = Op::square, .lane = i.lane, .per_row = i.per_row, .operands = {o[0], -1, -1}};
    if (i.op == Op::pow && is_number(o[1], 2))
      i = {.op = Op::square, .lane = i.lane, .per_row = i.per_row, .operands = {o[0], -1, -1}};
    if (i.op == Op::div && is_float(i.lane) && is_constant(o[1])) by_power_of_two(i);
    if (i.op == Op::div && is_number(o[0], 1))
      i = {.op = Op::reciprocal, .lane = i.lane, .per_row = i.per_row, .operands = {o[1], -1, -1}};
    if (i.op == Op::select && at(o[0]).op == Op::bit_not) {
      o[0] = at(o[0]).operands[0];
      std::swap(o[1], o[2]);
    }
    if (is_commutative(i.op)) {
      const auto rank = [&](int n) { return is_constant(n) ? 2 : at(n).per_row ? 1 : 0; };
      if (rank(o[0]) > rank(o[1])) std::swap(o[0], o[1]);
    }
  }

  void by_power_of_two(Instruction& i) {
    const double d = at(i.operands[1]).constant.real, inverse = 1 / d;
    int exponent = 0;
    const bool power = std::fabs(std::frexp(d, &exponent)) == 0.5 && std::abs(exponent) < 100;
    if (!power) return;
    i.op = Op::mul;
    i.operands[1] = once({.op = Op::constant, .lane = i.lane, .per_row = true, .constant = {inverse, 0}});
  }

  int once(const Instruction& i) {
    const Key key{
        i.op, i.lane, i.operands, i.argument, std::bit_cast<uint64_t>(i.constant.real), i.constant.integer};
    const auto [it, fresh] = seen_.try_emplace(key, int(code_.size()));
    if (fresh) code_.push_back(i);
    return it->second;
  }

  std::vector<Instruction> needed() const {
    std::vector<bool> used(code_.size());
    for (size_t n = code_.size(); n-- > 0;) {
      if (code_[n].op == Op::store) used[n] = true;
      for (int k = 0; used[n] && k < arity(code_[n].op); ++k)
        used[size_t(code_[n].operands[size_t(k)])] = true;
    }
    std::vector<Instruction> out;
    std::vector<int> moved(code_.size(), -1);
    for (size_t n = 0; n < code_.size(); ++n) {
      if (!used[n]) continue;
      Instruction i = code_[n];
      for (int k = 0; k < arity(i.op); ++k) i.operands[size_t(k)] = moved[size_t(i.operands[size_t(k)])];
      moved[n] = int(out.size());
      out.push_back(i);
    }
    return out;
  }

  using Key = std::tuple<Op, Lane, std::array<int, 3>, int, uint64_t, int64_t>;
  const Region& from_;
  std::vector<Instruction> code_;
  std::vector<int> made_;
  std::map<Key, int> seen_;
};

}  // namespace

void simplify(Region& r) { r.code = Simplifier(r).run(); }

}  // namespace rlx::region
