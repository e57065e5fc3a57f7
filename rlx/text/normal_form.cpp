// Most characters of most texts are stable: they are their own normal form and the next character does not
// combine with them. Runs of those are copied; only what lies between goes through utf8proc.
#include "rlx/text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace rlx::text {

namespace {

utf8proc_option_t options(NormalForm form) {
  int o = UTF8PROC_STABLE;
  if (form == NormalForm::nfc || form == NormalForm::nfkc) o |= UTF8PROC_COMPOSE;
  if (form == NormalForm::nfd || form == NormalForm::nfkd) o |= UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) o |= UTF8PROC_COMPAT;
  return utf8proc_option_t(o);
}

// Full decomposition of one character; returns how many characters it has (at most 18 in Unicode).
int decompose(char32_t code, utf8proc_option_t form, utf8proc_int32_t (&out)[32]) {
  int boundary = 0;
  const auto n = utf8proc_decompose_char(utf8proc_int32_t(code), out, 32,
                                         utf8proc_option_t(form | UTF8PROC_DECOMPOSE), &boundary);
  return int(n);
}

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

enum : uint8_t {
  kUnstable = 1,   // its normal form is not itself
  kJoinsLeft = 2,  // may reorder or compose with what stands before it
};

// Whether a character, once decomposed, may act on what stands before it: a mark, or the second half of a
// composition. All marks are taken, which is more than needed and therefore safe.
bool joins_left_after_decomposition(utf8proc_int32_t code) {
  const auto* p = utf8proc_get_property(code);
  const bool mark = p->category == UTF8PROC_CATEGORY_MN || p->category == UTF8PROC_CATEGORY_MC ||
                    p->category == UTF8PROC_CATEGORY_ME;
  const bool hangul_tail = code >= 0x1160 && code <= 0x11FF;  // vowels and final consonants
  return mark || hangul_tail || p->combining_class != 0;
}

uint8_t traits_slow(char32_t code, NormalForm form) {
  const utf8proc_option_t o = options(form);
  utf8proc_int32_t parts[32];
  int n = decompose(code, o, parts);
  if (n < 1 || n > 32) return kUnstable;
  uint8_t traits = joins_left_after_decomposition(parts[0]) ? kJoinsLeft : 0;
  if (o & UTF8PROC_COMPOSE) n = int(utf8proc_normalize_utf32(parts, n, o));
  if (n != 1 || parts[0] != utf8proc_int32_t(code)) traits |= kUnstable;
  return traits;
}

class Traits {
 public:
  explicit Traits(NormalForm form) : form_(form), table_(table(form)) {}
  uint8_t operator[](char32_t code) const {
    if (code < 0x10000) return table_[code];
    return code == kBadByte ? 0 : traits_slow(code, form_);
  }

 private:
  static const uint8_t* table(NormalForm form) {
    const auto make = [](NormalForm f) {
      auto t = std::make_unique<uint8_t[]>(0x10000);
      for (char32_t c = 0; c < 0x10000; ++c) t[c] = c >= 0xD800 && c < 0xE000 ? 0 : traits_slow(c, f);
      return t;
    };
    switch (form) {
      case NormalForm::nfc: {
        static const auto t = make(form);
        return t.get();
      }
      case NormalForm::nfd: {
        static const auto t = make(form);
        return t.get();
      }
      case NormalForm::nfkc: {
        static const auto t = make(form);
        return t.get();
      }
      case NormalForm::nfkd: {
        static const auto t = make(form);
        return t.get();
      }
    }
    return nullptr;
  }

  NormalForm form_;
  const uint8_t* table_;
};

// A character under normalisation. `added` tells how the number of characters changes here: the characters
// that one decomposes into count 0, 1, 1, ..., and a composition adds up its halves and takes 1 off.
struct Part {
  utf8proc_int32_t code;
  int added;
};

// The full decomposition of `segment`, which has no bad bytes. Marks are put in order by a stable sort of
// each run of them: utf8proc's own ordering takes quadratic time on long runs.
void decompose_all(std::string_view segment, utf8proc_option_t o, std::vector<Part>& all) {
  all.clear();
  for (size_t i = 0; i < segment.size();) {
    const Decoded c = decode_utf8(segment, i);
    utf8proc_int32_t parts[32];
    int n = decompose(c.code, o, parts);
    if (n < 1 || n > 32) n = 1, parts[0] = utf8proc_int32_t(c.code);
    for (int k = 0; k < n; ++k) all.push_back({parts[k], k > 0});
    i += c.length;
  }
  for (size_t i = 0; i < all.size();) {
    if (combining_class(all[i].code) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < all.size() && combining_class(all[end].code) != 0) ++end;
    if (end - i > 1)
      std::stable_sort(all.begin() + long(i), all.begin() + long(end), [](const Part& a, const Part& b) {
        return combining_class(a.code) < combining_class(b.code);
      });
    i = end;
  }
}

// Composes in place (Unicode, section 3.11): a starter takes each later mark it has a composition with,
// unless a mark of the same or a higher class stands between them.
void compose_all(std::vector<Part>& all, utf8proc_option_t o) {
  constexpr size_t kNone = size_t(-1);
  size_t starter = kNone, count = 0;
  int last_class = -1;  // of the marks kept since the starter; -1 when there are none
  for (const Part part : all) {
    const int c = combining_class(part.code);
    // U+11A7 is one before the first final consonant: utf8proc would compose it to nothing.
    if (starter != kNone && last_class < c && part.code != 0x11A7) {
      utf8proc_int32_t pair[2] = {all[starter].code, part.code};
      if (utf8proc_normalize_utf32(pair, 2, o) == 1) {
        all[starter] = {pair[0], all[starter].added + part.added - 1};
        continue;
      }
    }
    if (c == 0) starter = count;
    last_class = c == 0 ? -1 : c;
    all[count++] = part;
  }
  all.resize(count);
}

// Writes the normal form of the bytes [begin, end) of `view`. Offsets follow the counts of Part: a character
// that is not added has the place of the next source character not yet used, an added one that before it.
void write_normalized(Rewriter& writer, std::string_view view, size_t begin, size_t end, NormalForm form,
                      std::vector<Part>& parts) {
  const utf8proc_option_t o = options(form);
  decompose_all(view.substr(begin, end - begin), o, parts);
  if (o & UTF8PROC_COMPOSE) compose_all(parts, o);
  size_t from = begin, to = begin;
  const auto next = [&] {
    if (to == end) return;
    from = to;
    to += decode_utf8(view, from).length;
  };
  for (const Part& part : parts) {
    append_utf8(writer.out(), char32_t(part.code));
    if (part.added <= 0 || to == begin) next();
    writer.wrote(from, to);
    for (int skip = part.added; skip < 0; ++skip) next();
  }
}

// Calls stable(begin, end) and unstable(begin, end) for the parts of the text in order.
template <class Stable, class Unstable>
void for_each_part(std::string_view text, NormalForm form, Stable stable, Unstable unstable) {
  const Traits traits(form);
  const char* const end = text.data() + text.size();
  size_t kept = 0;  // text before this has been handed out
  for (size_t i = 0; i < text.size();) {
    const Decoded c = decode_utf8(text.data() + i, end);
    const uint8_t t = c.code < 0x80 ? 0 : traits[c.code];
    const size_t next = i + c.length;
    // An ASCII letter is stable unless the next character joins it, so look ahead one character.
    const bool joined = next < text.size() && static_cast<unsigned char>(text[next]) >= 0x80 &&
                        (traits[decode_utf8(text.data() + next, end).code] & kJoinsLeft);
    if ((t == 0 && !joined) || c.code == kBadByte) {
      i = next;
      continue;
    }
    if (kept < i) stable(kept, i);
    size_t stop = next;
    while (stop < text.size()) {
      const Decoded d = decode_utf8(text.data() + stop, end);
      if (d.code < 0x80 || d.code == kBadByte || !(traits[d.code] & kJoinsLeft)) break;
      stop += d.length;
    }
    unstable(i, stop);
    kept = i = stop;
  }
  if (kept < text.size()) stable(kept, text.size());
}

}  // namespace

void normalize(TrackedText& text, NormalForm form) {
  std::vector<Part> parts;
  std::optional<Rewriter> writer;  // made at the first part that changes
  const std::string_view view = text.view();
  for_each_part(
      view, form,
      [&](size_t begin, size_t end) {
        if (writer) writer->keep(begin, end);
      },
      [&](size_t begin, size_t end) {
        if (!writer) {
          writer.emplace(text);
          writer->keep(0, begin);
        }
        write_normalized(*writer, view, begin, end, form, parts);
      });
  if (writer) writer->finish();
}

std::string normalized(std::string_view text, NormalForm form) {
  TrackedText tracked;
  tracked.reset(text, 0, false);
  normalize(tracked, form);
  return std::string(tracked.view());
}

}  // namespace rlx::text
