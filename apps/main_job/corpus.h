// The text a model learns from: the documents of this tree, as numbers of characters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlx::main_job {

struct Corpus {
  size_t documents = 0;
  std::string characters;    // the alphabet: bytes that occur, in their order
  std::vector<int32_t> ids;  // the text, each byte as its place in the alphabet

  int64_t id_of(char c) const;
  std::string text_of(const std::vector<int32_t>& ids) const;
};

/// README.md, docs and the README.md of every room below `root`. Tables are left out, and docs/api.md, which is one.
Corpus read_corpus(const std::string& root);

}  // namespace rlx::main_job
