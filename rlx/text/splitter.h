// Hand-written word splitters for the patterns most published models share.
//
// Each gives exactly the matches of its pattern (tests/text compares them with PCRE2 on random text) at
// several times the speed. A byte that is not UTF-8 counts as a symbol.
#pragma once

#include <string_view>
#include <vector>

#include "rlx/text/unicode.h"

namespace rlx::text {

/// Appends the words of text[within], which cover it without gaps.
using SplitFunction = void (*)(std::string_view text, Range within, std::vector<Range>& words);

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The same as GGUF files mean them: contractions fold ASCII only.
inline constexpr std::string_view kGgufGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
inline constexpr std::string_view kGgufLlama3Pattern =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kGgufQwen2Pattern =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Numbers in groups of three counted from their right end. A matcher that backtracks looks ahead to that end
// from every place; these run along a number once.
inline constexpr std::string_view kDigitGroups = R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))";
inline constexpr std::string_view kDigitsBeforeBoundary = R"(\d{1,3}(?=(?:\d{3})*\b))";
inline constexpr std::string_view kDigitCuts = R"((?=(\d{3})+(?!\d)))";

/// The splitter that does what `pattern` says, or null when there is none.
SplitFunction find_splitter(std::string_view pattern);

}  // namespace rlx::text
