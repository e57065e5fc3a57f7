// The configuration of a model file, read by names: those of config.json or those of GGUF's metadata.
//
// Every field that is asked for counts as understood. What nobody asked for is refused by `finish`, unless it is on the
// list of fields that cannot change a result (training, generation, provenance).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/model_file.h"

namespace rlx::models {

/// Where a field stands: words of config.json and keys of GGUF without the name of the architecture, each separated by '|', the first
/// that is there counts. Empty: files of that kind do not have it.
struct Field {
  std::string_view hf, gguf = {};
};

class ConfigSource {
 public:
  explicit ConfigSource(const io::ModelFile& file);

  bool is_gguf() const { return file_.gguf.has_value(); }
  const io::ModelFile& file() const { return file_; }
  /// As the file calls it.
  const std::string& architecture() const { return architecture_; }
  /// Of a model that reads pictures too, only the part `text_config` of its configuration is read.
  bool is_text_part() const { return is_text_part_; }
  bool has_tensor(std::string_view name) const { return find_tensor(name) != nullptr; }
  const io::TensorView* find_tensor(std::string_view name) const;

  std::optional<int64_t> find_integer(Field);
  std::optional<double> find_real(Field);
  std::optional<bool> find_flag(Field);
  std::optional<std::string> find_text(Field);
  std::vector<int64_t> integers(Field);  // empty when missing
  std::vector<double> reals(Field);
  std::vector<std::string> texts(Field);
  std::vector<bool> flags(Field);  // of GGUF, by layer; empty when missing or no list

  /// As find; a field that is missing is a user error.
  int64_t integer(Field);
  double real(Field);

  /// A part of config.json that its reader checks itself; empty when missing.
  std::optional<JsonView> object(std::string_view hf);

  /// A field with one value that is understood: any other is refused.
  void require_flag(Field, bool value);
  void require_text(Field, std::string_view value);
  void require_none(Field);  // missing, null, 0 or false

  /// Counts as understood without being read.
  void ignore(std::string_view hf_words);
  /// Refuses what nobody asked for.
  void finish();

  /// "model 'path': "
  std::string where() const;

 private:
  std::optional<JsonView> find_json(std::string_view words);
  const io::GgufValue* find_gguf(std::string_view key);
  std::string name_of(Field) const;
  int64_t one_for_all(Field, const io::GgufValue& list) const;

  const io::ModelFile& file_;
  Json config_, defaults_;
  std::string architecture_;
  bool is_text_part_ = false;
  std::set<std::string, std::less<>> used_;
};

/// A number of config.json, or its form {"__float__": "Infinity"}.
double json_real(JsonView);

}  // namespace rlx::models
