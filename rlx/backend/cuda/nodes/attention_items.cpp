#include "rlx/backend/cuda/nodes/attention_items.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/attention.h"
#include "rlx/backend/cuda/kernels/attention_items.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"

namespace rlx::cuda {
namespace {

constexpr int kManyRows = 256;     // queries that are worth blocks which have a processor for themselves
constexpr int64_t kFewBlocks = 2;  // for each processor: then the longest one is what is waited for
constexpr int64_t kElement = 2;    // bytes

// Sizes as in kernels/attention_items.h.
struct Sizes {
  int64_t groups, rows, places, slots;
  Sizes(bool narrow, bool shared_rows)
      : groups(narrow ? 3 : 2),
        rows(shared_rows ? 64 : 64 * groups),
        places(narrow ? 5 : 3),
        slots(narrow ? 2 : 1) {}
};

HeadMap map_of(const Request& r, const ops::AttentionAttrs& a, size_t operand) {
  const int64_t heads = operand == 0 ? a.num_heads : kv_heads_of(a);
  return {heads_of(r.in[operand], a.layout, heads), heads, r.in[operand].dtype() == DType::bf16};
}

bool is_narrow(const AttentionParameters& p) { return p.head_dim <= 64 && p.value_dim <= 64; }

}  // namespace

bool AttentionItems::takes(const Request& r, const ops::AttentionAttrs& a, const AttentionShape& shape) {
  const AttentionParameters& p = shape.p;
  const auto whole = [](int lanes) { return lanes == 64 || lanes == 128; };
  if (dtype_size(r.in[0].dtype()) != kElement || !whole(p.head_dim) || !whole(p.value_dim) ||
      p.q_len < kManyRows)
    return false;
  if (shape.bias >= 0 || p.softcap > 0 || !(p.scale > 0) || a.mask_kind == ops::MaskKind::sliding_window ||
      (shape.mask >= 0 && (p.ms.row == 0 || p.ms.head != 0)))
    return false;
  for (size_t i = 0; i < 3; ++i) {
    if (!map_of(r, a, i).is_possible()) return false;
  }
  return true;
}

AttentionItems::AttentionItems(const Request& r, const ops::AttentionAttrs& a, const AttentionShape& shape)
    : device_(device_of(r)),
      batch_(shape.batch),
      q_len_(shape.p.q_len),
      k_len_(shape.p.k_len),
      masks_(shape.p.ms.batch != 0 ? batch_ : 1),
      narrow_(is_narrow(shape.p)) {
  for (size_t i = 0; i < 3; ++i) maps_[i] = map_of(r, a, i);
  const int64_t processors = device_.multiprocessors();
  const int64_t rows = Sizes(narrow_, false).rows;
  shared_rows_ = narrow_ && (q_len_ + rows - 1) / rows * a.num_heads * batch_ < kFewBlocks * processors;
  const std::string before = cat(shape.text(r, a, 16), kAttentionShared, kAttentionWeights, kMatrixGroups);
  items_ = device_.functions().get(
      {"attention_items",
       cat(before, "constexpr bool kSplit = ", shared_rows_ ? "true" : "false", ";\n", kAttentionItems)});
  if (shape.mask >= 0) mask_table_ = device_.functions().get({"mask_table", before + kMaskTable});
  note_ = cat("matrix units of groups of warps, tiles copied ahead, blocks that stay",
              shared_rows_ ? ", groups share queries" : "");
}

size_t AttentionItems::table_bytes() const {
  const Grid g = mask_grid();
  return size_t(g.x * g.y * g.z + 7) / 8 * 8;
}
size_t AttentionItems::bit_bytes() const {
  return size_t(q_len_ * mask_grid().x * masks_) * sizeof(uint64_t);
}

void AttentionItems::run(const Launch& l, const AttentionParameters& p) const {
  std::byte *const table = mask_table_ ? l.workspace : nullptr, *const bits = mask_table_
                                                                                  ? table + table_bytes()
                                                                                  : nullptr;
  if (mask_table_) (*mask_table_)(stream_of(l).handle, mask_grid(), {256}, 0, p, table, bits);
  run(l, p, table, bits);
}

void AttentionItems::run(const Launch& l, const AttentionParameters& p, const std::byte* table,
                         const std::byte* bits) const {
  constexpr int64_t kKeys = 128, kSwizzle = 1024, kCacheBytes = 24 << 20, kThreads = 128;
  const Sizes n(narrow_, shared_rows_);
  const int64_t key_bytes = (p.head_dim + p.value_dim) * kElement, heads = p.q_heads * batch_,
                found = shared_rows_ ? (n.groups - 1) * (p.value_dim / 2 + 4) * kThreads * 4 : 0;
  const int64_t section = std::clamp<int64_t>(kCacheBytes / (key_bytes * p.k_len), 1, heads);
  const auto shared =
      size_t(n.slots * n.rows * p.head_dim * kElement + n.places * kKeys * key_bytes + found + kSwizzle);
  const Stream& s = stream_of(l);
  const Driver& d = s.gpu.use();
  const int64_t items = (p.q_len + n.rows - 1) / n.rows * heads;
  (*items_)(s.handle, {std::min<int64_t>(items, s.gpu.multiprocessors())}, {kThreads * (n.groups + 1)},
            shared, p, maps_[0].encode(d, p.q, 64), maps_[1].encode(d, p.k, kKeys),
            maps_[2].encode(d, p.v, kKeys), int(heads), int(section), table, bits);
}

}  // namespace rlx::cuda
