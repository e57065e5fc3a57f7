// Pages of beginnings that prompts have in common.
//
// A tree: the way from its root to a node is a text of whole pages, and the node holds the page of its last tokens. Texts are
// compared token by token, so a page is shared only with the same text before it.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rlx/llm/page_pool.h"
#include "rlx/text/vocab.h"

namespace rlx::llm {

using text::TokenId;

/// The pages of one place of a text: in the store of all tokens, and in that of layers with a window (0: none).
struct PagePair {
  int32_t all = 0, window = 0;
};

class PrefixCache {
 public:
  /// Pages of `page` tokens. `window`: tokens that layers with one see, 0 without such layers, whose pool is then not used.
  PrefixCache(PagePool& all, PagePool& window_pool, int64_t page, int64_t window);
  ~PrefixCache();

  /// The longest beginning of the text, of at most `most` tokens, whose pages are held; the caller becomes a user of the pages
  /// it gets. Pages that no window reaches any more have none in its store.
  std::vector<PagePair> find(std::span<const TokenId> text, int64_t most);
  /// Holds the page behind the first `before` tokens of the text too; the pages before it are held already, or nothing is
  /// done. Becomes a user of it.
  void add(std::span<const TokenId> text, int64_t before, PagePair pages);

  /// Pages that could be let go: nobody else uses them.
  int64_t unused() const { return count_unused(false); }
  int64_t unused_window() const { return count_unused(true); }
  /// Lets go the page that was used longest ago; false when there is none.
  bool drop_one();
  bool drop_one_window();
  void clear();
  int64_t pages() const { return int64_t(nodes_.size()); }

 private:
  struct Node;
  using Children = std::map<std::vector<TokenId>, Node*>;
  struct Node {
    Node* parent = nullptr;
    Children::iterator place;  // among the children of its parent
    Children children;
    PagePair pages;
    uint64_t used = 0;
    std::list<std::unique_ptr<Node>>::iterator self;
  };
  int64_t count_unused(bool window) const;
  bool is_unused(const Node&, bool window) const;
  Node* oldest(bool window) const;
  void remove(Node*);

  PagePool &all_, &window_pool_;
  int64_t page_, window_;
  Node root_;
  std::list<std::unique_ptr<Node>> nodes_;
  uint64_t clock_ = 0;
};

}  // namespace rlx::llm
