#include "rlx/text/tokenizer.h"

namespace rlx::text {

// What stands for byte tokens that turned out not to be a character.
std::string StreamDecoder::give_up_held() {
  std::string out;
  for (size_t i = 0; i < held_.size(); ++i) out += "\xEF\xBF\xBD";
  held_.clear();
  held_bytes_.clear();
  return out;
}

std::string StreamDecoder::push(TokenId id) {
  std::string out;
  const int byte = tokenizer_.fallback_byte(id);
  const bool skipped = options_.skip_special && tokenizer_.is_special(id);
  if (byte >= 0 && !skipped) {
    held_.push_back(id);
    held_bytes_.push_back(char(byte));
    if (complete_prefix(held_bytes_) < held_bytes_.size()) return {};
    if (!is_valid_utf8(held_bytes_)) return give_up_held();
    ids_.insert(ids_.end(), held_.begin(), held_.end());
    held_.clear();
    held_bytes_.clear();
  } else {
    if (!skipped) out = give_up_held();
    ids_.push_back(id);
  }
  const DecodeOptions raw{options_.skip_special, false};
  const std::string text = tokenizer_.decode(ids_, raw);
  const size_t certain = complete_prefix(text);
  if (certain <= emitted_) return out;
  const std::string fresh = text.substr(emitted_, certain - emitted_);
  emitted_ = certain;
  if (certain == text.size()) {
    // All of it is out: the tokens before the last settled ones cannot matter any more, once there is more
    // than space after them (space at the start of a text may vanish).
    const std::string kept = tokenizer_.decode(std::span(ids_).subspan(settled_), raw);
    if (kept.find_first_not_of(' ') != kept.npos) {
      ids_.erase(ids_.begin(), ids_.begin() + long(settled_));
      settled_ = ids_.size();
      emitted_ = kept.size();
    }
  }
  return out + (options_.replace_invalid ? replace_invalid_utf8(fresh) : fresh);
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(ids_, {options_.skip_special, false});
  const std::string rest = text.size() > emitted_ ? text.substr(emitted_) : std::string();
  ids_.clear();
  settled_ = emitted_ = 0;
  return (options_.replace_invalid ? replace_invalid_utf8(rest) : rest) + give_up_held();
}

}  // namespace rlx::text
