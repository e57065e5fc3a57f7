// Attention of many queries by blocks that stay (kernels/attention_items.h).
#pragma once

#include "rlx/backend/cuda/nodes/head_maps.h"

namespace rlx::cuda {

class AttentionItems {
 public:
  /// Whether scores are no more than scaled products, of enough queries, from tensors that the copy engine of Hopper can read, with no mask or one
  /// that all heads share. Another processor takes none.
  static bool takes(const Request&, const ops::AttentionAttrs&, const AttentionShape&);

  AttentionItems(const Request&, const ops::AttentionAttrs&, const AttentionShape&);
  const std::string& note() const { return note_; }
  /// For the table of a mask that is not given.
  size_t workspace() const { return mask_table_ ? table_bytes() + bit_bytes() : 0; }

  void run(const Launch&, const AttentionParameters&) const;
  /// `table` and `bits` of the mask are there already.
  void run(const Launch&, const AttentionParameters&, const std::byte* table, const std::byte* bits) const;

 private:
  Grid mask_grid() const { return {(k_len_ + 63) / 64, (q_len_ + 63) / 64, masks_}; }
  size_t table_bytes() const;
  size_t bit_bytes() const;

  const Device& device_;
  int64_t batch_, q_len_, k_len_, masks_;
  bool narrow_, shared_rows_;
  HeadMap maps_[3];  // q, k, v
  FunctionRef items_, mask_table_;
  std::string note_;
};

}  // namespace rlx::cuda
