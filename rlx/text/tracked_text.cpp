#include "rlx/text/tracked_text.h"

#include <algorithm>

#include "rlx/base/error.h"

namespace rlx::text {

namespace {

// The whole characters of well-formed text that the bytes [r.begin, r.end) touch.
Range whole_characters(std::string_view text, Range r) {
  const auto is_tail = [&](uint32_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  if (r.begin == r.end) return r;
  for (uint32_t back = 0; back <= 3 && back <= r.begin; ++back) {
    const uint32_t start = r.begin - back;
    if (is_tail(start)) continue;
    if (start + decode_utf8(text, start).length > r.begin) r.begin = start;
    break;
  }
  for (uint32_t back = 1; back <= 4 && back <= r.end - r.begin; ++back) {
    const uint32_t start = r.end - back;
    if (is_tail(start)) continue;
    r.end = std::max(r.end, start + decode_utf8(text, start).length);
    break;
  }
  return r;
}

}  // namespace

void TrackedText::reset(std::string_view source, uint32_t offset, bool track) {
  source_ = source;
  offset_ = offset;
  track_ = track;
  rewritten_ = later_slice_ = front_lost_ = false;
  origins_.clear();
}

Range TrackedText::origin(Range r) const {
  Range s = r;
  if (rewritten_) {
    if (r.begin == r.end) {
      s = r.begin < origins_.size() ? origins_[r.begin]
                                    : Range{uint32_t(source_.size()), uint32_t(source_.size())};
      s.end = s.begin;
    } else {
      s = {origins_[r.begin].begin, origins_[r.end - 1].end};
    }
  } else {
    s = whole_characters(source_, r);
  }
  return {s.begin + offset_, std::max(s.begin, s.end) + offset_};
}

TrackedText TrackedText::slice(Range part) const {
  TrackedText out = *this;
  Rewriter writer(out);
  writer.keep(part.begin, part.end);
  writer.finish();
  out.later_slice_ = later_slice_ || part.begin > 0;
  return out;
}

void Rewriter::too_large() const {
  throw invalid("encode: the tokenizer makes more than ", limit_, " bytes of a text of ",
                text_.source_.size(), "; at most 64 times the text and 1 MiB");
}

Range Rewriter::source_range(size_t begin, size_t end) const {
  if (text_.rewritten_) {
    if (begin < end) return {text_.origins_[begin].begin, text_.origins_[end - 1].end};
    const uint32_t at =
        begin < text_.origins_.size() ? text_.origins_[begin].begin : uint32_t(text_.source_.size());
    return {at, at};
  }
  return whole_characters(text_.source_, {uint32_t(begin), uint32_t(end)});
}

void Rewriter::track_kept(size_t begin, size_t end) {
  if (text_.rewritten_) {
    origins_.insert(origins_.end(), text_.origins_.begin() + long(begin), text_.origins_.begin() + long(end));
    return;
  }
  for (size_t i = begin; i < end;) {
    const uint32_t length = decode_utf8(view_, i).length;
    origins_.insert(origins_.end(), length, Range{uint32_t(i), uint32_t(i) + length});
    i += length;
  }
}

void Rewriter::track_replaced(size_t begin, size_t end) {
  origins_.resize(out_.size(), source_range(begin, end));
}

void Rewriter::finish() {
  text_.buffer_.swap(out_);
  text_.origins_.swap(origins_);
  text_.rewritten_ = true;
  text_.front_lost_ |= front_lost_;
}

}  // namespace rlx::text
