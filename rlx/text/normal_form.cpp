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

// Appends the normal form of `segment`, which has no bad bytes. Marks are put in order by a stable sort of
// each run of them: utf8proc's own ordering takes quadratic time on long runs.
void append_normalized(std::string& out, std::string_view segment, NormalForm form,
                       std::vector<utf8proc_int32_t>& codes) {
  const utf8proc_option_t o = options(form);
  codes.clear();
  for (size_t i = 0; i < segment.size();) {
    const Decoded c = decode_utf8(segment, i);
    utf8proc_int32_t parts[32];
    const int n = decompose(c.code, o, parts);
    if (n >= 1 && n <= 32) {
      codes.insert(codes.end(), parts, parts + n);
    } else {
      codes.push_back(utf8proc_int32_t(c.code));
    }
    i += c.length;
  }
  for (size_t i = 0; i < codes.size();) {
    if (combining_class(codes[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < codes.size() && combining_class(codes[end]) != 0) ++end;
    if (end - i > 1)
      std::stable_sort(codes.begin() + long(i), codes.begin() + long(end),
                       [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
  size_t count = codes.size();
  if (o & UTF8PROC_COMPOSE) count = size_t(utf8proc_normalize_utf32(codes.data(), long(count), o));
  for (size_t i = 0; i < count; ++i) append_utf8(out, char32_t(codes[i]));
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
  std::vector<utf8proc_int32_t> codes;
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
        append_normalized(writer->out(), view.substr(begin, end - begin), form, codes);
        writer->wrote(begin, end);
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
