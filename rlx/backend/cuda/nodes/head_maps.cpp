#include "rlx/backend/cuda/nodes/head_maps.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLineBytes = 128;
constexpr int kUint8 = 0, kFloat16 = 6, kBfloat16 = 9;  // CU_TENSOR_MAP_DATA_TYPE
constexpr int kSwizzle128 = 3, kPromote128 = 2;

// Of an axis of one element the engine wants a stride too.
int64_t stride_bytes(int64_t extent, int64_t stride, int64_t element) {
  return extent == 1 ? kLineBytes : stride * element;
}

}  // namespace

bool HeadMap::is_possible() const {
  const HeadStrides& s = tensor.strides;
  constexpr int64_t kMostBytes = int64_t(1) << 40, kAlignment = 16;
  const int64_t element = is_bytes ? 1 : 2;
  for (const auto& [extent, stride] :
       {std::pair{tensor.rows, s.row}, {heads, s.head}, {tensor.batch, s.batch}}) {
    const int64_t bytes = stride_bytes(extent, stride, element);
    if (bytes <= 0 || bytes >= kMostBytes || bytes % kAlignment != 0) return false;
  }
  return tensor.lanes * element % kLineBytes == 0;
}

TensorMap HeadMap::encode(const Driver& d, const std::byte* at, int rows) const {
  const HeadStrides& s = tensor.strides;
  const int64_t element = is_bytes ? 1 : 2;
  const int type = is_bytes ? kUint8 : is_bf16 ? kBfloat16 : kFloat16;
  const uint64_t extents[] = {uint64_t(tensor.lanes), uint64_t(tensor.rows), uint64_t(heads),
                              uint64_t(tensor.batch)};
  const uint64_t strides[] = {uint64_t(stride_bytes(tensor.rows, s.row, element)),
                              uint64_t(stride_bytes(heads, s.head, element)),
                              uint64_t(stride_bytes(tensor.batch, s.batch, element))};
  const unsigned box[] = {unsigned(kLineBytes / element), unsigned(rows), 1, 1}, steps[] = {1, 1, 1, 1};
  alignas(64) TensorMap map{};  // as the driver wants it
  check(d.TensorMapEncodeTiled(&map, type, 4, const_cast<std::byte*>(at), extents, strides, box, steps, 0,
                               kSwizzle128, kPromote128, 0),
        "describing a tensor to the copy engine");
  return map;
}

}  // namespace rlx::cuda
