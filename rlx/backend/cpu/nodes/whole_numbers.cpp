#include "rlx/backend/cpu/nodes/whole_numbers.h"

#include <cmath>

#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {
namespace {

template <class T>
T read(const std::byte* data, int64_t i) {
  return reinterpret_cast<const T*>(data)[i];
}

double real_at(DType dtype, const std::byte* data, int64_t i) {
  return dtype == DType::f32 ? double(read<float>(data, i)) : read<double>(data, i);
}

}  // namespace

int64_t integer_at(DType dtype, const std::byte* data, int64_t i) {
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return read<uint8_t>(data, i);
    case DType::i8:
      return read<int8_t>(data, i);
    case DType::i16:
      return read<int16_t>(data, i);
    case DType::i32:
      return read<int32_t>(data, i);
    case DType::u32:
      return read<uint32_t>(data, i);
    default:
      RLX_CHECK(dtype == DType::i64, dtype, " is no integer");
      return read<int64_t>(data, i);
  }
}

Support accepts_whole_numbers(const Request& r, size_t operand) {
  const Arg& x = r.in[operand];
  if (!is_integer(x.dtype()) && x.dtype() != DType::f32 && x.dtype() != DType::f64)
    return Support::no("operand ", operand, " is ", x.dtype());
  if (!x.is_row_major()) return Support::no("operand ", operand, " is strided");
  return Support::yes();
}

WholeNumbers::WholeNumbers(const Request& r, size_t i)
    : operand(i),
      dtype(r.in[i].dtype()),
      count(r.in[i].shape.elements()),
      op(r.node.op->name),
      name(r.node.op->operands[i]) {}

size_t WholeNumbers::workspace() const { return plain() ? 0 : wide_workspace(); }

size_t WholeNumbers::wide_workspace() const {
  return dtype == DType::i64 ? 0 : round_up(size_t(count) * sizeof(int64_t));
}

Indices WholeNumbers::indices(const Launch& l, std::byte* workspace, IndexMode mode) const {
  if (plain()) return {l.in[operand], dtype, mode};
  return {wide(l, workspace), DType::i64, mode};
}

const int64_t* WholeNumbers::wide(const Launch& l, std::byte* workspace) const {
  const std::byte* data = l.in[operand];
  if (dtype == DType::i64) return reinterpret_cast<const int64_t*>(data);
  auto* out = reinterpret_cast<int64_t*>(workspace);
  for (int64_t i = 0; i < count; ++i) {
    if (!is_float(dtype)) {
      out[i] = integer_at(dtype, data, i);
      continue;
    }
    const double v = real_at(dtype, data, i);
    if (!(std::trunc(v) == v && std::fabs(v) < 0x1p62))
      throw invalid(op, ": element ", i, " of ", name, " is ", v, "; an index is a whole number");
    out[i] = int64_t(v);
  }
  return out;
}

const int64_t* WholeNumbers::wide_below(int64_t size, const Launch& l, std::byte* workspace) const {
  const int64_t* out = wide(l, workspace);
  for (int64_t i = 0; i < count; ++i) {
    if (out[i] < 0 || out[i] >= size)
      throw invalid(op, ": element ", i, " of ", name, " is ", out[i], "; it must be at least 0 and below ",
                    size);
  }
  return out;
}

}  // namespace rlx::cpu
