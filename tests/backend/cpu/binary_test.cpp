#include "rlx/backend/cpu/kernels/binary.h"

#include <cstring>
#include <limits>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

// The meaning of each function, in the widest type of its kind.
double truth(Binary op, double a, double b) {
  switch (op) {
    case Binary::add:
      return a + b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      return a / b;
    case Binary::max:
      return a != a ? a : (b != b ? b : (a > b ? a : b));
    case Binary::min:
      return a != a ? a : (b != b ? b : (a < b ? a : b));
    case Binary::rem:
      return std::fmod(a, b);
    case Binary::pow:
      return std::pow(a, b);
  }
  return 0;
}
int64_t truth(Binary op, int64_t a, int64_t b) {
  const uint64_t u = uint64_t(a), v = uint64_t(b);
  switch (op) {
    case Binary::add:
      return int64_t(u + v);
    case Binary::sub:
      return int64_t(u - v);
    case Binary::mul:
      return int64_t(u * v);
    case Binary::div:
      return b == 0 ? 0 : (b == -1 ? int64_t(0 - u) : a / b);
    case Binary::max:
      return a > b ? a : b;
    case Binary::min:
      return a < b ? a : b;
    case Binary::rem:
      return b == 0 || b == -1 ? 0 : a % b;
    case Binary::pow:
      break;
  }
  return 0;
}
template <class T>
bool truth(Comparison op, T a, T b) {
  const bool table[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return table[size_t(op)];
}

struct Case {
  const char* name;
  Broadcast box;
};
// Equal shapes, a repeated row, column and scalar on either side, transposed operands, empty and single.
std::vector<Case> cases() {
  return {{"same", {.rank = 1, .size = {1037}, .strides = {{1}, {1}, {1}}}},
          {"row", {.rank = 2, .size = {9, 67}, .strides = {{67, 1}, {0, 1}, {67, 1}}}},
          {"column", {.rank = 2, .size = {31, 40}, .strides = {{1, 0}, {40, 1}, {0, 1}}}},
          {"scalars", {.rank = 2, .size = {5, 70}, .strides = {{0, 0}, {70, 1}, {0, 0}}}},
          {"both one", {.rank = 1, .size = {19}, .strides = {{0}, {0}, {0}}}},
          {"transposed", {.rank = 2, .size = {70, 30}, .strides = {{1, 70}, {30, 1}, {1, 70}}}},
          {"deep",
           {.rank = 4, .size = {2, 3, 1, 700}, .strides = {{700, 0, 9, 1}, {0, 1400, 5, 2}, {0, 700, 0, 1}}}},
          {"scalar result", {.rank = 0}},
          {"single", {.rank = 2, .size = {1, 1}, .strides = {{4, 4}, {0, 0}, {1, 1}}}},
          {"empty", {.rank = 2, .size = {3, 0}, .strides = {{0, 1}, {0, 1}, {0, 1}}}},
          {"many", {.rank = 2, .size = {3, 20001}, .strides = {{20001, 1}, {0, 1}, {20001, 1}}}}};
}

int64_t elements(const Broadcast& box) {
  int64_t n = 1;
  for (int d = 0; d < box.rank; ++d) n *= box.size[d];
  return n;
}
int64_t offset(const Broadcast& box, int operand, int64_t i) {
  int64_t at = 0;
  for (int d = box.rank - 1; d >= 0; --d) at += i % box.size[d] * box.strides[operand][d], i /= box.size[d];
  return at;
}
int64_t extent(const Broadcast& box, int operand) {
  int64_t n = 1;
  for (int d = 0; d < box.rank; ++d) n += std::max<int64_t>(0, box.size[d] - 1) * box.strides[operand][d];
  return n;
}

template <class T>
Array<T> values(int64_t n, uint64_t seed, int shift, bool positive = false) {
  Array<T> a(n, shift);
  for (int64_t i = 0; i < n; ++i) {
    const PhiloxBlock r = philox_block(seed, 0, uint64_t(i));
    if constexpr (std::is_integral_v<T>) {
      a[i] = r[1] % 4 == 0 ? T(int64_t(r[0] % 7) - 3) : T(uint64_t(r[0]) << 32 | r[2]);
      if (r[1] % 32 == 1) a[i] = std::numeric_limits<T>::min();
    } else {
      a[i] = T(double(r[0]) * 0x1p-30 - (positive ? 0 : 2));
      if (!positive && r[1] % 16 == 0) a[i] = T(NAN);
      if (!positive && r[1] % 16 == 1) a[i] = 0;
      if (!positive && r[1] % 16 == 2) a[i] = T(INFINITY);
    }
  }
  return a;
}

template <class T>
void check_binary(Team team, DType dtype) {
  for (const Case& c : cases()) {
    for (int op = 0; op < (std::is_integral_v<T> ? kBinaryCount - 1 : kBinaryCount); ++op) {
      SCOPED_TRACE(testing::Message() << c.name << " op " << op << " dtype " << dtype_name(dtype));
      const int shift = op % 3;
      const Array<T> a = values<T>(extent(c.box, 0), 1, shift, op == int(Binary::pow)),
                     b = values<T>(extent(c.box, 1), 2, 1);
      const int64_t n = elements(c.box);
      Array<T> y(n + 1, shift);
      y[n] = 77;
      binary(team,
             {.op = Binary(op), .dtype = dtype, .box = c.box, .a = a.data(), .b = b.data(), .y = y.data()});
      ASSERT_EQ(y[n], 77);
      for (int64_t i = 0; i < n; ++i) {
        const T u = a[offset(c.box, 0, i)], v = b[offset(c.box, 1, i)];
        if constexpr (std::is_integral_v<T>) {
          ASSERT_EQ(y[i], T(truth(Binary(op), int64_t(u), int64_t(v)))) << u << " " << v;
        } else {
          const double want = truth(Binary(op), double(u), double(v));
          if (std::isnan(want) ? std::isnan(y[i]) : double(y[i]) == double(T(want))) continue;
          const double ulp = op == int(Binary::pow) ? (sizeof(T) == 4 ? 2.5 : 4) : 0.5;
          ASSERT_NEAR(y[i], want, ulp * 2 * std::numeric_limits<T>::epsilon() * std::abs(want))
              << u << " " << v;
        }
      }
    }
  }
}

TEST(Binary, every_function_agrees_with_its_meaning_under_every_broadcast) {
  test::at_every_level([](Team team) {
    check_binary<float>(team, DType::f32);
    check_binary<double>(team, DType::f64);
    check_binary<int32_t>(team, DType::i32);
    check_binary<int64_t>(team, DType::i64);
  });
}

template <class T>
void check_compare(Team team, DType dtype) {
  for (const Case& c : cases()) {
    const Array<T> a = values<T>(extent(c.box, 0), 3, 1), b = values<T>(extent(c.box, 1), 3, 0);
    const int64_t n = elements(c.box);
    for (int op = 0; op < kComparisonCount; ++op) {
      Array<uint8_t> y(n + 1, 3);
      y[n] = 77;
      compare(
          team,
          {.op = Comparison(op), .dtype = dtype, .box = c.box, .a = a.data(), .b = b.data(), .y = y.data()});
      ASSERT_EQ(y[n], 77);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i], truth(Comparison(op), a[offset(c.box, 0, i)], b[offset(c.box, 1, i)]))
            << c.name << " op " << op << " element " << i;
      }
    }
  }
}

TEST(Binary, every_comparison_agrees_with_its_meaning_under_every_broadcast) {
  test::at_every_level([](Team team) {
    check_compare<float>(team, DType::f32);
    check_compare<double>(team, DType::f64);
    check_compare<int32_t>(team, DType::i32);
    check_compare<int64_t>(team, DType::i64);
    check_compare<uint8_t>(team, DType::bool_);
  });
}

template <class T>
void check_select(Team team) {
  for (const Case& c : cases()) {
    const Array<uint8_t> condition = [&] {
      Array<uint8_t> v = values<uint8_t>(extent(c.box, 0), 5, 1);
      for (int64_t i = 0; i < v.size(); ++i) v[i] &= 2;
      return v;
    }();
    const Array<T> a = values<T>(extent(c.box, 1), 6, 1), b = values<T>(extent(c.box, 2), 7, 0);
    const int64_t n = elements(c.box);
    Array<T> y(n + 1, 1);
    y[n] = 77;
    select(team, {.element_bytes = sizeof(T),
                  .box = c.box,
                  .condition = condition.data(),
                  .a = a.data(),
                  .b = b.data(),
                  .y = y.data()});
    ASSERT_EQ(y[n], 77);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], condition[offset(c.box, 0, i)] ? a[offset(c.box, 1, i)] : b[offset(c.box, 2, i)])
          << c.name << " element " << i;
    }
  }
}

TEST(Binary, a_choice_takes_the_element_its_condition_names) {
  test::at_every_level([](Team team) {
    check_select<uint8_t>(team);
    check_select<uint16_t>(team);
    check_select<uint32_t>(team);
    check_select<uint64_t>(team);
  });
}

TEST(Binary, an_operand_may_be_the_result) {
  test::at_every_level([](Team team) {
    Array<float> x = test::random_array(20001, 1, -1, 1, 1), twice = x;
    const Broadcast box{.rank = 1, .size = {20001}, .strides = {{1}, {1}}};
    binary(team, {.op = Binary::add, .box = box, .a = twice.data(), .b = x.data(), .y = twice.data()});
    for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(twice[i], x[i] + x[i]);
  });
}

TEST(Binary, results_too_large_for_the_caches_are_the_same) {
  Pool pool(2);
  const Isa before = current_isa();
  const int64_t rows = 1500, n = 2501;  // 45 MB read and written
  const Array<float> a = test::random_array(rows * n, 8), b = test::random_array(n, 9);
  const Broadcast box{.rank = 2, .size = {rows, n}, .strides = {{n, 1}, {0, 1}}};
  for (Isa isa : available_isas()) {
    use_isa(isa);
    for (int shift : {0, 1}) {
      Array<float> y(rows * n, shift);
      binary(pool, {.op = Binary::mul, .box = box, .a = a.data(), .b = b.data(), .y = y.data()});
      for (int64_t i = 0; i < rows * n; ++i) ASSERT_EQ(y[i], a[i] * b[i % n]) << i;
    }
  }
  use_isa(before);
}

}  // namespace
}  // namespace rlx::cpu
