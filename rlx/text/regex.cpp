#include "rlx/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "rlx/base/error.h"

namespace rlx::text {

namespace {

// Backtracking steps one match may take. The patterns of published tokenizers need a few per character of a
// word; an exponential one reaches this in well under a second.
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kHeapLimitKiB = 64 * 1024;
constexpr size_t kJitStackBytes = size_t(16) << 20;
constexpr size_t kMaxPatternBytes = size_t(1) << 16;

// PCRE2's \s has U+180E as well, and Oniguruma's (which the published patterns were written for) has not.
// Inside a class the set is spliced in; \S inside a class is left to PCRE2.
std::string translate(std::string_view pattern) {
  constexpr std::string_view kSpaces = "\\t-\\r \\x{85}\\p{Z}";
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's') {
        in_class ? out.append(kSpaces) : out.append("[").append(kSpaces).append("]");
      } else if (next == 'S' && !in_class) {
        out.append("[^").append(kSpaces).append("]");
      } else {
        out.push_back(c);
        out.push_back(next);
      }
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
      out.push_back(c);
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out.push_back(pattern[++i]);
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out.append("\\]"), ++i;
      continue;
    }
    if (c == ']') in_class = false;
    out.push_back(c);
  }
  return out;
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return cat("error ", code);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  bool jit = false;
  ~Compiled() { pcre2_code_free(code); }
};

namespace {

// What one thread needs to match: block sizes do not depend on the pattern, because only the whole match is
// asked for.
struct MatchState {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
  MatchState() {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKiB);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

MatchState& match_state() {
  thread_local MatchState state;
  return state;
}

}  // namespace

Regex::Regex(std::string_view pattern) : Regex(pattern, translate(pattern)) {}

Regex Regex::literal(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (is_ascii_punctuation(static_cast<unsigned char>(c))) quoted.push_back('\\');
    quoted.push_back(c);
  }
  return Regex(text, std::move(quoted));
}

Regex::Regex(std::string_view pattern, std::string translated)
    : pattern_(pattern), compiled_(std::make_unique<Compiled>()) {
  if (pattern.size() > kMaxPatternBytes)
    throw invalid("regex: the pattern has ", pattern.size(), " bytes; at most ", kMaxPatternBytes);
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_parens_nest_limit(context, 100);
  compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, context);
  pcre2_compile_context_free(context);
  if (!compiled_->code)
    throw invalid("regex: ", error_text(code), " at byte ", at, " of the pattern '", pattern, "'");
  compiled_->jit = pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::find_all(std::string_view text, Range within, std::vector<Range>& matches) const {
  // PCRE2 would check the whole rest of the subject in every call; checking once keeps this linear.
  text = text.substr(0, within.end);
  for (size_t begin = within.begin; begin < within.end;) {
    const size_t end = begin + valid_prefix(text.substr(begin));
    find_in_valid(text, {uint32_t(begin), uint32_t(end)}, matches);
    begin = end;
    while (begin < within.end && decode_utf8(text, begin).code == kBadByte) ++begin;
  }
}

void Regex::find_in_valid(std::string_view text, Range within, std::vector<Range>& matches) const {
  MatchState& state = match_state();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() + within.begin);
  const size_t length = within.size();
  size_t at = 0;
  while (at < length) {
    const int rc =
        pcre2_match(compiled_->code, subject, length, at, PCRE2_NO_UTF_CHECK, state.data, state.context);
    if (rc == PCRE2_ERROR_NOMATCH) return;
    if (rc < 0)
      throw invalid("regex: matching '", pattern_, "' at byte ", within.begin + at,
                    " failed: ", error_text(rc), "; the pattern must match without heavy backtracking");
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(state.data);
    // \K in a look-behind could report a start before the last end; such a match is cut there.
    const size_t begin = std::max<size_t>(ends[0], at), end = std::max<size_t>(ends[1], begin);
    if (end > begin) {
      matches.push_back({uint32_t(within.begin + begin), uint32_t(within.begin + end)});
      at = end;
    } else {
      at = end < length ? end + decode_utf8(text, within.begin + end).length : end + 1;
    }
  }
}

}  // namespace rlx::text
