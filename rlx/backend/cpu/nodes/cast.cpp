// Casts from elements of one byte by a table of all 256 of them; regions take the other types.
#include "rlx/ops/elementwise/cast.h"

#include <cstring>

#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {
namespace {

// Elements below which a second thread costs more than it brings.
constexpr int64_t kSerialElements = 16384;

Support accepts(const Request& r) {
  if (!r.node.is<ops::Cast>()) return Support::no("not among its operators");
  if (dtype_size(r.in[0].dtype()) != 1) return Support::no("x is ", r.in[0].dtype());
  return all_row_major(r);
}

template <class T>
void look_up(Team team, const std::byte* table, const std::byte* x, std::byte* y, int64_t n) {
  team.parallel_for(n, kSerialElements, [&](int64_t begin, int64_t end) {
    const auto* entries = reinterpret_cast<const T*>(table);
    const auto* from = reinterpret_cast<const uint8_t*>(x);
    for (int64_t i = begin; i < end; ++i) reinterpret_cast<T*>(y)[i] = entries[from[i]];
  });
}

std::unique_ptr<Step> prepare(const Request& r) {
  Literal bytes = Literal::zeros(Shape(r.in[0].dtype(), {256}));
  for (size_t i = 0; i < 256; ++i) bytes.mutable_bytes()[i] = std::byte(i);
  const Literal table = bytes.cast(r.out[0].dtype());
  return make_step([table, n = r.in[0].shape.elements()](const Launch& l) {
    const std::byte* entries = table.bytes().data();
    switch (dtype_size(table.dtype())) {
      case 1:
        return look_up<uint8_t>(l.team, entries, l.in[0], l.out[0], n);
      case 2:
        return look_up<uint16_t>(l.team, entries, l.in[0], l.out[0], n);
      case 4:
        return look_up<uint32_t>(l.team, entries, l.in[0], l.out[0], n);
      default:
        return look_up<uint64_t>(l.team, entries, l.in[0], l.out[0], n);
    }
  });
}

}  // namespace

void add_cast(KernelTable& table) { table.add_general({"cast_bytes", accepts, prepare}); }

}  // namespace rlx::cpu
