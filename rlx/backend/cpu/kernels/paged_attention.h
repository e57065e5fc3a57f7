// Attention over keys and values that lie in pages of a store.
//
// Key j of row b lies in slot pages[b * pages_of_row + j / page] * page + j % page. Queries of a row whose positions follow
// each other are taken together, and up to 32 of them give the bits of single ones; how their keys are cut depends on positions alone, never on where pages lie or on
// other rows, so a row gives the same bits in every batch and every store.
#pragma once

#include "rlx/backend/cpu/kernels/attention.h"

namespace rlx::cpu {

struct PagedAttention {
  /// What one row is: q_len queries, strides, format and addresses of q, k, v and o. The batch strides of q and o lead from
  /// row to row; those of k and v, k_len, masks and lse are not used. `window` as there: keys before the query's own.
  Attention form;
  int64_t rows = 1, slots = 0, page = 1, pages_of_row = 0;
  const int32_t* pages = nullptr;      // [rows, pages_of_row]
  const int32_t* positions = nullptr;  // [rows, q_len]; negative: no key is seen, the result is 0
};

size_t paged_attention_workspace(const PagedAttention&, int threads);
/// A page that is needed and is not in the store, or a position behind the pages of its row, is a user error.
void paged_attention(Team, const PagedAttention&, std::byte* workspace);

}  // namespace rlx::cpu
