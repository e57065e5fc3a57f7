#include "rlx/text/tokenizer_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "rlx/base/error.h"
#include "rlx/base/file.h"

namespace rlx::text {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTokenizerFile = uint64_t(1) << 30;

std::string_view first_word(std::string_view bytes) {
  const size_t begin = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
  return bytes.substr(begin);
}

bool is_json(const TokenizerFile& f) { return first_word(f.bytes).starts_with('{'); }

// Whether an object has a field of this name on its first level. The files are large and a look at the start
// of each value would need a parser, so nesting is followed by hand; what is no JSON is told by its reader.
bool has_field(std::string_view json, std::string_view name) {
  int depth = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const size_t begin = i + 1;
    for (++i; i < json.size() && json[i] != '"'; ++i) i += json[i] == '\\';
    if (depth != 1 || json.substr(begin, i < begin ? 0 : i - begin) != name) continue;
    if (first_word(json.substr(std::min(i + 1, json.size()))).starts_with(':')) return true;
  }
  return false;
}

// A line of base64, a space and a number.
bool is_ranked_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos || space == 0 || space % 4 != 0 || space + 1 == line.size()) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::all_of(line.begin(), line.begin() + long(space), letter) &&
         std::all_of(line.begin() + long(space) + 1, line.end(), digit);
}

std::string_view first_line(std::string_view bytes) {
  std::string_view line = bytes.substr(0, bytes.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool has_ending(std::string_view name, std::string_view ending) {
  return name.size() > ending.size() && name.ends_with(ending);
}

}  // namespace

const std::vector<TokenizerFileKind>& tokenizer_file_kinds() {
  using File = TokenizerFile;
  static const std::vector<TokenizerFileKind> kinds = {
      {"tokenizer.json",
       {"tokenizer.json"},
       [](const File& f) { return is_json(f) && has_field(f.bytes, "model"); },
       [](const File& f) { return Tokenizer::from_json(f.bytes, f.where); }},
      {"SentencePiece model",
       {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model"},
       // The pieces come first, each a field of number 1 with a length.
       [](const File& f) { return f.bytes.starts_with('\n') && !is_json(f) && !has_ending(f.name, ".txt"); },
       [](const File& f) { return Tokenizer::from_sentencepiece(f.bytes, f.where); }},
      {"tekken.json",
       {"tekken.json"},
       [](const File& f) {
         return is_json(f) && has_field(f.bytes, "config") && has_field(f.bytes, "vocab");
       },
       read_tekken},
      {"vocab.json with merges.txt", {"vocab.json"}, is_json, read_vocab_json},
      {"vocab.txt", {"vocab.txt"}, [](const File& f) { return has_ending(f.name, ".txt"); }, read_vocab_txt},
      {"tiktoken ranks",
       {"tiktoken.model", "*.tiktoken"},
       [](const File& f) { return is_ranked_line(first_line(f.bytes)); },
       read_tiktoken},
  };
  return kinds;
}

Tokenizer load_tokenizer_file(const TokenizerFile& file) {
  std::vector<std::string_view> known;
  for (const TokenizerFileKind& kind : tokenizer_file_kinds()) {
    if (kind.recognises(file)) return kind.load(file);
    known.push_back(kind.what);
  }
  throw invalid(file.where, ": not a tokenizer; known: ", join(known));
}

namespace {

// The first file of a folder that a row of the table names.
std::string file_in_folder(const std::string& folder) {
  std::vector<std::string> present;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    present.push_back(at->path().filename().string());
  if (failed) throw environment_error(folder, ": cannot be listed: ", failed.message());
  std::sort(present.begin(), present.end());
  std::vector<std::string_view> looked_for;
  for (const TokenizerFileKind& kind : tokenizer_file_kinds()) {
    for (const std::string_view name : kind.names) {
      looked_for.push_back(name);
      const bool any = name.starts_with('*');
      const auto found = std::find_if(present.begin(), present.end(), [&](const std::string& p) {
        return any ? has_ending(p, name.substr(1)) : p == name;
      });
      if (found != present.end()) return (fs::path(folder) / *found).string();
    }
  }
  throw environment_error(folder, ": the folder has no tokenizer; looked for ", join(looked_for));
}

}  // namespace

Tokenizer Tokenizer::from_file(const std::string& path) {
  std::error_code failed;
  const std::string file = fs::is_directory(path, failed) ? file_in_folder(path) : path;
  const std::string bytes = read_file(file, kMaxTokenizerFile);
  const std::string name = fs::path(file).filename().string();
  const Siblings siblings = [&](std::string_view other) -> std::optional<std::string> {
    const fs::path beside = fs::path(file).parent_path() / other;
    std::error_code absent;
    if (!fs::exists(beside, absent)) return std::nullopt;
    return read_file(beside.string(), kMaxTokenizerFile);
  };
  return load_tokenizer_file({bytes, name, file, siblings});
}

}  // namespace rlx::text
