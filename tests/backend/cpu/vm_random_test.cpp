// Random programs of exact operations: the register machine and the judge agree to the last bit.
#include <bit>

#include "rlx/base/text.h"
#include "tests/backend/cpu/vm_case.h"

namespace rlx::cpu {
namespace {

using namespace test;

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint32_t bits() { return philox_block(seed_, 1, count_++)[0]; }
  int below(int n) { return int(bits() % uint32_t(n)); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(int(list.size()))];
  }

 private:
  uint64_t seed_, count_ = 0;
};

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, bool wide) : dice_(seed), wide_(wide) {
    const int rank = 1 + dice_.below(3);
    for (int d = 0, most = 6000; d < rank; ++d) {
      dims_.push_back(std::min<int64_t>(size(), most));
      most = int(std::max<int64_t>(1, most / dims_.back()));
    }
    reduces_ = dice_.below(2) == 0;
    row_rank_ = reduces_ ? dice_.below(rank) : rank - 1;
  }

  Region write() {
    RegionWriter w(dims_, row_rank_);
    writer_ = &w;
    const int inputs = 1 + dice_.below(4);
    for (int i = 0; i < inputs; ++i) arguments_.push_back(w.in(memory_type(), layout(false)));
    const int full = dice_.below(reduces_ ? 2 : 1) == 0 ? 1 + dice_.below(2) : 0;
    std::vector<int> outs, row_outs;
    // The type of a result is known when its value is: results are written behind the inputs.
    for (int i = 0; i < inputs; ++i) {
      const DType t = types_[size_t(i)];
      values_.push_back(w.load(arguments_[size_t(i)], lane_for(t)));
      if (t == DType::f32 || t == DType::f64) whole_.push_back(values_.back());
    }
    const int steps = 3 + dice_.below(14);
    for (int i = 0; i < steps; ++i) step();
    if (reduces_) values_.push_back(reduction());
    for (int i = 0; i < dice_.below(4); ++i) step();
    for (int i = 0; i < full || outs.empty(); ++i) outs.push_back(any([](int) { return true; }));
    if (reduces_ && row_rank_ > 0) row_outs.push_back(any([&](int v) { return w.per_row(v); }));
    for (const int v : outs) w.store(w.out(stored_type(w.lane_of(v)), layout(true)), v);
    for (const int v : row_outs) {
      Strides s = layout(true);
      for (size_t d = size_t(row_rank_); d < dims_.size(); ++d) s[d] = 0;
      w.store(w.out(stored_type(w.lane_of(v)), s), v);
    }
    return w.done();
  }

  void fill(const Region& r, Memory& m) {
    for (size_t a = 0; a < types_.size(); ++a) {
      const DType t = types_[a];
      for (int64_t i = 0; i < m.bytes(int(a)) / int64_t(dtype_size(t)); ++i) put(t, m.as<uint8_t>(int(a)), i);
    }
    (void)r;
  }

 private:
  int64_t size() { return dice_.one_of<int64_t>({1, 2, 3, 5, 8, 17, 31, 64, 65, 130, 300}); }
  Lane real() const { return wide_ ? Lane::f64 : Lane::f32; }
  Lane whole() const { return wide_ ? Lane::i64 : Lane::i32; }

  DType memory_type() {
    const DType narrow = dice_.one_of({DType::f32, DType::f32, DType::f32, DType::bf16, DType::f16,
                                       DType::bool_, DType::i32, DType::u8, DType::i8, DType::i16});
    const DType wide =
        dice_.one_of({DType::f64, DType::f64, DType::i64, DType::f32, DType::bool_, DType::i32, DType::u32});
    types_.push_back(wide_ ? wide : narrow);
    return types_.back();
  }
  Lane lane_for(DType t) {
    return t == DType::bool_ ? Lane::mask : is_float(t) || dice_.below(3) == 0 ? real() : whole();
  }
  DType stored_type(Lane lane) {
    switch (lane) {
      case Lane::mask:
        return DType::bool_;
      case Lane::i32:
        return dice_.one_of({DType::i32, DType::u8, DType::i16});
      case Lane::i64:
        return dice_.one_of({DType::i64, DType::i32, DType::u32});
      case Lane::f32:
        return dice_.one_of({DType::f32, DType::f32, DType::bf16, DType::f16});
      default:
        return dice_.one_of({DType::f64, DType::f32});
    }
  }

  // Dense in some order of the dimensions, perhaps with holes; inputs may repeat along dimensions.
  Strides layout(bool result) {
    std::vector<size_t> order(dims_.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    if (dice_.below(3) == 0) std::swap(order[size_t(dice_.below(int(order.size())))], order.back());
    Strides s{};
    int64_t step = dice_.below(8) == 0 ? 2 : 1;
    for (size_t k = order.size(); k-- > 0;) {
      if (!result && dice_.below(5) == 0) continue;
      s[order[k]] = step;
      step *= std::max<int64_t>(1, dims_[order[k]]);
    }
    return s;
  }

  template <class F>
  int any(F suits) {
    std::vector<int> found;
    for (const int v : values_) {
      if (suits(v)) found.push_back(v);
    }
    return found.empty() ? -1 : found[size_t(dice_.below(int(found.size())))];
  }
  int of_lane(Lane lane) {
    const int v = any([&](int n) { return writer_->lane_of(n) == lane; });
    if (v >= 0 && dice_.below(6) != 0) return v;
    return lane == Lane::mask ? writer_->op(Op::lt, of_lane(real()), of_lane(real()))
                              : writer_->number(lane, double(dice_.below(7)) - 3);
  }

  void step() {
    RegionWriter& w = *writer_;
    const int kind = dice_.below(10);
    int v = -1;
    if (kind < 3) {
      v = w.op(dice_.one_of({Op::add, Op::sub, Op::mul, Op::div, Op::max, Op::min, Op::rem}), of_lane(real()),
               of_lane(real()));
    } else if (kind < 5) {
      v = w.op(dice_.one_of({Op::neg, Op::abs, Op::sign, Op::square, Op::sqrt, Op::reciprocal, Op::relu,
                             Op::floor, Op::ceil, Op::round}),
               of_lane(real()));
    } else if (kind == 5) {
      v = w.op(dice_.one_of({Op::add, Op::sub, Op::mul, Op::div, Op::max, Op::min, Op::rem, Op::bit_and,
                             Op::bit_or, Op::bit_xor, Op::shift_left, Op::shift_right}),
               of_lane(whole()), of_lane(whole()));
    } else if (kind == 6) {
      v = w.op(dice_.one_of({Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge}), of_lane(real()),
               of_lane(real()));
      if (dice_.below(2) == 0)
        v = w.op(dice_.one_of({Op::bit_and, Op::bit_or, Op::bit_xor}), v, of_lane(Lane::mask));
      if (dice_.below(4) == 0) v = w.op(Op::bit_not, v);
    } else if (kind == 7) {
      const Lane lane = dice_.below(3) == 0 ? whole() : real();
      v = w.op(Op::select, of_lane(Lane::mask), of_lane(lane), of_lane(lane));
    } else if (kind == 8) {
      const Lane from = dice_.one_of({real(), whole(), Lane::mask});
      v = w.convert(from == real()    ? whole()
                    : from == whole() ? real()
                                      : dice_.one_of({real(), whole()}),
                    of_lane(from));
    } else {
      v = wide_ ? w.op(dice_.one_of({Op::neg, Op::abs, Op::sign, Op::bit_not}), of_lane(whole()))
                : w.op(dice_.one_of({Op::round_f16, Op::round_bf16}), of_lane(real()));
    }
    values_.push_back(v);
  }

  // Sums and products only of what every order adds up to alike.
  int reduction() {
    RegionWriter& w = *writer_;
    const int v = any([&](int n) { return w.lane_of(n) != Lane::mask; });
    if (v < 0) return w.reduce(Op::reduce_sum, of_lane(whole()), {0, 0});
    if (!is_float(w.lane_of(v))) {
      const Op op = dice_.one_of({Op::reduce_sum, Op::reduce_prod, Op::reduce_max, Op::reduce_min});
      const int64_t least = wide_ ? INT64_MIN : INT32_MIN;
      const region::Constant start{0, op == Op::reduce_sum    ? 0
                                      : op == Op::reduce_prod ? 1
                                      : op == Op::reduce_max  ? least
                                                              : -1 - least};
      return w.reduce(op, v, start);
    }
    if (!whole_.empty() && dice_.below(2) == 0) {
      const int x = whole_[size_t(dice_.below(int(whole_.size())))];
      const int rounded =
          w.op(Op::min, w.number(real(), 8), w.op(Op::max, w.number(real(), -8), w.op(Op::floor, x)));
      return w.reduce(Op::reduce_sum,
                      w.op(Op::select, w.op(Op::eq, rounded, rounded), rounded, w.number(real(), 1)), {0, 0});
    }
    // Of zeros of both signs the order decides which one it is: the sum with 0 has one sign.
    const bool max = dice_.below(2) == 0;
    const int extreme = w.reduce(max ? Op::reduce_max : Op::reduce_min, v, {max ? -INFINITY : INFINITY, 0});
    return w.op(Op::add, extreme, w.number(real(), 0));
  }

  void put(DType t, uint8_t* p, int64_t i) {
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 1.0, -1.0, 3e9};
    const double v =
        dice_.below(12) == 0 ? special[dice_.below(10)] : (double(dice_.bits() % 4096) - 2048) / 64;
    const auto write = [&](auto x) { std::memcpy(p + size_t(i) * sizeof x, &x, sizeof x); };
    switch (t) {
      case DType::bool_:
        return write(uint8_t(dice_.bits() & 1));
      case DType::u8:
      case DType::i8:
        return write(uint8_t(dice_.bits()));
      case DType::i16:
        return write(uint16_t(dice_.bits()));
      case DType::i32:
      case DType::u32:
        return write(dice_.below(2) == 0 ? dice_.bits() : uint32_t(dice_.below(40) - 20));
      case DType::i64:
        return write(dice_.below(2) == 0 ? int64_t(uint64_t(dice_.bits()) << 32 | dice_.bits())
                                         : int64_t(dice_.below(40) - 20));
      case DType::f16:
        return write(f32_to_f16(float(v)));
      case DType::bf16:
        return write(f32_to_bf16(float(v)));
      case DType::f32:
        return write(float(v));
      default:
        return write(v);
    }
  }

  Dice dice_;
  bool wide_;
  std::vector<int64_t> dims_;
  int row_rank_ = 0;
  bool reduces_ = false;
  RegionWriter* writer_ = nullptr;
  std::vector<int> arguments_, values_, whole_;
  std::vector<DType> types_;
};

void run_random(bool wide, int count) {
  for (int seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram random(uint64_t(seed), wide);
    const Region r = random.write();
    Memory m(r, seed % 3);
    random.fill(r, m);
    expect_judged(r, m, 0);
  }
}

/// Results take the memory of inputs that they may overwrite, one each; says how many do.
int share_memory(const RegionProgram& program, const Region& r, Memory& m) {
  const int inputs = r.count(Role::in), results = r.count(Role::out);
  std::vector<bool> taken(size_t(inputs), false);
  int shared = 0;
  for (int y = 0; y < results; ++y) {
    for (int x = 0; x < inputs; ++x) {
      if (taken[size_t(x)] || !program.may_overwrite(y, x)) continue;
      taken[size_t(x)] = true;
      m.pointers[size_t(inputs + y)] = m.pointers[size_t(x)];
      ++shared;
      break;
    }
  }
  return shared;
}

TEST(VmRandom, results_in_the_memory_of_inputs_have_the_same_bits) {
  Pool pool(2);
  int shared = 0;
  for (int seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram random(uint64_t(seed), seed % 4 == 0);
    const Region r = random.write();
    Memory apart(r);
    random.fill(r, apart);
    Memory same = apart;
    const RegionProgram program(r);
    const int count = share_memory(program, r, same);
    if (count == 0) continue;
    shared += count;
    run_program(program, pool, apart);
    run_program(program, pool, same);
    for (int y = r.count(Role::in); y < int(apart.arrays.size()); ++y) {
      if (extent(r, r.arguments[size_t(y)]) != r.rows() * r.columns())
        continue;  // what lies in holes differs
      EXPECT_EQ(std::memcmp(same.pointers[size_t(y)], apart.pointers[size_t(y)], size_t(apart.bytes(y))), 0)
          << "result at argument " << y << "\n"
          << cat(r);
    }
  }
  EXPECT_GT(shared, 40);
}

TEST(VmRandom, exact_programs_in_lanes_of_four_bytes_agree_to_the_bit) { run_random(false, 600); }
TEST(VmRandom, exact_programs_in_lanes_of_eight_bytes_agree_to_the_bit) { run_random(true, 400); }

}  // namespace
}  // namespace rlx::cpu
