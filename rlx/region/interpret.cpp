#include "rlx/region/interpret.h"

#include <cstring>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "rlx/region/scalar.h"

namespace rlx::region {
namespace {

template <class T>
T read(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void write(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

Constant integer_or_real(Lane lane, int64_t v) {
  if (lane == Lane::f32) return {double(float(v)), 0};
  return is_float(lane) ? Constant{double(v), 0} : Constant{0, v};
}

Constant load(const std::byte* p, DType t, Lane lane) {
  switch (t) {
    case DType::bool_:
      return {0, read<uint8_t>(p) != 0};
    case DType::u8:
      return integer_or_real(lane, read<uint8_t>(p));
    case DType::i8:
      return integer_or_real(lane, read<int8_t>(p));
    case DType::i16:
      return integer_or_real(lane, read<int16_t>(p));
    case DType::i32:
      return integer_or_real(lane, read<int32_t>(p));
    case DType::u32:
      return integer_or_real(lane, read<uint32_t>(p));
    case DType::i64:
      return integer_or_real(lane, read<int64_t>(p));
    case DType::f16:
      return {f16_to_f32(read<uint16_t>(p)), 0};
    case DType::bf16:
      return {bf16_to_f32(read<uint16_t>(p)), 0};
    case DType::f32:
      return {read<float>(p), 0};
    default:
      return {lane == Lane::f32 ? double(float(read<double>(p))) : read<double>(p), 0};
  }
}

void store(std::byte* p, DType t, const Constant& v) {
  switch (t) {
    case DType::bool_:
      return write<uint8_t>(p, v.integer != 0);
    case DType::u8:
    case DType::i8:
      return write(p, uint8_t(v.integer));
    case DType::i16:
      return write(p, uint16_t(v.integer));
    case DType::i32:
    case DType::u32:
      return write(p, uint32_t(v.integer));
    case DType::i64:
      return write(p, v.integer);
    case DType::f16:
      return write(p, f32_to_f16(float(v.real)));
    case DType::bf16:
      return write(p, f32_to_bf16(float(v.real)));
    case DType::f32:
      return write(p, float(v.real));
    default:
      return write(p, v.real);
  }
}

class Judge {
 public:
  Judge(const Region& r, std::span<std::byte* const> arguments) : region_(r), columns_(r.columns()) {
    RLX_CHECK(int(arguments.size()) == r.count(Role::in) + r.count(Role::out), arguments.size(),
              " arguments");
    memory_.assign(arguments.begin(), arguments.end());
    for (const Argument& a : r.arguments) {
      if (a.role != Role::scratch) continue;
      scratch_.emplace_back(size_t(columns_) * dtype_size(a.dtype));
      memory_.push_back(scratch_.back().data());
    }
    values_.resize(r.code.size());
    for (size_t n = 0; n < r.code.size(); ++n) values_[n].resize(r.code[n].per_row ? 1 : size_t(columns_));
  }

  void run() {
    for (int64_t row = 0; row < region_.rows(); ++row) {
      for (size_t n = 0; n < region_.code.size(); ++n) step(row, n);
    }
  }

 private:
  std::byte* address(int argument, int64_t row, int64_t column) const {
    const Argument& a = region_.arguments[size_t(argument)];
    int64_t offset = 0;
    if (a.role == Role::scratch) {
      offset = column;
    } else {
      for (int d = region_.rank() - 1; d >= 0; --d) {
        if (region_.dims[size_t(d)] <= 1) continue;
        int64_t& rest = d >= region_.row_rank ? column : row;
        offset += rest % region_.dims[size_t(d)] * a.strides[size_t(d)];
        rest /= region_.dims[size_t(d)];
      }
    }
    return memory_[size_t(argument)] + offset * int64_t(dtype_size(a.dtype));
  }

  const Constant& operand(const Instruction& i, int k, size_t column) const {
    const size_t n = size_t(i.operands[size_t(k)]);
    return values_[n][region_.code[n].per_row ? 0 : column];
  }

  void step(int64_t row, size_t n) {
    const Instruction& i = region_.code[n];
    if (i.op == Op::barrier) return;
    if (is_reduction(i.op)) {
      Constant total = i.constant;
      for (size_t c = 0; c < size_t(columns_); ++c) total = combine(i.op, i.lane, total, operand(i, 0, c));
      values_[n][0] = finish(i.lane, total);
      return;
    }
    for (size_t c = 0; c < values_[n].size(); ++c) {
      if (i.op == Op::store) {
        store(address(i.argument, row, int64_t(c)), region_.arguments[size_t(i.argument)].dtype,
              operand(i, 0, c));
      } else if (i.op == Op::load) {
        values_[n][c] =
            load(address(i.argument, row, int64_t(c)), region_.arguments[size_t(i.argument)].dtype, i.lane);
      } else if (i.op == Op::constant) {
        values_[n][c] = i.constant;
      } else {
        const Constant none, &a = operand(i, 0, c), &b = arity(i.op) > 1 ? operand(i, 1, c) : none,
                             &e = arity(i.op) > 2 ? operand(i, 2, c) : none;
        values_[n][c] = evaluate(i, region_.code[size_t(i.operands[0])].lane, a, b, e);
      }
    }
  }

  const Region& region_;
  int64_t columns_;
  std::vector<std::byte*> memory_;
  std::vector<std::vector<std::byte>> scratch_;
  std::vector<std::vector<Constant>> values_;
};

}  // namespace

void interpret(const Region& r, std::span<std::byte* const> arguments) { Judge(r, arguments).run(); }

}  // namespace rlx::region
