// A text under rewriting that remembers, where asked, which source bytes each of its bytes stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/unicode.h"

namespace rlx::text {

/// How large a text of `bytes` may become on its way to tokens, or tokens on their way to text. Unicode's
/// own forms need at most eleven times the bytes; a file can ask for any number of steps that each double
/// them.
inline constexpr size_t growth_limit(size_t bytes) { return 64 * bytes + (size_t(1) << 20); }

class TrackedText {
 public:
  /// Starts from `source`, which lies at byte `offset` of the whole input and must outlive this object.
  void reset(std::string_view source, uint32_t offset, bool track);

  std::string_view view() const { return rewritten_ ? std::string_view(buffer_) : source_; }
  bool tracked() const { return track_; }
  /// Whether this text begins where the whole input does.
  bool at_input_start() const { return offset_ == 0 && !later_slice_; }
  /// Whether its first byte stands for the first of the whole input too: nothing in front of it was taken away.
  bool has_input_start() const { return offset_ == 0 && !front_lost_; }
  /// A part of view() as a text of its own, with the same origins.
  TrackedText slice(Range part) const;

  /// Source bytes (of the whole input) behind the bytes [r.begin, r.end) of view(); whole characters.
  Range origin(Range r) const;

 private:
  friend class Rewriter;
  std::string_view source_;
  std::string buffer_;
  std::vector<Range> origins_;  // one per byte of view(), when tracked and rewritten; relative to source_
  uint32_t offset_ = 0;
  bool track_ = false, rewritten_ = false, later_slice_ = false, front_lost_ = false;
};

/// Writes the next form of a text from left to right; the text changes when finish() is called. A form beyond
/// growth_limit() is an error.
class Rewriter {
 public:
  explicit Rewriter(TrackedText& text)
      : text_(text), view_(text.view()), limit_(growth_limit(text.source_.size())) {
    out_.reserve(view_.size() + view_.size() / 8 + 16);
  }

  std::string_view view() const { return view_; }
  uint32_t size() const { return uint32_t(out_.size()); }
  std::string& out() { return out_; }

  /// Copies bytes of the present form.
  void keep(size_t begin, size_t end) {
    note_front(begin, end - begin);
    out_.append(view_.substr(begin, end - begin));
    if (text_.track_) track_kept(begin, end);
  }
  /// `content` stands for the bytes [begin, end) of the present form.
  void replace(size_t begin, size_t end, std::string_view content) {
    note_front(begin, content.size());
    out_.append(content);
    if (out_.size() > limit_) too_large();
    if (text_.track_) track_replaced(begin, end);
  }
  /// For writers that append to out() themselves: the bytes added since the last call stand for [begin, end).
  void wrote(size_t begin, size_t end) {
    if (!written_) note_front(begin, out_.size());
    if (out_.size() > limit_) too_large();
    if (text_.track_) track_replaced(begin, end);
  }
  /// New text before the character at `begin`, which is also what it stands for.
  void insert_before(size_t begin, std::string_view content) {
    replace(begin, begin + decode_utf8(view_, begin).length, content);
  }

  void finish();

 private:
  [[noreturn]] void too_large() const;
  // The first bytes written tell what became of the front.
  void note_front(size_t begin, size_t bytes) {
    if (written_ || bytes == 0) return;
    written_ = true;
    front_lost_ |= begin > 0;
  }
  Range source_range(size_t begin, size_t end) const;
  void track_kept(size_t begin, size_t end);
  void track_replaced(size_t begin, size_t end);

  TrackedText& text_;
  std::string_view view_;
  size_t limit_;
  std::string out_;
  std::vector<Range> origins_;
  bool written_ = false, front_lost_ = false;
};

}  // namespace rlx::text
