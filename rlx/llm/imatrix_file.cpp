// Files of importance matrices.
//
// GGUF: general.type "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size, and for each weight NAME.in_sum2
// f32 [experts, columns] and NAME.counts f32 [experts, 1]. The older form: entries i32; for each the length of its name i32,
// the name, calls i32, values i32, values f32 (mean squares times calls); then chunks i32, length i32 and name of the data.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/io/file_format.h"
#include "rlx/io/gguf.h"
#include "rlx/io/literal.h"
#include "rlx/llm/imatrix.h"

namespace rlx::llm {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

void write_gguf(const ImportanceMatrix& m, const std::string& path) {
  io::GgufWriter out;
  out.add_string("general.type", "imatrix");
  const std::vector<std::string_view> names(m.datasets.begin(), m.datasets.end());
  out.add_strings("imatrix.datasets", names);
  out.add_u32("imatrix.chunk_count", uint32_t(m.chunks));
  out.add_u32("imatrix.chunk_size", uint32_t(m.chunk_size));
  std::vector<io::TensorView> views;
  const auto keep = [&](const std::string& name, const std::vector<double>& v, int64_t rows) {
    const std::vector<float> values(v.begin(), v.end());
    views.push_back(io::to_view(name, Literal::of<float>({rows, int64_t(v.size()) / rows}, values)));
  };
  for (const auto& [name, e] : m.entries) {
    keep(name + std::string(kSums), e.sums, int64_t(e.counts.size()));
    keep(name + std::string(kCounts), e.counts, int64_t(e.counts.size()));
  }
  for (const io::TensorView& v : views) out.add_tensor(v);
  out.write(path);
}

ImportanceMatrix read_gguf(const io::GgufFile& file, const std::string& path) {
  const io::GgufValue* type = file.find("general.type");
  if (type == nullptr || type->type() != io::GgufType::string || type->string() != "imatrix")
    throw invalid("imatrix '", path, "': general.type imatrix expected; is it a model?");
  ImportanceMatrix out;
  if (const auto* v = file.find("imatrix.chunk_count")) out.chunks = v->integer();
  if (const auto* v = file.find("imatrix.chunk_size")) out.chunk_size = v->integer();
  if (const auto* v = file.find("imatrix.datasets"))
    for (const std::string_view name : v->strings()) out.datasets.emplace_back(name);
  for (const io::TensorView& t : file.tensors()) {
    if (t.name.ends_with(kCounts)) continue;
    if (!t.name.ends_with(kSums))
      throw invalid("imatrix '", path, "': tensor '", t.name, "' is neither NAME.in_sum2 nor NAME.counts");
    const std::string name = t.name.substr(0, t.name.size() - kSums.size());
    const std::vector<float> sums = io::to_f32(t),
                             counts = io::to_f32(file.tensor(name + std::string(kCounts)));
    if (counts.empty() || sums.empty() || sums.size() % counts.size() != 0)
      throw invalid("imatrix '", path, "': '", name, "' has ", sums.size(), " sums for ", counts.size(),
                    " counts");
    out.entries[name] = {{sums.begin(), sums.end()}, {counts.begin(), counts.end()}};
  }
  return out;
}

void write_older(const ImportanceMatrix& m, const std::string& path) {
  std::string bytes;
  const auto number = [&](int64_t v) {
    const auto narrow = int32_t(v);
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  };
  const auto text = [&](std::string_view s) {
    number(int64_t(s.size()));
    bytes += s;
  };
  number(int64_t(m.entries.size()));
  const int64_t calls = std::max<int64_t>(m.chunks, 1);
  for (const auto& [name, e] : m.entries) {
    text(name);
    number(calls);
    number(int64_t(e.sums.size()));
    for (size_t expert = 0; expert < e.counts.size(); ++expert)
      for (const float mean : e.means(int64_t(expert))) {
        const float value = mean * float(calls);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
  }
  number(m.chunks);
  text(m.datasets.empty() ? "" : m.datasets.front());
  write_file(path, bytes);
}

class OlderReader {
 public:
  OlderReader(std::string bytes, const std::string& path) : bytes_(std::move(bytes)), path_(path) {}

  ImportanceMatrix read() {
    ImportanceMatrix out;
    const int64_t entries = number("entries");
    for (int64_t i = 0; i < entries; ++i) {
      const std::string name(take(size_t(number("the length of a name")), "a name"));
      const int64_t calls = number("calls"), count = number("values");
      const std::string_view raw = take(size_t(count) * sizeof(float), "values");
      ImportanceMatrix::Entry e{std::vector<double>(size_t(count)), {double(std::max<int64_t>(calls, 1))}};
      for (size_t k = 0; k < e.sums.size(); ++k) {
        float v = 0;
        std::memcpy(&v, raw.data() + k * sizeof v, sizeof v);
        if (!std::isfinite(v) || v < 0) fail("'", name, "' has the value ", v);
        e.sums[k] = double(v);
      }
      if (e.sums.empty()) fail("'", name, "' has no values");
      out.entries[name] = std::move(e);
    }
    if (at_ == bytes_.size()) return out;
    out.chunks = number("chunks");
    out.datasets.emplace_back(take(size_t(number("the length of a name")), "the name of the data"));
    return out;
  }

 private:
  template <class... T>
  [[noreturn]] void fail(const T&... what) const {
    throw invalid("imatrix '", path_, "': ", what...);
  }
  std::string_view take(size_t n, const char* what) {
    if (n > bytes_.size() - at_) fail("ends within ", what, "; a file of rlx imatrix or llama.cpp expected");
    at_ += n;
    return std::string_view(bytes_).substr(at_ - n, n);
  }
  int64_t number(const char* what) {
    int32_t v = 0;
    std::memcpy(&v, take(sizeof v, what).data(), sizeof v);
    if (v < 0) fail(what, " is ", v, "; a file of rlx imatrix or llama.cpp expected");
    return v;
  }

  std::string bytes_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

void ImportanceMatrix::write(const std::string& path) const {
  path.ends_with(".dat") ? write_older(*this, path) : write_gguf(*this, path);
}

ImportanceMatrix ImportanceMatrix::open(const std::string& path) {
  const io::Input input = io::Input::open(path);
  const io::FileFormat* format = io::FormatTable::standard().recognise(input);
  if (format != nullptr && format->name == "gguf") return read_gguf(io::GgufFile::open(input), path);
  return OlderReader(std::string(input.text()), path).read();
}

}  // namespace rlx::llm
