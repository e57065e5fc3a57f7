// Text to token ids and back.
//
//   text -> added tokens cut out -> normalizer -> pre-tokenizer -> model -> post-processor -> Encoding
//   ids  -> token spellings -> decoder -> text
//
// A tokenizer does not change after it is made: all const members may be called from several threads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/encoding.h"

namespace rlx::text {

struct TokenizerParts;  // rlx/text/tokenizer_parts.h: what loaders fill in

/// What becomes of special tokens on the way in.
struct EncodeOptions {
  bool add_special = true;    // let the post-processor add its tokens
  bool parse_special = true;  // find special tokens written out in the text
  bool offsets = false;       // fill Encoding::offsets
};

/// What becomes of special tokens and wrong bytes on the way out.
struct DecodeOptions {
  bool skip_special = true;      // leave out the tokens marked special
  bool clean_spaces = false;     // take out spaces before punctuation where the tokenizer's file means that
  bool replace_invalid = false;  // bytes that are not UTF-8 become U+FFFD instead of standing as they are
};

/// Where texts are cut.
struct Truncation {
  size_t max_length = 512;
  /// Which of two texts loses tokens.
  enum class Strategy { longest_first, only_first, only_second } strategy = Strategy::longest_first;
  bool keep_right = false;
};

/// How texts of a batch are made equally long.
struct Padding {
  std::optional<size_t> length;  // empty: the longest of a batch
  size_t multiple_of = 1;
  TokenId id = 0;
  uint8_t type_id = 0;
  bool on_left = false;
};

class Tokenizer {
 public:
  /// From the text of a tokenizer.json.
  static Tokenizer from_json(std::string_view json, std::string_view where = "tokenizer.json");
  /// From a SentencePiece model (the bytes of a .model file).
  static Tokenizer from_sentencepiece(std::string_view bytes, std::string_view where = "tokenizer.model");
  /// From a file of any kind in tokenizer_file.h, told apart by content; or a folder that holds one.
  static Tokenizer from_file(const std::string& path);
  explicit Tokenizer(TokenizerParts parts);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Ids, spellings and places of a text, with the tokens that the tokenizer puts around it.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Two texts as one, told apart by type ids.
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;
  /// Encodes every text, on up to `threads` threads of the process's pool, and pads them to one length where
  /// padding is set.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {},
                                     int threads = 1) const;

  /// The text of ids.
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const;

  /// One more than the largest id, added tokens included.
  size_t vocab_size() const;
  /// The id of a spelling, where the vocabulary has it.
  std::optional<TokenId> token_to_id(std::string_view token) const;
  /// The spelling in the vocabulary; empty when the id has no token.
  std::string_view id_to_token(TokenId id) const;
  bool is_special(TokenId id) const;
  /// The byte that a byte-fallback token (<0xNN>) is decoded to; -1 for any other token.
  int fallback_byte(TokenId id) const;

  // For every later encoding; nothing switches it off.
  void set_truncation(std::optional<Truncation> truncation);
  void set_padding(std::optional<Padding> padding);

 private:
  struct State;
  Encoding encode_one(std::string_view text, const EncodeOptions& options, uint8_t type_id) const;
  Encoding finish(std::vector<Encoding> texts, std::span<const std::string_view> sources,
                  const EncodeOptions& options) const;
  void pad(std::vector<Encoding>& encodings) const;

  std::unique_ptr<State> state_;
};

/// Decodes a growing list of ids and hands out text as soon as it is certain; never half a character. The
/// parts together are what decode() gives, but for a run of byte-fallback tokens that is not UTF-8: decode()
/// replaces the whole run by U+FFFD, and here the characters before the break are out already.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {})
      : tokenizer_(tokenizer), options_(options) {}

  /// The text that this id completes; often empty.
  std::string push(TokenId id);
  /// What is left when no more ids come.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  // A window of ids: the text of the first `settled_` of them has been handed out, up to `emitted_` bytes of
  // the window's text. The window keeps the tokens before the new one because spelling can depend on them.
  std::vector<TokenId> ids_;
  size_t settled_ = 0, emitted_ = 0;
  // Byte-fallback tokens that are not a whole character yet, and their bytes.
  std::vector<TokenId> held_;
  std::string held_bytes_;

  std::string give_up_held();
};

}  // namespace rlx::text
