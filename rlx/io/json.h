// A JSON document as a value to look into; the library behind it stays in the source file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::io {

/// Light and immutable: copies share the document. Asking for the wrong kind is a user error that names the
/// place, as in `config.json: rope_parameters.rope_theta is a string; a number expected`.
class Json {
 public:
  enum class Kind { null, boolean, integer, real, string, array, object };

  Json();  // null
  /// Whole text, nothing after it, no key twice, at most kMaxJsonDepth levels. `source` starts every message.
  static Json parse(std::string_view text, std::string_view source);
  static Json read(const std::string& path);

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }

  bool boolean() const;
  int64_t integer() const;  // a real without fraction counts
  double real() const;      // integers too
  std::string string() const;

  size_t size() const;                    // arrays and objects; 0 otherwise
  Json at(size_t index) const;            // arrays
  std::vector<std::string> keys() const;  // objects, in the order of the text
  /// Objects; empty when the key is missing or its value is null.
  std::optional<Json> find(std::string_view key) const;
  /// As find; a missing key is a user error.
  Json at(std::string_view key) const;

  /// Serialised again: in one line, or indented.
  std::string text(int indent = -1) const;
  /// Where in the document this value is, for messages.
  std::string place() const;

  struct Access;  // for sources that need the document itself

 private:
  std::shared_ptr<const void> document_;
  const void* node_;
  std::string place_;  // source, then the path
};

}  // namespace rlx::io
