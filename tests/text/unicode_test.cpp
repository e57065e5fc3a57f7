#include "rlx/text/unicode.h"

#include <gtest/gtest.h>

#include "rlx/text/normal_form.h"
#include "rlx/text/regex.h"

namespace rlx::text {
namespace {

std::string utf8(std::initializer_list<char32_t> codes) {
  std::string out;
  for (const char32_t c : codes) append_utf8(out, c);
  return out;
}

TEST(Unicode, the_version_is_that_of_the_library) { EXPECT_EQ(unicode_version().substr(0, 3), "15."); }

TEST(Unicode, patterns_know_the_characters_that_normal_forms_and_classes_know) {
  // New in Unicode 15: a letter, a mark, a digit, a symbol, an ideograph, and two of three bytes.
  const auto matches = [](const char* pattern, char32_t code) {
    const std::string text = "x" + utf8({code}) + "y";
    std::vector<Range> found;
    Regex(pattern).find_all(text, {0, uint32_t(text.size())}, found);
    return found == std::vector<Range>{{1, uint32_t(text.size() - 1)}};
  };
  EXPECT_TRUE(matches(R"([^xy\P{L}]+)", 0x11F02));
  EXPECT_TRUE(matches(R"(\p{M}+)", 0x11F00));
  EXPECT_TRUE(matches(R"(\p{Nd})", 0x11F50));
  EXPECT_TRUE(matches(R"([^\s\p{L}\p{N}]+)", 0x1F6DC));
  EXPECT_TRUE(matches(R"(\p{Han}+)", 0x31350));
  EXPECT_TRUE(matches(R"(\p{Mc})", 0x0CF3));
  EXPECT_TRUE(matches(R"(\p{Mn})", 0x0ECE));
  EXPECT_FALSE(matches(R"(\p{Cn})", 0x11F02));
  EXPECT_TRUE(matches(R"(\p{Cn})", 0x0378));  // of no version
}

TEST(Unicode, a_script_has_its_own_characters_only) {
  std::vector<Range> found;
  const std::string text = "中、文";  // the mark between them is shared by several scripts
  Regex(R"(\p{Han}+)").find_all(text, {0, uint32_t(text.size())}, found);
  EXPECT_EQ(found, (std::vector<Range>{{0, 3}, {6, 9}}));
}

TEST(Unicode, marks_and_connectors_are_parts_of_words) {
  std::vector<Range> found;
  const std::string text = "e\u0301_1 x";
  Regex(R"(\w+\b)").find_all(text, {0, uint32_t(text.size())}, found);
  EXPECT_EQ(found, (std::vector<Range>{{0, 5}, {6, 7}}));
}

TEST(NormalForm, a_syllable_keeps_the_letter_that_is_no_final_consonant) {
  EXPECT_EQ(normalized(utf8({0x1105, 0x116F, 0x11A7}), NormalForm::nfc), utf8({0xB904, 0x11A7}));
  EXPECT_EQ(normalized(utf8({0xB904, 0x11A7}), NormalForm::nfc), utf8({0xB904, 0x11A7}));
  EXPECT_EQ(normalized(utf8({0xB904, 0x11A7}), NormalForm::nfkc), utf8({0xB904, 0x11A7}));
}

// Unicode 3.12: S = 0xAC00 + (L * 21 + V) * 28 + T for the letters at 0x1100, 0x1161 and 0x11A7.
TEST(NormalForm, hangul_composes_by_the_formula_and_at_its_edges_not_at_all) {
  for (char32_t l = 0x10FF; l <= 0x1113; ++l) {
    for (const char32_t v : {0x1160, 0x1161, 0x1162, 0x1175, 0x1176}) {
      for (const char32_t t : {0x11A7, 0x11A8, 0x11C2, 0x11C3}) {
        const bool syllable = l >= 0x1100 && l <= 0x1112 && v >= 0x1161 && v <= 0x1175;
        const bool final_consonant = t >= 0x11A8 && t <= 0x11C2;
        const char32_t lv = 0xAC00 + ((l - 0x1100) * 21 + (v - 0x1161)) * 28;
        const std::string expected = !syllable         ? utf8({l, v, t})
                                     : final_consonant ? utf8({lv + (t - 0x11A7)})
                                                       : utf8({lv, t});
        EXPECT_EQ(normalized(utf8({l, v, t}), NormalForm::nfc), expected)
            << std::hex << int(l) << " " << int(v) << " " << int(t);
      }
    }
  }
}

}  // namespace
}  // namespace rlx::text
