// A tokenizer given as plain lists: what the metadata of a GGUF file, or a SentencePiece model, holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer.h"

namespace rlx::text {

/// What a token is, by its number in a file.
enum class TokenType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

/// The lists, and the habits that go with them.
struct VocabSpec {
  std::string model;  // gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 (Unigram), bert (WordPiece),
                      // gemma4 (BPE over characters)
  std::string pre;    // for gpt2: the name of its word pattern in pre_table.h; "default" when empty
  std::string name, architecture;  // of the model: some have habits that the file does not spell out
  std::vector<std::string> tokens;
  std::vector<float> scores;        // llama, t5: one per token
  std::vector<TokenType> types;     // one per token, or none: then all are normal
  std::vector<std::string> merges;  // gpt2: "left right"

  std::optional<TokenId> bos, eos, unknown, separator, padding, cls;
  // Left out, they are what the model kind has always done: llama adds bos, t5 adds eos, bert both, gpt2
  // what its `pre` says.
  std::optional<bool> add_bos, add_eos;
  std::optional<bool> add_separator;  // between the texts of a pair, for gpt2
  bool add_space_prefix = true;
  bool prefix_every_part = true;  // also after special tokens inside the text, not only at its start
  bool remove_extra_spaces = false;
  bool byte_fallback = true;          // llama, t5: use the byte tokens where the vocabulary has them
  std::string charsmap;               // SentencePiece's normalisation table, may be empty
  bool lowercase = true;              // bert
  std::optional<bool> strip_accents;  // bert; as `lowercase` when left out
};

/// `where` names the source in messages.
Tokenizer make_tokenizer(const VocabSpec& spec, std::string_view where);

}  // namespace rlx::text
