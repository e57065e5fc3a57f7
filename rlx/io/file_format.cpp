#include "rlx/io/file_format.h"

#include "rlx/base/error.h"

namespace rlx::io {

// One line for each format, in the order in which they are asked.
extern const FileFormat kGgufFormat, kSafetensorsFormat, kNpyFormat, kNpzFormat;
static const FileFormat* const kFormats[] = {&kGgufFormat, &kSafetensorsFormat, &kNpyFormat, &kNpzFormat};

namespace {

std::string listed(const std::vector<std::string_view>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

}  // namespace

const FormatTable& FormatTable::standard() {
  static const FormatTable table = [] {
    FormatTable t;
    t.formats_.assign(std::begin(kFormats), std::end(kFormats));
    return t;
  }();
  return table;
}

FormatTable FormatTable::with(const FileFormat& format) const {
  FormatTable out = *this;
  out.formats_.insert(out.formats_.begin(), &format);
  return out;
}

const FileFormat* FormatTable::recognise(const Input& input) const {
  for (const FileFormat* f : formats_) {
    if (f->recognises(input)) return f;
  }
  if (input.is_folder()) return nullptr;
  for (const FileFormat* f : formats_) {
    if (input.path().ends_with(f->ending)) return f;
  }
  return nullptr;
}

const FileFormat& FormatTable::for_output(const std::string& path) const {
  for (const FileFormat* f : formats_) {
    if (f->write != nullptr && path.ends_with(f->ending)) return *f;
  }
  throw invalid("convert: the name '", path, "' must end in ", written_endings());
}

std::string FormatTable::names() const {
  std::vector<std::string_view> out;
  for (const FileFormat* f : formats_) out.push_back(f->name);
  return listed(out);
}

std::string FormatTable::written_endings() const {
  std::vector<std::string_view> out;
  for (const FileFormat* f : formats_) {
    if (f->write != nullptr) out.push_back(f->ending);
  }
  return listed(out);
}

}  // namespace rlx::io
