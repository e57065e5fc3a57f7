// Three ways to the same answer, by the number of symbols:
//   up to kShortWord   scan all pair ranks for the smallest; quadratic, but in one cache line or two
//   up to kWindow      MergeQueue; near linear
//   more               windows of kWindow symbols, so that the lists stay in the cache
//
// A window ends where the word goes on, so its last symbol may merge with something unseen. Let R be whatever
// stands behind the last symbol K: all that is known of R is its first symbol f. (K, R) has a rank of at
// least front_rank(K, f), the lowest of any merge of K with a token that begins with f. While the lowest rank
// inside the window is below that, the whole word would merge the same pair next. When it is not, K is given
// up: it belongs to the unseen part, and the symbol before it is the last one. A symbol whose front rank is
// kNoRank never merges to the right, so the word can be cut behind it, and the next window begins there.
#include <algorithm>
#include <bit>

#include "rlx/text/bpe.h"
#include "rlx/text/hash.h"

namespace rlx::text {

namespace {

constexpr uint32_t kWindow = 1024;
constexpr uint32_t kNoRank = MergeQueue::kNoRank;
constexpr uint32_t kNone = 0xFFFFFFFF;

}  // namespace

const Bpe::PairSlot* Bpe::find_pair(TokenId left, TokenId right) const {
  const uint64_t hash = hash_pair(left, right);
  if (!(pair_filter_[(hash >> 38) & (pair_filter_.size() - 1)] >> (hash >> 32 & 63) & 1)) return nullptr;
  const size_t mask = pairs_.size() - 1;
  for (size_t at = hash & mask; pairs_[at].left >= 0; at = (at + 1) & mask) {
    if (pairs_[at].left == left && pairs_[at].right == right) return &pairs_[at];
  }
  return nullptr;
}

void Bpe::merge_short(std::vector<Token>& symbols) const {
  size_t n = symbols.size();
  if (n < 2) return;
  const PairSlot* pairs[kShortWord];
  uint32_t ranks[kShortWord];
  const auto look = [&](size_t i) {
    pairs[i] = find_pair(symbols[i].id, symbols[i + 1].id);
    ranks[i] = pairs[i] ? pairs[i]->rank : kNoRank;
  };
  for (size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNoRank) break;
    symbols[best].id = pairs[best]->result;
    symbols[best].range.end = symbols[best + 1].range.end;
    --n;
    for (size_t i = best + 1; i < n; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 1 < n; ++i) pairs[i] = pairs[i + 1], ranks[i] = ranks[i + 1];
    if (best + 1 < n) look(best);
    if (best > 0) look(best - 1);
  }
  symbols.resize(n);
}

void Bpe::note_fronts() const {
  size_t count = 0;
  for (const PairSlot& p : pairs_) count += p.left >= 0;
  fronts_.resize(std::bit_ceil(count * 2 + 16));
  const size_t mask = fronts_.size() - 1;
  for (const PairSlot& p : pairs_) {
    if (p.left < 0) continue;
    const std::string_view right = spelling(p.right);
    if (right.empty()) continue;
    const Decoded c = decode_utf8(right, 0);
    const int byte = options_.bytes ? char_to_byte(c.code) : 0;
    if (byte < 0) continue;  // no symbol begins like this
    const TokenId first =
        options_.bytes ? byte_tokens_[size_t(byte)] : vocab_.find(right.substr(0, c.length)).value_or(-1);
    if (first < 0) continue;
    size_t at = hash_pair(p.left, first) & mask;
    while (fronts_[at].left >= 0 && !(fronts_[at].left == p.left && fronts_[at].first == first))
      at = (at + 1) & mask;
    const uint32_t lowest = fronts_[at].left >= 0 ? std::min(fronts_[at].rank, p.rank) : p.rank;
    fronts_[at] = {p.left, first, lowest};
  }
}

uint32_t Bpe::front_rank(TokenId left, TokenId first) const {
  const size_t mask = fronts_.size() - 1;
  for (size_t at = hash_pair(left, first) & mask; fronts_[at].left >= 0; at = (at + 1) & mask) {
    if (fronts_[at].left == left && fronts_[at].first == first) return fronts_[at].rank;
  }
  return kNoRank;
}

// Merges the first n symbols into scratch.window. Where more symbols follow, the tokens hold only up to the
// symbol whose index is returned; 0 when more than half of the window would have to be given up.
uint32_t Bpe::merge_window(std::span<const Token> symbols, uint32_t n, ModelScratch& scratch) const {
  // A doubly linked list over the symbols; a merged symbol takes the place of its left half.
  std::vector<Token>& work = scratch.window;
  std::vector<uint32_t>&next = scratch.next, &previous = scratch.previous;
  std::vector<MergeQueue::Waiting>& places = scratch.places;
  work.assign(symbols.begin(), symbols.begin() + n);
  next.resize(n);
  previous.resize(n);
  for (uint32_t i = 0; i < n; ++i) next[i] = i + 1 < n ? i + 1 : kNone, previous[i] = i ? i - 1 : kNone;
  MergeQueue& queue = scratch.queue;
  queue.start(rank_count_);
  const auto offer = [&](uint32_t left) {
    if (const PairSlot* p = find_pair(work[left].id, work[next[left]].id))
      queue.push(p->rank, {left, uint32_t(p - pairs_.data())});
  };
  for (uint32_t i = 0; i + 1 < n; ++i) offer(i);

  const bool open = n < symbols.size();
  uint32_t frontier = n, last = n - 1;  // `last` is the last symbol before the frontier
  const auto limit = [&] { return open ? front_rank(work[last].id, symbols[frontier].id) : kNoRank; };
  uint32_t last_rank = limit();
  for (;;) {
    const uint32_t rank = queue.lowest();
    while (last_rank != kNoRank && last_rank <= rank) {
      frontier = last;
      last = previous[last];
      if (frontier < n / 2 || last == kNone) return 0;
      last_rank = limit();
    }
    if (rank == kNoRank) break;
    queue.take(places);
    for (size_t k = 0; k < places.size(); ++k) {
      const uint32_t at = places[k].place;
      if (work[at].id < 0 || next[at] >= frontier) continue;
      const uint32_t right = next[at];
      const PairSlot& pair = pairs_[places[k].pair];
      if (work[at].id != pair.left || work[right].id != pair.right)
        continue;  // one of its halves has gone into another merge
      work[at].id = pair.result;
      work[at].range.end = work[right].range.end;
      work[right].id = -1;
      next[at] = next[right];
      if (right == last) last = at, last_rank = limit();
      if (next[at] != kNone) {
        previous[next[at]] = at;
        offer(at);
      }
      if (previous[at] != kNone) offer(previous[at]);
      if (queue.lowest() <= rank) {
        // The merge made a pair that goes before the rest of this list.
        for (size_t rest = k + 1; rest < places.size(); ++rest) queue.push(rank, places[rest]);
        break;
      }
    }
  }
  work.resize(frontier);
  return frontier;
}

void Bpe::merge_long(std::vector<Token>& symbols, ModelScratch& scratch) const {
  const auto n = uint32_t(symbols.size());
  const bool windows = n > kWindow && spelled_;
  if (windows) std::call_once(fronts_made_, [&] { note_fronts(); });
  // A window that fails is tried again four times as large, and one that does not gives at least half of its
  // symbols: together less than three times the work of a single pass.
  size_t tokens = 0;
  for (uint32_t begin = 0; begin < n;) {
    uint32_t done = 0;
    for (uint64_t size = windows ? kWindow : n; done == 0; size *= 4)
      done = merge_window(std::span(symbols).subspan(begin), uint32_t(std::min<uint64_t>(size, n - begin)),
                          scratch);
    for (const Token& t : scratch.window)
      if (t.id >= 0) symbols[tokens++] = t;
    begin += done;
  }
  symbols.resize(tokens);
}

}  // namespace rlx::text
