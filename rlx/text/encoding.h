// The result of encoding a text.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/text/unicode.h"
#include "rlx/text/vocab.h"

namespace rlx::text {

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<Range> offsets;           // bytes of the text, whole characters; empty unless asked for
  std::vector<uint8_t> type_ids;        // which of two texts a token belongs to, as the post-processor says
  std::vector<uint8_t> special_mask;    // 1: added by the post-processor or by padding
  std::vector<uint8_t> attention_mask;  // 0: padding

  size_t size() const { return ids.size(); }
  /// The tokens of another text behind these.
  void append(const Encoding& other);
  /// A token that stands for no text.
  void append_special(TokenId id, uint8_t type_id, bool with_offset);
  /// Keeps `count` tokens from the left, or from the right.
  void truncate(size_t count, bool keep_right);
  void pad(size_t count, TokenId id, uint8_t type_id, bool on_left);
};

}  // namespace rlx::text
