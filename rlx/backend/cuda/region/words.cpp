#include "rlx/backend/cuda/region/words.h"

#include <bit>
#include <cmath>

#include "rlx/base/text.h"

namespace rlx::cuda {

using region::Constant;
using region::Instruction;
using region::Lane;
using region::Op;
using region::Region;

std::string_view memory_type(DType t) {
  switch (t) {
    case DType::bool_:
      return "u8";
    case DType::c64:
      return "f64";  // moved, never computed with
    case DType::f8e4m3:
    case DType::f8e5m2:
      return "u8";
    default:
      return dtype_name(t);
  }
}

namespace {

std::string hex(uint64_t v) {
  std::string out;
  for (; v != 0 || out.empty(); v >>= 4) out.insert(out.begin(), "0123456789abcdef"[v & 15]);
  return out;
}

// Whether the value is only used rounded to 16 bits, and the prelude has a function that is exact enough
// for that. It is the same with and without fusion: a value that is rounded inside a region would be
// rounded by its store.
bool rounds_at_once(const Region& r, const Instruction& i) {
  switch (i.op) {
    case Op::exp:
    case Op::sigmoid:
    case Op::tanh:
    case Op::silu:
    case Op::gelu:
    case Op::gelu_tanh:
    case Op::gelu_quick:
      break;
    default:
      return false;
  }
  if (i.lane != Lane::f32) return false;
  const int n = int(&i - r.code.data());
  for (const Instruction& user : r.code) {
    for (int k = 0; k < arity(user.op); ++k) {
      if (user.operands[size_t(k)] != n) continue;
      const bool rounds = user.op == Op::round_bf16 || user.op == Op::round_f16 ||
                          (user.op == Op::store && dtype_size(r.arguments[size_t(user.argument)].dtype) == 2);
      if (!rounds) return false;
    }
  }
  return true;
}

}  // namespace

std::string_view lane_type(Lane lane) { return lane == Lane::mask ? "bool" : region::lane_name(lane); }

std::string_view reduction_type(Op op) {
  return op == Op::reduce_sum ? "Sum" : op == Op::reduce_prod ? "Prod" : op == Op::reduce_max ? "Max" : "Min";
}

std::string literal(Lane lane, const Constant& c) {
  switch (lane) {
    case Lane::mask:
      return c.integer ? "true" : "false";
    case Lane::i32:
      return cat("i32(0x", hex(uint32_t(c.integer)), "u)");
    case Lane::i64:
      return cat("i64(0x", hex(uint64_t(c.integer)), "ull)");
    case Lane::f32: {
      const float v = float(c.real);
      if (v == std::floor(v) && std::fabs(v) < 1e6f && !(v == 0 && std::signbit(v)))
        return cat(int64_t(v), ".0f");
      return cat("from_bits(0x", hex(std::bit_cast<uint32_t>(v)), "u)");
    }
    case Lane::f64:
      return cat("from_bits(0x", hex(std::bit_cast<uint64_t>(c.real)), "ull)");
  }
  return "";
}

std::string expression_text(const Region& r, const Instruction& i,
                            const std::function<std::string(int)>& value) {
  const auto operand = [&](int k) { return value(i.operands[size_t(k)]); };
  if (i.op == Op::constant) return literal(i.lane, i.constant);
  if (i.op == Op::select) return cat(operand(0), " ? ", operand(1), " : ", operand(2));
  if (i.op == Op::convert) return cat("to_", region::lane_name(i.lane), "(", operand(0), ")");
  static constexpr std::string_view kCompare[] = {"==", "!=", "<", "<=", ">", ">="};
  if (is_comparison(i.op)) return cat(operand(0), " ", kCompare[int(i.op) - int(Op::eq)], " ", operand(1));
  if (is_float(i.lane)) {
    if (i.op == Op::add) return cat(operand(0), " + ", operand(1));
    if (i.op == Op::sub) return cat(operand(0), " - ", operand(1));
    if (i.op == Op::mul) return cat(operand(0), " * ", operand(1));
    if (i.op == Op::div) return cat(operand(0), " / ", operand(1));
  }
  if (region::is_binary(i.op))
    return cat("op_", region::op_name(i.op), "(", operand(0), ", ", operand(1), ")");
  return cat(rounds_at_once(r, i) ? "fast_" : "op_", region::op_name(i.op), "(", operand(0), ")");
}

}  // namespace rlx::cuda
