#include "rlx/llm/grammar/characters.h"

#include <algorithm>

namespace rlx::llm {

CharacterSet CharacterSet::all() { return {{0, 0xD7FF}, {0xE000, kLast}}; }

CharacterSet CharacterSet::of(std::u32string_view characters) {
  CharacterSet set;
  for (const char32_t c : characters) set.add(c);
  return set;
}

void CharacterSet::add(char32_t first, char32_t last) {
  if (first > last) return;
  auto at = std::find_if(ranges_.begin(), ranges_.end(),
                         [&](const Range& r) { return r.last >= first || r.last + 1 == first; });
  const auto begin = at;
  for (; at != ranges_.end() && (at->first <= last || at->first == last + 1); ++at) {
    first = std::min(first, at->first);
    last = std::max(last, at->last);
  }
  ranges_.insert(ranges_.erase(begin, at), {first, last});
}

void CharacterSet::add(const CharacterSet& other) {
  for (const Range& r : other.ranges_) add(r.first, r.last);
}

bool CharacterSet::has(char32_t code) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& r) { return r.first <= code && code <= r.last; });
}

CharacterSet CharacterSet::without(const CharacterSet& other) const {
  CharacterSet left;
  for (Range r : ranges_) {
    bool done = false;
    for (const Range& o : other.ranges_) {
      if (o.last < r.first) continue;
      if (o.first > r.last) break;
      if (o.first > r.first) left.add(r.first, o.first - 1);
      if (o.last >= r.last) {
        done = true;
        break;
      }
      r.first = o.last + 1;
    }
    if (!done) left.add(r.first, r.last);
  }
  return left;
}

CharacterSet CharacterSet::both(const CharacterSet& other) const { return without(without(other)); }

namespace {

using Sequences = std::vector<std::vector<ByteRange>>;

// Codes first..last of one encoded length. A range is cut where a continuation byte does not run over all of 80..BF:
//   first = (a, b), last = (c, d) in (leading bits, six last bits): (a, b..3F), (a+1..c-1, 0..3F), (c, 0..d)
void add_sequences(Sequences& out, std::vector<ByteRange>& tail, char32_t first, char32_t last, int more,
                   unsigned lead_mark) {
  if (more == 0) {
    std::vector<ByteRange> whole{
        {static_cast<unsigned char>(first | lead_mark), static_cast<unsigned char>(last | lead_mark)}};
    whole.insert(whole.end(), tail.rbegin(), tail.rend());
    out.push_back(std::move(whole));
    return;
  }
  const auto part = [&](char32_t high_first, char32_t high_last, unsigned low_first, unsigned low_last) {
    if (high_first > high_last) return;
    tail.push_back(
        {static_cast<unsigned char>(0x80 | low_first), static_cast<unsigned char>(0x80 | low_last)});
    add_sequences(out, tail, high_first, high_last, more - 1, lead_mark);
    tail.pop_back();
  };
  char32_t a = first >> 6, c = last >> 6;
  const unsigned b = first & 0x3F, d = last & 0x3F;
  if (a == c) return part(a, a, b, d);
  if (b > 0) part(a, a, b, 0x3F), ++a;
  if (d < 0x3F) part(c, c, 0, d), --c;
  if (a <= c) part(a, c, 0, 0x3F);
}

}  // namespace

Sequences byte_sequences(const CharacterSet& set) {
  struct Length {
    char32_t first, last;
    int more;
    unsigned mark;
  };
  static constexpr Length kLengths[] = {
      {0, 0x7F, 0, 0}, {0x80, 0x7FF, 1, 0xC0}, {0x800, 0xFFFF, 2, 0xE0}, {0x10000, 0x3FFFFF, 3, 0xF0}};
  Sequences out;
  std::vector<ByteRange> tail;
  for (const CharacterSet::Range& r : set.ranges())
    for (const Length& l : kLengths) {
      const char32_t first = std::max(r.first, l.first), last = std::min(r.last, l.last);
      if (first <= last) add_sequences(out, tail, first, last, l.more, l.mark);
    }
  return out;
}

}  // namespace rlx::llm
