#include "rlx/region/scalar.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"

namespace rlx::region {
namespace {

double rounded(Lane lane, double x) { return lane == Lane::f32 ? double(float(x)) : x; }

int64_t wrapped(Lane lane, uint64_t x) {
  return lane == Lane::i32 ? int64_t(int32_t(uint32_t(x))) : int64_t(x);
}

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

// x sigmoid(v), 0 where x is -inf.
double gated(double x, double v) { return x == -INFINITY ? -0.0 : x * sigmoid(v); }

double gelu(double x) { return x == -INFINITY ? -0.0 : 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

double gelu_tanh(double x) {
  return gated(x, 2 * std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x));
}

double unary_float(Op op, double x) {
  switch (op) {
    case Op::neg:
      return -x;
    case Op::abs:
      return std::fabs(x);
    case Op::sign:
      return x != x ? x : double((x > 0) - (x < 0));
    case Op::square:
      return x * x;
    case Op::sqrt:
      return std::sqrt(x);
    case Op::rsqrt:
      return 1 / std::sqrt(x);
    case Op::reciprocal:
      return 1 / x;
    case Op::exp:
      return std::exp(x);
    case Op::expm1:
      return std::expm1(x);
    case Op::log:
      return std::log(x);
    case Op::log1p:
      return std::log1p(x);
    case Op::sin:
      return std::sin(x);
    case Op::cos:
      return std::cos(x);
    case Op::tan:
      return std::tan(x);
    case Op::atan:
      return std::atan(x);
    case Op::tanh:
      return std::tanh(x);
    case Op::sigmoid:
      return sigmoid(x);
    case Op::erf:
      return std::erf(x);
    case Op::relu:
      return x < 0 ? 0 : x;
    case Op::silu:
      return gated(x, x);
    case Op::gelu:
      return gelu(x);
    case Op::gelu_tanh:
      return gelu_tanh(x);
    case Op::gelu_quick:
      return gated(x, 1.702 * x);
    case Op::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    case Op::floor:
      return std::floor(x);
    case Op::ceil:
      return std::ceil(x);
    case Op::round:
      return std::nearbyint(x);
    case Op::round_f16:
      return f16_to_f32(f32_to_f16(float(x)));
    case Op::round_bf16:
      return bf16_to_f32(f32_to_bf16(float(x)));
    default:
      break;
  }
  RLX_CHECK(false, op_name(op), " of a float");
}

double binary_float(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::max:
      return a > b || a != a ? a : b;
    case Op::min:
      return a < b || a != a ? a : b;
    case Op::rem:
      return std::fmod(a, b);
    case Op::pow:
      return std::pow(a, b);
    default:
      break;
  }
  RLX_CHECK(false, op_name(op), " of floats");
}

int64_t unary_integer(Op op, int64_t x) {
  switch (op) {
    case Op::neg:
      return int64_t(0 - uint64_t(x));
    case Op::abs:
      return x < 0 ? int64_t(0 - uint64_t(x)) : x;
    case Op::sign:
      return (x > 0) - (x < 0);
    case Op::square:
      return int64_t(uint64_t(x) * uint64_t(x));
    case Op::bit_not:
      return ~x;
    default:
      break;
  }
  RLX_CHECK(false, op_name(op), " of an integer");
}

int64_t binary_integer(Op op, int64_t a, int64_t b, int64_t width) {
  const uint64_t p = uint64_t(a), q = uint64_t(b);
  const bool inside = b >= 0 && b < width;
  switch (op) {
    case Op::add:
      return int64_t(p + q);
    case Op::sub:
      return int64_t(p - q);
    case Op::mul:
      return int64_t(p * q);
    case Op::div:
      return b == 0 ? 0 : b == -1 ? int64_t(0 - p) : a / b;
    case Op::rem:
      return b == 0 || b == -1 ? 0 : a % b;
    case Op::max:
      return a > b ? a : b;
    case Op::min:
      return a < b ? a : b;
    case Op::bit_and:
      return a & b;
    case Op::bit_or:
      return a | b;
    case Op::bit_xor:
      return a ^ b;
    case Op::shift_left:
      return inside ? int64_t(p << b) : 0;
    case Op::shift_right:
      return a >> (inside ? b : 63);
    default:
      break;
  }
  RLX_CHECK(false, op_name(op), " of integers");
}

template <class T>
bool holds(Op op, T a, T b) {
  switch (op) {
    case Op::eq:
      return a == b;
    case Op::ne:
      return a != b;
    case Op::lt:
      return a < b;
    case Op::le:
      return a <= b;
    case Op::gt:
      return a > b;
    default:
      return a >= b;
  }
}

int64_t saturated(Lane lane, double x) {
  if (x != x) return 0;
  const double t = std::trunc(x);
  const int64_t low = lane == Lane::i32 ? INT32_MIN : INT64_MIN,
                high = lane == Lane::i32 ? INT32_MAX : INT64_MAX;
  if (t <= double(low)) return low;
  return t >= double(high) ? high : int64_t(t);
}

Constant converted(Lane to, Lane from, const Constant& x) {
  if (is_float(to)) {
    if (is_float(from)) return {rounded(to, x.real), 0};
    return {to == Lane::f32 ? double(float(x.integer)) : double(x.integer), 0};
  }
  if (to == Lane::mask) return {0, is_float(from) ? x.real != 0 : x.integer != 0};
  return {0, is_float(from) ? saturated(to, x.real) : x.integer};
}

}  // namespace

Constant evaluate(const Instruction& i, Lane from, const Constant& a, const Constant& b, const Constant& c) {
  if (i.op == Op::convert) return converted(i.lane, from, a);
  if (i.op == Op::select) return a.integer != 0 ? b : c;
  if (is_comparison(i.op)) {
    return {0, is_float(from) ? holds(i.op, a.real, b.real) : holds(i.op, a.integer, b.integer)};
  }
  if (is_float(i.lane)) {
    return {rounded(i.lane, is_unary(i.op) ? unary_float(i.op, a.real) : binary_float(i.op, a.real, b.real)),
            0};
  }
  if (i.lane == Lane::mask && i.op == Op::bit_not) return {0, a.integer == 0};
  const int64_t width = i.lane == Lane::i32 ? 32 : 64;
  const int64_t v =
      is_unary(i.op) ? unary_integer(i.op, a.integer) : binary_integer(i.op, a.integer, b.integer, width);
  return {0, wrapped(i.lane, uint64_t(v))};
}

Constant combine(Op op, Lane lane, const Constant& so_far, const Constant& next) {
  const Op step = op == Op::reduce_sum    ? Op::add
                  : op == Op::reduce_prod ? Op::mul
                  : op == Op::reduce_max  ? Op::max
                                          : Op::min;
  if (is_float(lane)) return {binary_float(step, so_far.real, next.real), 0};
  return {0, wrapped(lane, uint64_t(binary_integer(step, so_far.integer, next.integer, 64)))};
}

Constant finish(Lane lane, const Constant& x) {
  return is_float(lane) ? Constant{rounded(lane, x.real), 0} : x;
}

bool is_exact(Op op) {
  switch (op) {
    case Op::exp:
    case Op::expm1:
    case Op::log:
    case Op::log1p:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::atan:
    case Op::tanh:
    case Op::sigmoid:
    case Op::erf:
    case Op::silu:
    case Op::gelu:
    case Op::gelu_tanh:
    case Op::gelu_quick:
    case Op::softplus:
    case Op::rsqrt:  // rounded twice
    case Op::pow:
      return false;
    default:
      return true;
  }
}

}  // namespace rlx::region
