// Grammars from strangers: GBNF, regular expressions and JSON schemas end in an error or in a grammar along which a text can be
// written: whatever is allowed is accepted, and where nothing may follow the text may end.
#include <memory>

#include "rlx/llm/grammar/matcher.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

namespace {

/// Every byte is a token, and 256 ends the text.
std::shared_ptr<const llm::TokenTrie> bytes_alone() {
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b) bytes.push_back(std::string(1, char(b)));
  bytes.emplace_back();
  return std::make_shared<const llm::TokenTrie>(std::move(bytes), std::vector<llm::TokenId>{256});
}

llm::Grammar read(uint8_t kind, std::string_view text) {
  switch (kind % 3) {
    case 0:
      return llm::Grammar::from_gbnf(text);
    case 1:
      return llm::Grammar::from_regex(text);
    default:
      return llm::Grammar::from_json_schema(Json::parse(std::string(text), "fuzz"));
  }
}

/// One of the allowed tokens, another at every step.
llm::TokenId choose(std::span<const uint32_t> mask, uint32_t step) {
  std::vector<llm::TokenId> allowed;
  for (llm::TokenId id = 0; id <= 256; ++id) {
    if (mask[size_t(id) / 32] >> (id % 32) & 1) allowed.push_back(id);
  }
  return allowed.empty() ? -1 : allowed[step * 7 % allowed.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokens = bytes_alone();
  if (size == 0) return 0;
  return fuzz::only_errors([&] {
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto grammar = std::make_shared<const llm::Grammar>(read(data[0], text));
    llm::GrammarMatcher m(grammar, tokens);
    for (uint32_t step = 0; step < 32 && !m.ended(); ++step) {
      const bool may_end = m.may_end();
      const llm::TokenId next = choose(m.mask(), step);
      fuzz::require((next >= 0 || may_end) && m.bytes_to_end() >= 0);
      if (next < 0) break;
      m.accept(next);
    }
  });
}
