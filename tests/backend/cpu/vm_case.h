// Regions written by hand, memory for their arguments, and runs of the register machine and of the judge.
#pragma once

#include <cstring>

#include "rlx/backend/cpu/vm/program.h"
#include "rlx/base/float16.h"
#include "rlx/region/canonical.h"
#include "rlx/region/interpret.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu::test {

using region::Lane;
using region::Op;
using region::Region;
using region::Role;
using region::Strides;

/// Builds a program value by value; `done` makes it canonical.
class RegionWriter {
 public:
  RegionWriter(std::vector<int64_t> dims, int row_rank)
      : region_{.dims = std::move(dims), .row_rank = row_rank} {}

  int in(DType t, Strides strides) { return argument(Role::in, t, strides); }
  int out(DType t, Strides strides) { return argument(Role::out, t, strides); }

  int load(int argument, Lane lane) {
    const bool per_row = region_.is_per_row(region_.arguments[size_t(argument)]);
    return region_.add({.op = Op::load, .lane = lane, .per_row = per_row, .argument = argument});
  }
  int number(Lane lane, double v) {
    return region_.add({.op = Op::constant,
                        .lane = lane,
                        .per_row = true,
                        .constant = {is_float(lane) ? v : 0, int64_t(v)}});
  }
  /// The result has the lane of the operands; comparisons give masks.
  int op(Op op, int a, int b = -1, int c = -1) {
    const Lane lane = region::is_comparison(op) ? Lane::mask : lane_of(op == Op::select ? b : a);
    return with_lane(op, lane, a, b, c);
  }
  int convert(Lane to, int a) { return with_lane(Op::convert, to, a, -1, -1); }
  int reduce(Op op, int a, region::Constant start) {
    return region_.add(
        {.op = op, .lane = lane_of(a), .per_row = true, .operands = {a, -1, -1}, .constant = start});
  }
  void store(int argument, int a) {
    const bool per_row = region_.is_per_row(region_.arguments[size_t(argument)]);
    region_.add({.op = Op::store,
                 .lane = lane_of(a),
                 .per_row = per_row,
                 .operands = {a, -1, -1},
                 .argument = argument});
  }
  Lane lane_of(int n) const { return region_.code[size_t(n)].lane; }
  bool per_row(int n) const { return region_.code[size_t(n)].per_row; }
  Region done() const { return region::canonical(region_); }

 private:
  int argument(Role role, DType t, Strides strides) {
    region_.arguments.push_back({.role = role, .dtype = t, .strides = strides});
    return int(region_.arguments.size()) - 1;
  }
  int with_lane(Op op, Lane lane, int a, int b, int c) {
    region::Instruction i{.op = op, .lane = lane, .per_row = true, .operands = {a, b, c}};
    for (int k = 0; k < region::arity(op); ++k) i.per_row = i.per_row && per_row(i.operands[size_t(k)]);
    return region_.add(i);
  }
  Region region_;
};

/// Elements between the first and the last that an argument touches.
inline int64_t extent(const Region& r, const region::Argument& a) {
  int64_t n = 1;
  for (int d = 0; d < r.rank(); ++d) {
    if (r.dims[size_t(d)] == 0) return 1;
    n += (r.dims[size_t(d)] - 1) * a.strides[size_t(d)];
  }
  return n;
}

/// Memory of all arguments but scratch, each as long as it must be and no longer.
struct Memory {
  std::vector<Array<uint8_t>> arrays;
  std::vector<std::byte*> pointers;

  explicit Memory(const Region& r, int offset = 0) {
    for (const region::Argument& a : r.arguments) {
      if (a.role == Role::scratch) continue;
      const int64_t size = int64_t(dtype_size(a.dtype));
      arrays.emplace_back(extent(r, a) * size, offset * int(size));
    }
    point();
  }
  Memory(const Memory& other) : arrays(other.arrays) { point(); }

  template <class T>
  T* as(int argument) {
    return reinterpret_cast<T*>(arrays[size_t(argument)].data());
  }
  int64_t bytes(int argument) const { return arrays[size_t(argument)].size(); }

 private:
  void point() {
    pointers.clear();
    for (auto& a : arrays) pointers.push_back(reinterpret_cast<std::byte*>(a.data()));
  }
};

/// Runs with a workspace full of NaN, so that nothing unset goes unnoticed.
inline void run_program(const RegionProgram& p, Team team, const Memory& m) {
  Array<uint8_t> workspace(int64_t(p.workspace(team.threads())));
  std::memset(workspace.data(), 0xff, size_t(workspace.size()));
  p.run(team, m.pointers, reinterpret_cast<std::byte*>(workspace.data()));
}

inline double element(DType t, const uint8_t* p, int64_t i) {
  const auto at = [&](auto x) {
    std::memcpy(&x, p + size_t(i) * sizeof x, sizeof x);
    return x;
  };
  switch (t) {
    case DType::bool_:
    case DType::u8:
      return at(uint8_t());
    case DType::i8:
      return at(int8_t());
    case DType::i16:
      return at(int16_t());
    case DType::i32:
      return at(int32_t());
    case DType::u32:
      return at(uint32_t());
    case DType::i64:
      return double(at(int64_t()));
    case DType::f16:
      return f16_to_f32(at(uint16_t()));
    case DType::bf16:
      return bf16_to_f32(at(uint16_t()));
    case DType::f32:
      return at(float());
    default:
      return at(double());
  }
}

/// Results of `got` and `want` agree: to the bit (NaN equal to NaN) for tolerance 0, else |a - b| <= tolerance
/// (1 + |b|).
inline bool agree(const Region& r, Memory& got, Memory& want, double tolerance, std::string& where) {
  for (size_t a = 0; a < got.arrays.size(); ++a) {
    const DType t = r.arguments[a].dtype;
    const int64_t size = int64_t(dtype_size(t));
    for (int64_t i = 0; i < got.bytes(int(a)) / size; ++i) {
      const double x = element(t, got.arrays[a].data(), i), y = element(t, want.arrays[a].data(), i);
      if (std::isnan(x) && std::isnan(y)) continue;
      const bool same =
          std::memcmp(got.arrays[a].data() + i * size, want.arrays[a].data() + i * size, size_t(size)) == 0;
      if (same || (tolerance > 0 && (x == y || std::fabs(x - y) <= tolerance * (1 + std::fabs(y))))) continue;
      where = "argument " + std::to_string(a) + " element " + std::to_string(i) + ": got " +
              std::to_string(x) + ", want " + std::to_string(y);
      return false;
    }
  }
  return true;
}

/// The machine against the judge, at every level with 1 to 3 threads.
inline void expect_judged(const Region& r, const Memory& memory, double tolerance) {
  ASSERT_EQ(region::problem(r), std::nullopt) << cat(r);
  Memory want = memory;
  region::interpret(r, want.pointers);
  at_every_level([&](Team team) {
    ASSERT_EQ(RegionProgram::refuses(r), std::nullopt) << cat(r);
    const RegionProgram program(r);
    Memory got = memory;
    run_program(program, team, got);
    std::string where;
    EXPECT_TRUE(agree(r, got, want, tolerance, where)) << where << ", schedule " << program.schedule() << "\n"
                                                       << cat(r);
  });
}

}  // namespace rlx::cpu::test
