#include "rlx/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "rlx/base/error.h"
#include "rlx/text/newer_characters.h"
#include "rlx/text/regex_syntax.h"

namespace rlx::text {

namespace {

// Backtracking steps one match may take. The patterns of published tokenizers need a few per character of a
// word; an exponential one reaches this in well under a second.
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kHeapLimitKiB = 64 * 1024;
constexpr size_t kJitStackBytes = size_t(16) << 20;
constexpr size_t kMaxPatternBytes = size_t(1) << 16;

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
  std::string stand_ins;
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

Regex::Regex(std::string_view pattern) : Regex(pattern, to_pcre2(pattern)) {}

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
  compiled_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, context);
  pcre2_compile_context_free(context);
  if (!compiled_->code)
    throw invalid("regex: ", error_text(code), " at byte ", at, " of the pattern '", pattern, "'");
  compiled_->jit = pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::find_all(std::string_view text, Range within, std::vector<Range>& matches, Empty empty) const {
  // PCRE2 would check the whole rest of the subject in every call; checking once keeps this linear.
  text = text.substr(0, within.end);
  for (size_t begin = within.begin; begin < within.end;) {
    const size_t end = begin + valid_prefix(text.substr(begin));
    find_in_valid(text.substr(begin, end - begin), uint32_t(begin), matches, empty);
    begin = end;
    while (begin < within.end && decode_utf8(text, begin).code == kBadByte) ++begin;
  }
}

void Regex::find_in_valid(std::string_view text, uint32_t base, std::vector<Range>& matches,
                          Empty empty) const {
  MatchState& state = match_state();
  const std::string_view shown = NewerCharacters::get().replaced(text, state.stand_ins);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(shown.data());
  const size_t length = text.size();
  const auto match = [&](size_t from, uint32_t options) {
    return pcre2_match(compiled_->code, subject, length, from, PCRE2_NO_UTF_CHECK | options, state.data,
                       state.context);
  };
  size_t at = 0;
  // An empty match may stand at the end too.
  while (at < length || (at == length && empty == Empty::kept && length > 0)) {
    int rc = match(at, 0);
    // Machine code has a stack of fixed size; the interpreter keeps its state on the heap.
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = match(at, PCRE2_NO_JIT);
    if (rc == PCRE2_ERROR_NOMATCH) return;
    if (rc < 0)
      throw invalid("regex: matching '", pattern_, "' at byte ", base + at, " failed: ", error_text(rc),
                    "; the pattern must match without heavy backtracking");
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(state.data);
    // \K in a look-behind could report a start before the last end; such a match is cut there.
    const size_t begin = std::max<size_t>(ends[0], at), end = std::max<size_t>(ends[1], begin);
    // An empty match right behind another match is no match of its own.
    const bool behind = !matches.empty() && matches.back().end == base + begin;
    if (end > begin || (empty == Empty::kept && !behind))
      matches.push_back({base + uint32_t(begin), base + uint32_t(end)});
    at = end > begin ? end : end < length ? end + decode_utf8(text, end).length : end + 1;
  }
}

}  // namespace rlx::text
