// The regions that were measured when the machine was chosen, and what its interface promises.
#include "rlx/backend/cpu/kernels/unary.h"
#include "rlx/base/text.h"
#include "tests/backend/cpu/vm_case.h"

namespace rlx::cpu {
namespace {

using namespace test;
constexpr Lane kReal = Lane::f32;

void fill(Memory& m, int argument, uint64_t seed, float low = -2, float high = 2) {
  const int64_t n = m.bytes(argument) / 4;
  const Array<float> x = random_array(n, seed, low, high);
  for (int64_t i = 0; i < n; ++i) m.as<float>(argument)[i] = x[i];
}

Region bias_gelu(int64_t rows, int64_t n) {
  RegionWriter w({rows, n}, 1);
  const int x = w.in(DType::f32, {n, 1}), b = w.in(DType::f32, {0, 1}), y = w.out(DType::f32, {n, 1});
  w.store(y, w.op(Op::gelu, w.op(Op::add, w.load(x, kReal), w.load(b, kReal))));
  return w.done();
}

TEST(VmWorkload, bias_and_gelu) {
  for (const int64_t n : {1, 63, 64, 1000}) {
    const Region r = bias_gelu(9, n);
    Memory m(r, 1);
    fill(m, 0, 1), fill(m, 1, 2);
    expect_judged(r, m, 3e-7);
  }
}

TEST(VmWorkload, swiglu_over_a_long_line) {
  const int64_t n = 40001;
  RegionWriter w({n}, 0);
  const int x = w.in(DType::f32, {1}), g = w.in(DType::f32, {1}), y = w.out(DType::f32, {1});
  w.store(y, w.op(Op::mul, w.op(Op::silu, w.load(x, kReal)), w.load(g, kReal)));
  const Region r = w.done();
  Memory m(r);
  fill(m, 0, 1), fill(m, 1, 2);
  expect_judged(r, m, 5e-7);
}

// p, m, v and the gradient g -> p, m, v.
Region adamw(int64_t n) {
  RegionWriter w({n}, 0);
  int in[4], out[3];
  for (int& a : in) a = w.in(DType::f32, {1});
  for (int& a : out) a = w.out(DType::f32, {1});
  const auto scaled = [&](int v, double by) { return w.op(Op::mul, v, w.number(kReal, by)); };
  const int g = w.load(in[3], kReal);
  const int m = w.op(Op::add, scaled(w.load(in[1], kReal), 0.9), scaled(g, 0.1));
  const int v = w.op(Op::add, scaled(w.load(in[2], kReal), 0.999), scaled(w.op(Op::mul, g, g), 0.001));
  const int d = w.op(Op::add, w.op(Op::sqrt, scaled(v, 1.5)), w.number(kReal, 1e-8));
  const int p = w.op(Op::add, scaled(w.load(in[0], kReal), 0.99999), scaled(w.op(Op::div, m, d), -1e-3));
  w.store(out[1], m), w.store(out[2], v), w.store(out[0], p);
  return w.done();
}

TEST(VmWorkload, adamw_in_place_has_the_bits_of_adamw_elsewhere) {
  const Region r = adamw(1003);
  Memory m(r);
  for (int i = 0; i < 4; ++i) fill(m, i, uint64_t(i), i == 2 ? 0.0f : -1.0f, 1);
  expect_judged(r, m, 0);
  at_every_level([&](Team team) {
    const RegionProgram program(r);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(program.may_overwrite(i, i)) << i;
    EXPECT_FALSE(program.may_overwrite(1, 3));  // the gradient is read after m is written
    Memory apart = m, same = m;
    run_program(program, team, apart);
    for (size_t i = 0; i < 3; ++i) same.pointers[4 + i] = same.pointers[i];
    run_program(program, team, same);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(std::memcmp(same.as<float>(i), apart.as<float>(4 + i), size_t(m.bytes(i))), 0) << i;
  });
}

int mean(RegionWriter& w, int v, int64_t n) {
  return w.op(Op::mul, w.reduce(Op::reduce_sum, v, {0, 0}), w.number(kReal, 1.0 / double(n)));
}

Region layer_norm(int64_t rows, int64_t n) {
  RegionWriter w({rows, n}, 1);
  const int x = w.in(DType::f32, {n, 1}), g = w.in(DType::f32, {0, 1}), b = w.in(DType::f32, {0, 1});
  const int y = w.out(DType::f32, {n, 1}), s = w.out(DType::f32, {1, 0});
  const int v = w.load(x, kReal), d = w.op(Op::sub, v, mean(w, v, n));
  const int r = w.op(Op::rsqrt, w.op(Op::add, mean(w, w.op(Op::mul, d, d), n), w.number(kReal, 1e-5)));
  w.store(y, w.op(Op::add, w.op(Op::mul, w.op(Op::mul, d, r), w.load(g, kReal)), w.load(b, kReal)));
  w.store(s, r);
  return w.done();
}

TEST(VmWorkload, layer_norm_with_its_statistics) {
  for (const int64_t n : {5, 200, 10000}) {
    const Region region = layer_norm(37, n);
    EXPECT_EQ(region.phases(), 3);
    Memory m(region);
    for (int i = 0; i < 3; ++i) fill(m, i, uint64_t(i));
    expect_judged(region, m, 2e-6);
  }
}

Region softmax(std::vector<int64_t> dims, Strides strides, Strides mask) {
  RegionWriter w(std::move(dims), 1);
  const int x = w.in(DType::f32, strides), k = w.in(DType::f32, mask), y = w.out(DType::f32, strides);
  const int v = w.op(Op::add, w.load(x, kReal), w.load(k, kReal));
  const int e = w.op(Op::exp, w.op(Op::sub, v, w.reduce(Op::reduce_max, v, {-INFINITY, 0})));
  w.store(y, w.op(Op::div, e, w.reduce(Op::reduce_sum, e, {0, 0})));
  return w.done();
}

TEST(VmWorkload, softmax_with_a_mask_along_rows_and_along_columns) {
  const Region rows = softmax({50, 300}, {300, 1}, {0, 1}), columns = softmax({300, 50}, {1, 300}, {0, 1});
  EXPECT_EQ(RegionProgram(rows).schedule(), "rows");
  EXPECT_EQ(RegionProgram(columns).schedule(), "columns");
  for (const Region& r : {rows, columns}) {
    Memory m(r);
    fill(m, 0, 1, -9, 9), fill(m, 1, 2);
    m.as<float>(0)[7] = -INFINITY, m.as<float>(0)[1000] = NAN;
    expect_judged(r, m, 1e-6);
    EXPECT_TRUE(RegionProgram(r).may_overwrite(0, 0));
  }
}

// Large enough to be asked for in advance: in blocks of every width, in rows whose last pass is one instruction, in tails.
TEST(VmWorkload, operands_that_no_cache_holds) {
  for (const Region& r :
       {adamw(300001), bias_gelu(2000, 530), layer_norm(1200, 900), softmax({1400, 777}, {777, 1}, {0, 1})}) {
    Memory m(r);
    for (int i = 0; i < r.count(Role::in); ++i) fill(m, i, uint64_t(i), 0, 1);
    expect_judged(r, m, 2e-6);
  }
  for (const Lane lane : {Lane::f32, Lane::f64}) {
    const int64_t n = 700003;
    RegionWriter w({n}, 0);
    const int a = w.in(DType::f32, {1}), b = w.in(DType::bf16, {1}), c = w.in(DType::i8, {1}),
              d = w.in(DType::f64, {1}), mask = w.in(DType::bool_, {1}),
              y = w.out(lane == Lane::f32 ? DType::bf16 : DType::f64, {1});
    int sum = w.op(Op::add, w.load(a, lane), w.load(b, lane));
    sum = w.op(Op::add, sum, w.op(Op::mul, w.load(c, lane), w.load(d, lane)));
    w.store(y, w.op(Op::select, w.load(mask, Lane::mask), sum, w.load(a, lane)));
    const Region r = w.done();
    Memory m(r);
    fill(m, 0, 1);
    for (int64_t i = 0; i < n; ++i) {
      m.as<uint16_t>(1)[i] = f32_to_bf16(m.as<float>(0)[n - 1 - i]);
      m.as<int8_t>(2)[i] = int8_t(i % 13);
      m.as<double>(3)[i] = m.as<float>(0)[i] * 0.5f;
      m.as<uint8_t>(4)[i] = i % 3 == 0;
    }
    expect_judged(r, m, 0);
  }
}

TEST(VmWorkload, a_chain_with_many_values_used_twice) {
  RegionWriter w({777}, 0);
  const int x = w.load(w.in(DType::f32, {1}), kReal), y = w.load(w.in(DType::f32, {1}), kReal);
  const int out = w.out(DType::f32, {1});
  std::vector<int> t = {w.op(Op::add, x, y), w.op(Op::mul, x, w.number(kReal, 0.7))};
  for (int i = 0; i < 24; ++i) {
    const int a = t[t.size() - 1], b = t[t.size() - 2], c = t[t.size() * 2 / 3];
    const Op ops[] = {Op::max, Op::mul, Op::sub, Op::min, Op::add};
    t.push_back(i % 6 == 5 ? w.op(Op::select, w.op(Op::gt, a, w.number(kReal, 0)), b, c)
                           : w.op(ops[i % 5], i % 2 ? a : c, b));
  }
  w.store(out, t.back());
  const Region r = w.done();
  Memory m(r);
  fill(m, 0, 1), fill(m, 1, 2);
  expect_judged(r, m, 0);
}

// Sums and differences with products of memory, which the machine does in one instruction: each is rounded twice.
TEST(VmWorkload, sums_of_products_round_as_two_operations) {
  RegionWriter w({1000}, 0);
  const int a = w.load(w.in(DType::f32, {1}), kReal), b = w.load(w.in(DType::f32, {1}), kReal);
  const int c = w.load(w.in(DType::f32, {1}), kReal), third = w.number(kReal, 1.0 / 3);
  const int x = w.op(Op::sqrt, w.op(Op::abs, c));  // in the accumulator
  int out[6];
  for (int& y : out) y = w.out(DType::f32, {1});
  w.store(out[0], w.op(Op::add, x, w.op(Op::mul, a, b)));
  w.store(out[1], w.op(Op::sub, x, w.op(Op::mul, b, c)));
  w.store(out[2], w.op(Op::sub, w.op(Op::mul, a, c), x));
  w.store(out[3], w.op(Op::add, w.op(Op::mul, a, third), x));
  w.store(out[4], w.op(Op::sub, w.op(Op::mul, b, third), w.op(Op::mul, c, third)));
  w.store(out[5], w.op(Op::sub, x, w.op(Op::mul, c, third)));
  const Region r = w.done();
  Memory m(r, 1);
  for (int i = 0; i < 3; ++i) fill(m, i, uint64_t(i) + 1);
  expect_judged(r, m, 0);
  // With one rounding some of the sums would be others.
  const float *pa = m.as<float>(0), *pb = m.as<float>(1), *pc = m.as<float>(2);
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const float root = std::sqrt(std::fabs(pc[i])), product = pa[i] * pb[i];
    differ += root + product != std::fma(pa[i], pb[i], root);
  }
  EXPECT_GT(differ, 50);
}

// ((x - s) t) w + z with every choice of its parts, alone in its code and behind other instructions, also where x lay.
TEST(VmWorkload, ends_of_norms_round_as_their_operations) {
  for (const int64_t n : {5, 128, 130, 2048}) {
    for (int parts = 1; parts < 64; ++parts) {
      const bool divided = (parts & 16) != 0, behind = (parts & 32) != 0;
      if (divided && (parts & 15) != 0) continue;
      RegionWriter w({7, n}, 1);
      const int in = w.in(DType::f32, {n, 1}), per_row = w.in(DType::f32, {1, 0});
      const int weights = w.in(DType::f32, {0, 1}), bias = w.in(DType::f32, {0, 1});
      const int first = behind ? w.out(DType::f32, {n, 1}) : -1, y = w.out(DType::f32, {n, 1});
      const int x = w.load(in, kReal), t = w.load(per_row, kReal);
      if (behind) w.store(first, w.op(Op::sqrt, w.op(Op::abs, w.op(Op::sub, x, t))));
      int v = x;
      if (parts & 1) v = w.op(Op::sub, v, t);
      if (parts & 2) v = w.op(Op::mul, v, t);
      if (parts & 4) v = w.op(Op::mul, v, w.load(weights, kReal));
      if (parts & 8) v = w.op(Op::add, v, w.load(bias, kReal));
      if (divided) v = w.op(Op::div, v, t);
      w.store(y, v);
      const Region r = w.done();
      Memory m(r, 1);
      for (int i = 0; i < 4; ++i) fill(m, i, uint64_t(i + parts));
      expect_judged(r, m, 0);
      if (behind) continue;
      at_every_level([&](Team team) {
        const RegionProgram program(r);
        if (!program.may_overwrite(0, 0)) return;
        Memory apart = m, same = m;
        run_program(program, team, apart);
        same.pointers[size_t(y)] = same.pointers[0];
        run_program(program, team, same);
        EXPECT_EQ(std::memcmp(same.as<float>(0), apart.as<float>(y), size_t(m.bytes(0))), 0) << parts;
      });
    }
  }
}

// Operands of narrow types are read where they are used.
TEST(VmWorkload, narrow_operands_of_sums_and_products) {
  for (const DType t : {DType::bf16, DType::f16}) {
    RegionWriter w({3, 333}, 1);
    const auto in = [&] { return w.load(w.in(t, {333, 1}), kReal); };
    const int a = in(), b = in(), c = in(), d = in();
    const int sum = w.op(Op::add, w.op(Op::mul, a, b), c);
    w.store(w.out(DType::f32, {333, 1}), w.op(Op::mul, sum, d));
    w.store(w.out(t, {333, 1}), sum);
    const Region r = w.done();
    Memory m(r, 1);
    for (int i = 0; i < 4; ++i) {
      const Array<float> x = random_array(999, uint64_t(i), -3, 3);
      for (int64_t k = 0; k < 999; ++k)
        m.as<uint16_t>(i)[k] = t == DType::bf16 ? f32_to_bf16(x[k]) : f32_to_f16(x[k]);
    }
    expect_judged(r, m, 0);
  }
}

// Of both, the product can take one operand where it lies: the narrow one.
TEST(VmWorkload, sums_of_products_of_a_narrow_and_a_plain_operand) {
  for (const DType t : {DType::bf16, DType::f16}) {
    for (const bool narrow_first : {true, false}) {
      RegionWriter w({3, 333}, 1);
      const int a = w.load(w.in(t, {333, 1}), kReal), b = w.load(w.in(DType::f32, {333, 1}), kReal);
      const int product = narrow_first ? w.op(Op::mul, a, b) : w.op(Op::mul, b, a);
      w.store(w.out(DType::f32, {1, 0}), w.reduce(Op::reduce_sum, product, {0, 0}));
      const Region r = w.done();
      Memory m(r, 1);
      for (int64_t k = 0; k < 999; ++k) {
        const auto x = float(k % 9 - 4);
        m.as<uint16_t>(0)[k] = t == DType::bf16 ? f32_to_bf16(x) : f32_to_f16(x);
        m.as<float>(1)[k] = float(k * 7 % 11 - 5);
      }
      expect_judged(r, m, 0);
    }
  }
}

// Reductions of squares, of products, and of what memory holds, in rows that end within a block; whole numbers, so that
// every order gives the same sum.
TEST(VmWorkload, reductions_of_products_and_of_memory) {
  for (const int64_t n : {40, 64, 1000, 9000}) {
    RegionWriter w({5, n}, 1);
    const int a = w.load(w.in(DType::f32, {n, 1}), kReal), b = w.load(w.in(DType::f32, {n, 1}), kReal);
    const auto total = [&](Op op, int v, double start) {
      const int s = w.reduce(op, v, {start, 0});
      w.store(w.out(DType::f32, {1, 0}), s);
      return s;
    };
    total(Op::reduce_sum, w.op(Op::mul, a, b), 0);
    total(Op::reduce_sum, w.op(Op::mul, w.op(Op::abs, a), b), 0);
    total(Op::reduce_sum, w.op(Op::mul, a, a), 0);
    total(Op::reduce_sum, w.op(Op::square, w.op(Op::add, a, b)), 0);
    total(Op::reduce_min, b, INFINITY);
    const int most = total(Op::reduce_max, a, -INFINITY);
    const int about = w.op(Op::sub, b, most);
    total(Op::reduce_sum, w.op(Op::mul, about, about), 0);
    const Region r = w.done();
    Memory m(r);
    for (int i = 0; i < 2; ++i) {
      for (int64_t k = 0; k < 5 * n; ++k) m.as<float>(i)[k] = float((k * (7 + 4 * i)) % 9) - 4;
    }
    expect_judged(r, m, 0);
  }
}

TEST(VmWorkload, bf16_residual_and_rms_norm) {
  const int64_t n = 520;
  RegionWriter w({30, n}, 1);
  const int x = w.in(DType::bf16, {n, 1}), e = w.in(DType::bf16, {n, 1}), g = w.in(DType::f32, {0, 1});
  const int h = w.out(DType::bf16, {n, 1}), y = w.out(DType::bf16, {n, 1});
  const int v = w.op(Op::add, w.load(x, kReal), w.load(e, kReal));
  const int r = w.op(Op::rsqrt, w.op(Op::add, mean(w, w.op(Op::mul, v, v), n), w.number(kReal, 1e-5)));
  w.store(h, v);
  w.store(y, w.op(Op::mul, w.op(Op::mul, v, r), w.load(g, kReal)));
  const Region region = w.done();
  Memory m(region);
  for (int a = 0; a < 2; ++a) {
    const Array<float> values = random_array(30 * n, uint64_t(a));
    for (int64_t i = 0; i < 30 * n; ++i) m.as<uint16_t>(a)[i] = f32_to_bf16(values[i]);
  }
  fill(m, 2, 5);
  expect_judged(region, m, 8e-3);
}

TEST(VmWorkload, transpose_scale_and_bias_in_both_directions) {
  for (const auto& [in, out] :
       {std::pair{Strides{1, 150}, Strides{130, 1}}, {Strides{130, 1}, Strides{1, 150}}}) {
    RegionWriter w({150, 130}, 1);
    const int x = w.in(DType::f32, in), b = w.in(DType::f32, {0, 1}), y = w.out(DType::f32, out);
    w.store(y, w.op(Op::add, w.op(Op::mul, w.load(x, kReal), w.number(kReal, 0.5)), w.load(b, kReal)));
    const Region r = w.done();
    Memory m(r);
    fill(m, 0, 1), fill(m, 1, 2);
    expect_judged(r, m, 0);
  }
}

TEST(VmWorkload, sums_over_the_first_axis_of_a_product) {
  const int64_t rows = 3000, n = 100;
  RegionWriter w({n, rows}, 1);
  const int x = w.in(DType::f32, {1, n}), y = w.in(DType::f32, {1, n}), s = w.in(DType::f32, {0, 1});
  const int out = w.out(DType::f32, {1, 0});
  const int v = w.op(Op::mul, w.op(Op::mul, w.load(x, kReal), w.load(y, kReal)), w.load(s, kReal));
  w.store(out, w.reduce(Op::reduce_sum, v, {0, 0}));
  const Region r = w.done();
  EXPECT_EQ(RegionProgram(r).schedule(), "columns");
  Memory m(r);
  for (int i = 0; i < 3; ++i) fill(m, i, uint64_t(i), 0, 2);
  expect_judged(r, m, 2e-6);
}

TEST(VmWorkload, empty_rows_give_the_start_and_an_empty_box_nothing) {
  for (const int64_t rows : {0, 3}) {
    RegionWriter w({rows, 0}, 1);
    const int x = w.in(DType::f32, {0, 1}), a = w.out(DType::f32, {1, 0}), b = w.out(DType::f32, {1, 0});
    const int v = w.load(x, kReal);
    w.store(a, w.reduce(Op::reduce_sum, v, {0, 0}));
    w.store(b, w.reduce(Op::reduce_max, v, {-INFINITY, 0}));
    const Region r = w.done();
    Memory m(r);
    expect_judged(r, m, 0);
  }
}

TEST(VmWorkload, every_function_has_the_bits_of_its_kernel) {
  const std::pair<Op, Unary> functions[] = {{Op::neg, Unary::neg},
                                            {Op::abs, Unary::abs},
                                            {Op::sign, Unary::sign},
                                            {Op::square, Unary::square},
                                            {Op::sqrt, Unary::sqrt},
                                            {Op::rsqrt, Unary::rsqrt},
                                            {Op::reciprocal, Unary::reciprocal},
                                            {Op::exp, Unary::exp},
                                            {Op::expm1, Unary::expm1},
                                            {Op::log, Unary::log},
                                            {Op::log1p, Unary::log1p},
                                            {Op::sin, Unary::sin},
                                            {Op::cos, Unary::cos},
                                            {Op::tan, Unary::tan},
                                            {Op::atan, Unary::atan},
                                            {Op::tanh, Unary::tanh},
                                            {Op::sigmoid, Unary::sigmoid},
                                            {Op::erf, Unary::erf},
                                            {Op::relu, Unary::relu},
                                            {Op::silu, Unary::silu},
                                            {Op::gelu, Unary::gelu},
                                            {Op::gelu_tanh, Unary::gelu_tanh},
                                            {Op::gelu_quick, Unary::gelu_quick},
                                            {Op::softplus, Unary::softplus},
                                            {Op::floor, Unary::floor},
                                            {Op::ceil, Unary::ceil},
                                            {Op::round, Unary::round}};
  const int64_t n = 1001;
  for (const auto& [op, kernel] : functions) {
    SCOPED_TRACE(region::op_name(op));
    RegionWriter w({n}, 0), wide({n}, 0);
    const int x = w.load(w.in(DType::f32, {1}), Lane::f32),
              y = wide.load(wide.in(DType::f64, {1}), Lane::f64);
    w.store(w.out(DType::f32, {1}), w.op(op, x));
    wide.store(wide.out(DType::f64, {1}), wide.op(op, y));
    Memory m(w.done()), d(wide.done());
    fill(m, 0, 3, -20, 20);
    const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, 1e30f, -1e30f};
    for (int64_t i = 0; i < 8; ++i) m.as<float>(0)[i] = special[i];
    for (int64_t i = 0; i < n; ++i) d.as<double>(0)[i] = double(m.as<float>(0)[i]);
    at_every_level([&](Team team) {
      run_program(RegionProgram(w.done()), team, m);
      run_program(RegionProgram(wide.done()), team, d);
      Array<float> want(n);
      Array<double> wide_want(n);
      unary(team, kernel, m.as<float>(0), want.data(), n);
      unary(team, kernel, d.as<double>(0), wide_want.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const float g = m.as<float>(1)[i];
        const double h = d.as<double>(1)[i];
        const bool both = std::isnan(g) && std::isnan(want[i]),
                   both_wide = std::isnan(h) && std::isnan(wide_want[i]);
        EXPECT_TRUE(both || std::memcmp(&g, &want[i], 4) == 0) << i;
        EXPECT_TRUE(both_wide || std::memcmp(&h, &wide_want[i], 8) == 0) << i;
      }
    });
  }
}

}  // namespace
}  // namespace rlx::cpu
