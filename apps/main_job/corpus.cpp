#include "apps/main_job/corpus.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "rlx/base/error.h"
#include "rlx/base/file.h"

namespace rlx::main_job {
namespace {

std::vector<std::string> documents_below(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  if (fs::exists(root + "/README.md")) out.push_back(root + "/README.md");
  for (const char* folder : {"/docs", "/rlx"}) {
    if (!fs::exists(root + folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root + folder)) {
      if (entry.path().extension() == ".md" && entry.path().filename() != "api.md")
        out.push_back(entry.path().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Without the rows of tables, which are half of the text and half of them bars.
std::string prose_of(const std::string& document) {
  std::string out;
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) out += line + "\n";
  }
  return out;
}

}  // namespace

int64_t Corpus::id_of(char c) const {
  const size_t at = characters.find(c);
  if (at == std::string::npos) throw invalid("corpus: '", c, "' does not occur in the documents");
  return int64_t(at);
}

std::string Corpus::text_of(const std::vector<int32_t>& list) const {
  std::string out;
  for (const int32_t id : list) out.push_back(characters.at(size_t(id)));
  return out;
}

Corpus read_corpus(const std::string& root) {
  Corpus out;
  std::string text;
  for (const std::string& path : documents_below(root)) {
    text += prose_of(read_file(path)) + "\n";
    ++out.documents;
  }
  if (text.size() < 20000)
    throw environment_error("corpus: only ", text.size(), " bytes of documents below '", root, "'");
  std::vector<int32_t> place(256, -1);
  for (const char c : text) place[uint8_t(c)] = 0;
  for (int c = 0; c < 256; ++c) {
    if (place[size_t(c)] < 0) continue;
    place[size_t(c)] = int32_t(out.characters.size());
    out.characters.push_back(char(c));
  }
  for (const char c : text) out.ids.push_back(place[uint8_t(c)]);
  return out;
}

}  // namespace rlx::main_job
