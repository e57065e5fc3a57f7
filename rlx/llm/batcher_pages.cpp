// Which request may begin, and whose pages are whose.
//
// A text that begins may need pages up to its longest; so many are reserved for it, less those it finds in prefixes. Free pages and
// those of prefixes that nobody uses are never fewer than the reserved ones, so no text stops half-way for want of a page.
#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/llm/batcher_state.h"

namespace rlx::llm {

int64_t Batcher::State::pages_needed(int64_t tokens) const {
  return has_attention || has_window ? (tokens + options.page - 1) / options.page : 0;
}

// At once: those of a window, which may begin and end inside of a page, and the page that a piece of a prompt is written to.
int64_t Batcher::State::window_pages_needed(int64_t tokens) const {
  if (!has_window) return 0;
  return std::min(pages_needed(tokens), (window + options.page - 1) / options.page + 2);
}

bool Batcher::State::admit(Sequence& q) {
  if (free_rows.empty()) return false;
  q.pages.clear();
  // The last token of the prompt is read in any case: its logits choose the first token.
  if (options.share_prefixes) q.pages = prefixes.find(q.prompt, int64_t(q.prompt.size()) - 1);
  const auto found = int64_t(q.pages.size());
  int64_t held_window = 0;
  for (const PagePair& p : q.pages) held_window += p.window != 0;
  const int64_t need = pages_needed(q.longest) - found;
  const int64_t need_window =
      std::clamp<int64_t>(window_pages_needed(q.longest) - held_window, 0, std::max<int64_t>(0, need));
  const int64_t room = pool.free() + prefixes.unused() - reserved;
  const int64_t room_window =
      has_window ? window_pool.free() + prefixes.unused_window() - reserved_window : 0;
  if (need > room || need_window > room_window) {
    leave(q);
    return false;
  }
  q.reserved = need;
  q.reserved_window = need_window;
  reserved += need;
  reserved_window += need_window;
  q.row = free_rows.back();
  free_rows.pop_back();
  q.length = q.reused = found * options.page;
  shared_tokens += q.reused;
  while (q.released_window < found && q.pages[size_t(q.released_window)].window == 0) ++q.released_window;
  return true;
}

void Batcher::State::leave(Sequence& q) {
  for (const PagePair& p : q.pages) {
    if (p.all != 0) pool.release(p.all);
    if (p.window != 0) window_pool.release(p.window);
  }
  q.pages.clear();
  reserved -= q.reserved;
  reserved_window -= q.reserved_window;
  q.reserved = q.reserved_window = 0;
  if (q.row >= 0) free_rows.push_back(q.row);
  q.row = -1;
}

void Batcher::State::hold_pages(Sequence& q, int64_t tokens) {
  while (int64_t(q.pages.size()) < pages_needed(tokens)) {
    if (pool.free() == 0) RLX_CHECK(prefixes.drop_one(), "a reserved page is missing");
    q.pages.push_back({.all = pool.take()});
    --q.reserved;
    --reserved;
    if (!has_window) continue;
    if (window_pool.free() == 0)
      RLX_CHECK(prefixes.drop_one_window(), "a reserved page of windows is missing");
    q.pages.back().window = window_pool.take();
    --q.reserved_window;
    --reserved_window;
  }
}

// The next token, number `length`, sees those from length - window + 1 on.
void Batcher::State::release_behind_window(Sequence& q) {
  if (!has_window) return;
  const int64_t seen = std::max<int64_t>(0, q.length - window + 1) / options.page;
  for (; q.released_window < std::min(seen, int64_t(q.pages.size())); ++q.released_window) {
    int32_t& page = q.pages[size_t(q.released_window)].window;
    window_pool.release(page);
    page = 0;
    // Another one takes its place, unless all that the text may get are there.
    const int64_t left = pages_needed(q.longest) - int64_t(q.pages.size());
    if (q.reserved_window < left) ++q.reserved_window, ++reserved_window;
  }
}

void Batcher::State::keep_prefix(Sequence& q, int64_t before) {
  if (options.share_prefixes) prefixes.add(q.prompt, before, q.pages[size_t(before / options.page)]);
}

}  // namespace rlx::llm
