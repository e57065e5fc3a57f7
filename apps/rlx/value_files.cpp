#include "apps/rlx/value_files.h"

#include <filesystem>

#include "rlx/io/literal.h"
#include "rlx/io/model_file.h"

namespace rlx::cli {
namespace {

/// The parts of NAME=FILE; a text that is a file has no name of ours.
struct Given {
  std::string name, path;
};
Given split(std::string_view command, std::string_view option, const std::string& text) {
  const size_t at = text.find('=');
  if (at == text.npos || std::filesystem::exists(text)) return {{}, text};
  if (at == 0 || at + 1 == text.size())
    throw invalid(command, ": ", option, " ", text, "; a file, or NAME=FILE, expected");
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

ir::NamedLiterals read_values(std::string_view command, std::string_view option,
                              const std::vector<std::string>& texts) {
  ir::NamedLiterals out;
  for (const std::string& text : texts) {
    const auto [name, path] = split(command, option, text);
    const io::ModelFile file = io::ModelFile::open(path);
    if (!name.empty() && file.tensors.size() != 1)
      throw invalid(command, ": ", option, " ", text, ": '", path, "' holds ", file.tensors.size(),
                    " tensors; NAME=FILE takes one, FILE alone takes all under their names");
    for (const io::TensorView& t : file.tensors) {
      const std::string& as = name.empty() ? t.name : name;
      if (!out.emplace(as, io::to_literal(t)).second)
        throw invalid(command, ": ", option, " gives '", as, "' twice");
    }
  }
  return out;
}

std::string value_files_taken() {
  return cat("files of tensors (", io::FormatTable::standard().names(), "), or NAME=FILE with one tensor");
}

}  // namespace rlx::cli
