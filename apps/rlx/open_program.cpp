#include "apps/rlx/open_program.h"

#include <algorithm>
#include <cstdio>

#include "rlx/io/onnx/read.h"

namespace rlx::cli {

bool is_onnx(const io::Input& input) {
  if (input.is_folder()) return false;
  return input.path().ends_with(".onnx") ||
         io::onnx::looks_like_model(input.bytes().subspan(0, std::min<size_t>(input.bytes().size(), 16)));
}

Program open_program(const std::string& path, NamedLiterals* values) {
  const io::Input input = io::Input::open(path);
  if (!is_onnx(input)) return Program::open(path);
  onnx::Imported m = onnx::import_model(io::onnx::parse_model(input.bytes(), input.owner(), path),
                                        {.values = values == nullptr ? NamedLiterals{} : *values});
  if (values != nullptr) {
    for (const std::string& name : m.fixed) values->erase(name);
  }
  for (const std::string& note : m.notes) std::fprintf(stderr, "rlx: note: %s\n", note.c_str());
  return std::move(m.program);
}

}  // namespace rlx::cli
