#include "rlx/llm/prefix_cache.h"

#include <algorithm>

#include "rlx/base/error.h"

namespace rlx::llm {

namespace {

std::vector<TokenId> page_at(std::span<const TokenId> text, int64_t start, int64_t page) {
  const auto part = text.subspan(size_t(start), size_t(page));
  return {part.begin(), part.end()};
}

}  // namespace

PrefixCache::PrefixCache(PagePool& all, PagePool& window_pool, int64_t page, int64_t window)
    : all_(all), window_pool_(window_pool), page_(page), window_(window) {}
PrefixCache::~PrefixCache() = default;

std::vector<PagePair> PrefixCache::find(std::span<const TokenId> text, int64_t most) {
  std::vector<Node*> way;
  Node* at = &root_;
  for (int64_t start = 0; start + page_ <= std::min(most, int64_t(text.size())); start += page_) {
    const auto next = at->children.find(page_at(text, start, page_));
    if (next == at->children.end()) break;
    way.push_back(at = next->second);
  }
  // The next token of a text of n pages sees tokens from n * page - window + 1 on; the pages with those must be there.
  const auto first_seen = [&](size_t n) {
    return size_t(std::max<int64_t>(0, int64_t(n) * page_ - window_ + 1) / page_);
  };
  const auto complete = [&](size_t n) {
    for (size_t i = first_seen(n); i < n; ++i)
      if (way[i]->pages.window == 0) return false;
    return true;
  };
  if (window_ > 0)
    while (!way.empty() && !complete(way.size())) way.pop_back();
  std::vector<PagePair> out;
  ++clock_;
  for (size_t i = 0; i < way.size(); ++i) {
    way[i]->used = clock_;
    PagePair pages = way[i]->pages;
    all_.share(pages.all);
    if (window_ > 0 && i >= first_seen(way.size()))
      window_pool_.share(pages.window);
    else
      pages.window = 0;
    out.push_back(pages);
  }
  return out;
}

void PrefixCache::add(std::span<const TokenId> text, int64_t before, PagePair pages) {
  RLX_CHECK(before % page_ == 0 && before + page_ <= int64_t(text.size()), "page behind ", before, " tokens");
  Node* at = &root_;
  for (int64_t start = 0; start < before; start += page_) {
    const auto next = at->children.find(page_at(text, start, page_));
    if (next == at->children.end()) return;
    at = next->second;
  }
  const auto [place, is_new] = at->children.try_emplace(page_at(text, before, page_), nullptr);
  if (!is_new) {
    // Held already; a page of the window that was let go comes back.
    Node& held = *place->second;
    if (held.pages.window == 0 && pages.window != 0) window_pool_.share(held.pages.window = pages.window);
    held.used = ++clock_;
    return;
  }
  nodes_.push_back(std::make_unique<Node>());
  Node* node = nodes_.back().get();
  node->parent = at;
  node->place = place;
  node->pages = pages;
  node->used = ++clock_;
  node->self = std::prev(nodes_.end());
  place->second = node;
  all_.share(pages.all);
  if (pages.window != 0) window_pool_.share(pages.window);
}

// Who uses a page uses those before it too, so below a node that nobody uses nobody uses one.
bool PrefixCache::is_unused(const Node& n, bool window) const {
  if (window) return n.pages.window != 0 && window_pool_.users(n.pages.window) == 1;
  return all_.users(n.pages.all) == 1;
}

int64_t PrefixCache::count_unused(bool window) const {
  return std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return is_unused(*n, window); });
}

PrefixCache::Node* PrefixCache::oldest(bool window) const {
  Node* found = nullptr;
  for (const auto& n : nodes_) {
    if (!is_unused(*n, window) || (!window && !n->children.empty())) continue;
    if (found == nullptr || n->used < found->used) found = n.get();
  }
  return found;
}

void PrefixCache::remove(Node* n) {
  all_.release(n->pages.all);
  if (n->pages.window != 0) window_pool_.release(n->pages.window);
  n->parent->children.erase(n->place);
  nodes_.erase(n->self);
}

bool PrefixCache::drop_one() {
  Node* const n = oldest(false);
  if (n == nullptr) return false;
  remove(n);
  return true;
}

bool PrefixCache::drop_one_window() {
  Node* const n = oldest(true);
  if (n == nullptr) return false;
  window_pool_.release(n->pages.window);
  n->pages.window = 0;
  return true;
}

void PrefixCache::clear() {
  while (drop_one()) {
  }
}

}  // namespace rlx::llm
