// Casts that regions do not take: from elements of one byte by a table of all 256 of them, others element by element.
#include "rlx/ops/elementwise/cast.h"
#include "rlx/backend/cpu/kernels/grain.h"

#include <cstring>

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ir/cast_elements.h"

namespace rlx::cpu {
namespace {

// Elements below which a second thread costs more than it brings.

Support accepts(const Request& r) {
  if (!r.node.is<ops::Cast>()) return Support::no("not among its operators");
  if (dtype_size(r.in[0].dtype()) != 1) return Support::no("x is ", r.in[0].dtype());
  return all_row_major(r);
}

template <class T>
void look_up(Team team, const std::byte* table, const std::byte* x, std::byte* y, int64_t n) {
  team.parallel_for(n, kLightGrain, [&](int64_t begin, int64_t end) {
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

Support accepts_elements(const Request& r) {
  if (!r.node.is<ops::Cast>()) return Support::no("not among its operators");
  const DType from = r.in[0].dtype(), to = r.out[0].dtype();
  if (is_complex(to) || (is_complex(from) && to != DType::bool_))
    return Support::no("from ", from, " to ", to);
  return all_row_major(r);
}

// What few graphs ask for (i64 to bool, f32 to f8): the rule of the operator itself.
std::unique_ptr<Step> prepare_elements(const Request& r) {
  return make_step(
      [from = r.in[0].dtype(), to = r.out[0].dtype(), n = r.in[0].shape.elements()](const Launch& l) {
        l.team.parallel_for(n, kLightGrain, [&](int64_t begin, int64_t end) {
          cast_elements(from, l.in[0] + size_t(begin) * dtype_size(from), to,
                        l.out[0] + size_t(begin) * dtype_size(to), end - begin);
        });
      });
}

}  // namespace

void add_cast(KernelTable& table) {
  table.add_general({"cast_bytes", accepts, prepare});
  table.add_general({"cast_elements", accepts_elements, prepare_elements});
}

}  // namespace rlx::cpu
