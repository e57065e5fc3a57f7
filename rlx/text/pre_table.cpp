// The table, by name. A new name is one row: its patterns and what else its files mean by it.
#include "rlx/text/pre_table.h"

#include <algorithm>

#include "rlx/text/splitter.h"

namespace rlx::text {

namespace {

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kUpToThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kHanAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kHanAndHangul = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view kDeepseek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBloomWords =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";
constexpr std::string_view kLineEnd = R"([\r\n])";
constexpr std::string_view kDeepseekCase =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kThreeDigits = R"([0-9][0-9][0-9])";
constexpr std::string_view kBailingWords =
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenWords =
    R"([^\r\n\p{L}\p{N}]?[^\P{L}a-z]*[^\P{L}A-Z]+|[^\r\n\p{L}\p{N}]?[^\P{L}a-z]+[^\P{L}A-Z]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kWords =
    R"([^\r\n\p{L}\p{N}]?[^\P{L}a-z]*[^\P{L}A-Z]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[^\P{L}a-z]+[^\P{L}A-Z]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGraniteWords =
    R"([^\r\n\p{L}\p{N}]?[^\p{C}\p{N}\p{P}\p{S}\p{Z}a-z]*[^\p{C}\p{N}\p{P}\p{S}\p{Z}A-Z]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[^\p{C}\p{N}\p{P}\p{S}\p{Z}a-z]+[^\p{C}\p{N}\p{P}\p{S}\p{Z}A-Z]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kAyaWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Words of the published pattern: Han characters are words of their own, and no part of others.
constexpr std::string_view kKimiWords =
    R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

const std::vector<PreRules>& pre_table() {
  static const std::vector<PreRules> table = {
      {"a.x-4.0", {kGgufGpt2Pattern}, kCleanSpaces},
      {"afmoe",
       {kDigitGroups,
        R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)",
        kDeepseek3Words}},
      {"bailingmoe", {kBailingWords}},
      {"bailingmoe2", {kBailingWords}},
      {"bloom", {kBloomWords}, kCleanSpaces},
      {"chameleon",
       {R"(<sentinel:[0-9]+>)", R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)", R"(([\t\n]|    |  ))", kDigit,
        R"([\p{P}!-/:-@\[-`{-~])", kGgufGpt2Pattern},
       kAddBos},
      {"chatglm-bpe", {kGgufLlama3Pattern}, kCleanSpaces},
      {"codeshell", {kDigit, kGgufGpt2Pattern}, kCleanSpaces},
      {"cohere2moe", {kDigitsBeforeBoundary, kAyaWords}},
      {"command-r", {kDigit, kGgufGpt2Pattern}},
      {"dbrx", {kGgufLlama3Pattern}, kCleanSpaces},
      {"deepseek-coder", {kLineEnd, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kHanAndHangul, kDigit}},
      {"deepseek-llm",
       {kLineEnd, kDeepseekCase,
        R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)", R"(\s+$)",
        kHanAndHangul, R"(\p{N}+)"}},
      {"deepseek-r1-qwen", {kGgufQwen2Pattern}},
      {"deepseek-v3", {kUpToThreeDigits, kHanAndKana, kDeepseek3Words}},
      {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGgufGpt2Pattern, R"(\p{N}+)", kThreeDigits}, kCleanSpaces},
      {"exaone", {kDigit, kGgufGpt2Pattern}, kCleanSpaces},
      {"exaone-moe",
       {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"},
       kCleanSpaces},
      {"exaone4", {kGgufGpt2Pattern}, kCleanSpaces},
      {"f2llmv2", {kGgufQwen2Pattern}},
      {"falcon", {R"([\p{P}\$\+<=>\^~\|`]+)", kGgufGpt2Pattern, kThreeDigits}, kCleanSpaces},
      {"falcon-h1", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"falcon3", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"gemma4", {kLines}, kAlwaysBos | kCharacters | kCleanSpaces | kMarkSpaces | kWholeNewlines},
      {"gigachat", {kGgufGpt2Pattern}, kCleanSpaces},
      {"glm4", {kGgufLlama3Pattern}, kCleanSpaces},
      {"gpt-2", {kGgufGpt2Pattern}, kCleanSpaces},
      {"gpt-4o", {kO200kWords}},
      {"gpt3-finnish", {kBloomWords}, kCleanSpaces},
      {"granite-docling", {kGgufGpt2Pattern}},
      {"granite-embed-multi-311m",
       {kLines},
       kAlwaysBos | kCharacters | kCleanSpaces | kMarkSpaces | kWholeNewlines},
      {"granite-embed-multi-97m", {kGraniteWords}, kIgnoreMerges},
      {"grok-2", {kGgufQwen2Pattern}},
      {"hunyuan", {kGgufQwen2Pattern}},
      {"hunyuan-dense", {kUpToThreeDigits, kHanAndKana, kDeepseek3Words}},
      {"jais", {kGgufGpt2Pattern}, kCleanSpaces},
      {"jais-2",
       {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"},
       kCleanSpaces},
      {"jina-de", {kGgufGpt2Pattern}, kCleanSpaces},
      {"jina-es", {kGgufGpt2Pattern}, kCleanSpaces},
      {"jina-v1-en", {kGgufGpt2Pattern}, kAddSeparator | kCleanSpaces},
      {"jina-v2-code", {kGgufGpt2Pattern}, kAddSeparator | kCleanSpaces},
      {"jina-v2-de", {kGgufGpt2Pattern}, kCleanSpaces},
      {"jina-v2-es", {kGgufGpt2Pattern}, kCleanSpaces},
      {"jina-v5-nano", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"joyai-llm", {kUpToThreeDigits, kHanAndKana, kDeepseek3Words}},
      {"kanana2", {kO200kWords}},
      {"kimi-k2", {kKimiWords}},
      {"kormo", {kGgufQwen2Pattern}},
      {"laguna", {kLines, kGgufQwen2Pattern}},
      {"lfm2", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"llada-moe", {kBailingWords}},
      {"llama-bpe", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"llama-v3", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"llama3", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"llama4", {kO200kWords}},
      {"megrez", {kGgufQwen2Pattern}, kCleanSpaces},
      {"mellum", {kGgufGpt2Pattern}, kCleanSpaces},
      {"mellum2", {kDigit, kGgufGpt2Pattern}, kCleanSpaces},
      {"midm-2.0", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"minerva-7b", {kDigit, kGgufGpt2Pattern}, kCleanSpaces},
      {"minicpm5",
       {kUpToThreeDigits,
        R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       kCleanSpaces | kIgnoreMerges},
      {"minimax-m2", {kO200kWords}},
      {"modern-bert", {kGgufGpt2Pattern}, kCleanSpaces},
      {"mpt", {kGgufGpt2Pattern}, kCleanSpaces},
      {"olmo", {kGgufGpt2Pattern}, kCleanSpaces},
      {"phi-2", {kGgufGpt2Pattern}, kCleanSpaces},
      {"pixtral", {kGgufLlama3Pattern}, kAddBos | kCleanSpaces | kIgnoreMerges},
      {"poro-chat", {kBloomWords}},
      {"qwen2", {kGgufQwen2Pattern}},
      {"qwen35",
       {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {"refact", {kDigit, kGgufGpt2Pattern}, kCleanSpaces},
      {"roberta-bpe", {kGgufGpt2Pattern}, kAddSeparator | kCleanSpaces},
      {"sarvam-moe", {kLines}, kCharacters | kMarkSpaces},
      {"seed-coder",
       {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {"smaug-bpe", {kGgufLlama3Pattern}, kCleanSpaces},
      {"smollm", {kDigit, kGgufGpt2Pattern}},
      {"solar-open", {kGgufQwen2Pattern}},
      {"stablelm2", {kGgufQwen2Pattern}, kCleanSpaces},
      {"starcoder", {kDigit, kGgufGpt2Pattern}, kCleanSpaces},
      {"superbpe", {R"(\p{N}+)", kDigitCuts}},
      {"talkie", {kO200kWords}},
      {"tekken", {kTekkenWords}, kAddBos | kIgnoreMerges},
      {"tiny_aya", {kDigitsBeforeBoundary, kAyaWords}},
      {"trillion", {kGgufGpt2Pattern}},
      {"viking", {kBloomWords, kDigit}},
      {"whitespace", {R"(\S+)"}, kCharacters | kCleanSpaces},
      {"youtu",
       {R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       kIgnoreMerges},
  };
  return table;
}

const PreRules* find_pre_rules(std::string_view name) {
  const auto& table = pre_table();
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const PreRules& r) { return r.name == name; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace rlx::text
