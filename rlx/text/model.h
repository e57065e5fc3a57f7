// What turns one word into tokens. Each model lives in its own file; this is what they share.
#pragma once

#include <string_view>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/text/merge_queue.h"
#include "rlx/text/unicode.h"
#include "rlx/text/vocab.h"

namespace rlx::text {

struct Token {
  TokenId id;
  Range range;  // bytes of the word
};

/// Tokens under way: ids, and ranges where asked. Ranges are relative to `base`.
struct TokenSink {
  std::vector<TokenId> ids;
  std::vector<Range> ranges;
  bool want_ranges = false;
  uint32_t base = 0;  // added to each range

  void add(TokenId id, Range r) {
    ids.push_back(id);
    if (want_ranges) ranges.push_back({r.begin + base, r.end + base});
  }
};

/// Words seen before, with their tokens. A direct-mapped table: a new word takes the slot of an old one, and
/// everything is forgotten when the store is full, so memory is bounded and look-ups never search.
class WordCache {
 public:
  static constexpr size_t kMaxWord = 64;  // bytes; longer words rarely come back

  WordCache() : slots_(kSlots) {}

  /// Appends the tokens of a known word; false when it is not known.
  bool find(std::string_view word, uint64_t hash, TokenSink& out) const;
  void store(std::string_view word, uint64_t hash, const std::vector<Token>& tokens);

 private:
  static constexpr size_t kSlots = size_t(1) << 16;
  static constexpr size_t kMaxStored = size_t(1) << 20;  // tokens, and four times as many bytes
  struct Slot {
    uint32_t tag = 0;  // upper hash bits, never 0 when used
    uint32_t bytes = 0, tokens = 0;
    uint16_t length = 0, count = 0;
  };
  static uint32_t tag(uint64_t hash) { return uint32_t(hash >> 32) | 1; }

  std::vector<Slot> slots_;
  std::vector<char> bytes_;
  std::vector<TokenId> ids_;
  std::vector<Range> ranges_;
};

/// Buffers of one encode call, kept between calls.
struct ModelScratch {
  WordCache cache;
  std::vector<Token> tokens;
  // BPE: the list of symbols of a long word, and its merges.
  MergeQueue queue;
  std::vector<Token> window;
  std::vector<uint32_t> next, previous;
  std::vector<MergeQueue::Waiting> places;
  // Unigram: the best way to reach each byte of a word.
  struct Step {
    double score;
    TokenId id;
    uint32_t from;  // kUnreached when no token ends here
  };
  std::vector<Step> steps;
};

class Model {
 public:
  virtual ~Model() = default;

  /// Appends the tokens of one word. May be called from several threads, each with its own scratch.
  void encode(std::string_view word, ModelScratch& scratch, TokenSink& out) const;

  const Vocab& vocab() const { return vocab_; }

 protected:
  explicit Model(Vocab vocab) : vocab_(std::move(vocab)) {}

  /// The tokens of a word, into the empty `tokens`.
  virtual void encode_word(std::string_view word, ModelScratch& scratch,
                           std::vector<Token>& tokens) const = 0;
  /// A word too long for the cache. A model that can cut it into independent parts does so here.
  virtual void encode_long(std::string_view word, ModelScratch& scratch, TokenSink& out) const;

  Vocab vocab_;
};

/// A text needs the unknown token, and the vocabulary does not have the one that the file names. A file may name one that its
/// texts never need, so this is told when one does.
Error missing_unknown(std::string_view model, std::string_view text, std::string_view unknown);

}  // namespace rlx::text
