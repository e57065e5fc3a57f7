// Texts of all samples, damaged at random: the parser answers with a graph that prints and parses again, or
// with a user error; never with an internal error, whatever an operator's inference is given.
#include <gtest/gtest.h>

#include "rlx/base/philox.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/support/samples.h"

namespace rlx::ir {
namespace {

class Damage {
 public:
  explicit Damage(uint64_t seed) : seed_(seed) {}
  std::string apply(std::string text) {
    static constexpr std::string_view kTokens[] = {
        "-1",  "0",  "99999999999", "none",    "[]",       "()",  "f32[]", "i32[0]", "x0", "=", ",",
        "nan", "-7", "true",        "bool[2]", "c64[3,3]", "seq", "2*seq", "\"",     "{",  "}"};
    for (uint32_t n = 1 + draw(3); n > 0 && !text.empty(); --n) {
      const size_t at = draw(uint32_t(text.size()));
      switch (draw(4)) {
        case 0:
          text.erase(at, 1 + draw(6));
          break;
        case 1:
          text.insert(at, kTokens[draw(std::size(kTokens))]);
          break;
        case 2:
          replace_number(text, at);
          break;
        default:
          text[at] = char(32 + draw(95));
      }
    }
    return text;
  }

 private:
  uint32_t draw(uint32_t limit) {
    if (next_ == 4) block_ = philox_block(seed_, 1, index_++), next_ = 0;
    return block_[next_++] % limit;
  }
  // The next number in the text becomes another one: attributes and sizes go out of range without breaking
  // the syntax.
  void replace_number(std::string& text, size_t from) {
    const size_t at = text.find_first_of("0123456789", from);
    if (at == std::string::npos) return;
    size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    static constexpr std::string_view kNumbers[] = {"0",  "1",  "2",  "3",       "5",
                                                    "17", "-1", "-3", "1000000", "4611686018427387904"};
    text.replace(at, end - at, kNumbers[draw(std::size(kNumbers))]);
  }
  uint64_t seed_, index_ = 0;
  PhiloxBlock block_{};
  size_t next_ = 4;
};

class EveryText : public testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Mutation, EveryText, testing::ValuesIn(test::ops_of(ops::table())), test::OpName());

TEST_P(EveryText, survives_damage) {
  const OpDef& op = *GetParam();
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const std::string text = to_text(test::make_case(op, i).graph);
    if (text.size() > 20000) continue;
    for (uint64_t round = 0; round < 100; ++round) {
      const std::string damaged = Damage(i * 1000 + round).apply(text);
      SCOPED_TRACE(damaged);
      try {
        const Graph g = parse_graph(damaged, ops::table());
        const std::string printed = to_text(g);
        ASSERT_EQ(to_text(parse_graph(printed, ops::table())), printed);
        ASSERT_TRUE(g.verify().empty()) << cat(g.verify()[0]);
      } catch (const Error& e) {
        ASSERT_EQ(int(e.kind()), int(ErrorKind::user)) << e.what();
      } catch (const std::exception& e) {
        FAIL() << "not an rlx::Error: " << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace rlx::ir
