#include "rlx/text/tokenizer.h"

namespace rlx::text {

namespace {

// How much of a decoded text is certain. A byte-level decoder leaves an unfinished character as raw bytes;
// one with byte fallback writes U+FFFD for each byte until the character is whole, so a few of those may
// still change.
size_t certain_prefix(std::string_view text, size_t tokens) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  size_t held = 0;
  while (held < 3 && held < tokens && text.substr(0, text.size() - held * 3).ends_with(kReplacement)) ++held;
  text.remove_suffix(held * 3);
  return complete_prefix(text);
}

}  // namespace

std::string StreamDecoder::push(TokenId id) {
  ids_.push_back(id);
  const DecodeOptions raw{options_.skip_special, false};
  const std::string text = tokenizer_.decode(ids_, raw);
  const size_t fresh = ids_.size() - settled_;
  const size_t certain = certain_prefix(text, fresh);
  if (certain <= emitted_) return {};
  std::string out = text.substr(emitted_, certain - emitted_);
  emitted_ = certain;
  if (certain == text.size()) {
    // All of it is out: the tokens before the last settled ones cannot matter any more.
    ids_.erase(ids_.begin(), ids_.begin() + long(settled_));
    settled_ = ids_.size();
    emitted_ = tokenizer_.decode(ids_, raw).size();
  }
  return options_.replace_invalid ? replace_invalid_utf8(out) : out;
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(ids_, {options_.skip_special, false});
  std::string out = text.size() > emitted_ ? text.substr(emitted_) : std::string();
  ids_.clear();
  settled_ = emitted_ = 0;
  return options_.replace_invalid ? replace_invalid_utf8(out) : out;
}

}  // namespace rlx::text
