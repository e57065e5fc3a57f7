// The JSON reader of every room; json_write.h has the writer and the quoter.
//
// It is our own because no packaged one has all that the rooms ask of it: messages with the place in the
// document, a key given twice as an error, 64-bit integers kept exact, Python's NaN and Infinity where a file
// may have them, no recursion, and speed for tokenizers of 30 MB and graphs of 100 MB.
//
// A document is its text and a flat list of nodes of 16 bytes in the order of the text; an array or object
// knows where its nodes end. Strings without escapes stay where they are in the text.
//
//   const Json config = Json::read("config.json", {.python_numbers = true});
//   config.at("rope").at("theta").real();
//   for (const auto [key, value] : config.members()) ...
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/error.h"

namespace rlx {

/// The one limit of nesting, for all who read JSON: callers may recurse over what was read.
inline constexpr int kMaxJsonDepth = 512;

/// What a value is.
enum class JsonKind : uint8_t { null, boolean, integer, real, string, array, object };

/// What a reader takes beyond the standard.
struct JsonRules {
  bool python_numbers = false;  // NaN, Infinity and -Infinity, as Python's json module writes them
};

namespace detail {

struct JsonNode {
  JsonKind kind = JsonKind::null;
  bool flag = false;  // boolean: its value; integer: above the range of i64, to be read as u64
  uint32_t size = 0;  // bytes of a string, elements of an array, members of an object
  union {
    int64_t integer = 0;
    double real;
    const char* text;
    uint32_t nodes;  // of arrays and objects: itself and all inside
  };
};

struct JsonTree;

}  // namespace detail

/// A value inside a document: two words, valid as long as a Json of the document lives. Asking for the wrong
/// kind is a user error that names the place, as `config.json: rope.theta is a string; a number expected`.
class JsonView {
 public:
  JsonView() = default;  // null

  /// What it is.
  JsonKind kind() const { return node_->kind; }
  bool is_null() const { return kind() == JsonKind::null; }
  bool is_string() const { return kind() == JsonKind::string; }
  bool is_array() const { return kind() == JsonKind::array; }
  bool is_object() const { return kind() == JsonKind::object; }
  bool is_number() const { return kind() == JsonKind::integer || kind() == JsonKind::real; }

  /// true or false.
  bool boolean() const;
  int64_t integer() const;            // a real without fraction counts
  uint64_t unsigned_integer() const;  // integers from 0 to 2^64 - 1
  double real() const;                // integers too
  /// Without quotes and escapes.
  std::string_view string() const;

  size_t size() const;  // of arrays and objects; 0 otherwise

  class Items;
  class Members;
  Items items() const;      // the elements of an array, in order
  Members members() const;  // {key, value} of an object, in the order of the text

  /// Objects; empty when the key is missing or its value is null. Takes time in proportion to the members.
  std::optional<JsonView> find(std::string_view key) const;
  /// As find; a missing key is a user error.
  JsonView at(std::string_view key) const;
  /// Arrays. Takes time in proportion to `index`: loops use items().
  JsonView at(size_t index) const;
  /// Of an object, in the order of the text.
  std::vector<std::string> keys() const;

  /// Where in the document this is: `config.json: layers[3].name`. Found by walking the document.
  std::string place() const;
  /// A user error `PLACE what`, as in `config.json: layers[3] must not be empty`.
  template <class... Args>
  [[nodiscard]] Error error(const Args&... what) const {
    return invalid(place(), " ", what...);
  }
  /// Written again, in one line or indented; NaN and infinities as Python writes them.
  std::string text(int indent = -1) const;

 protected:
  JsonView(const detail::JsonTree* tree, const detail::JsonNode* node) : tree_(tree), node_(node) {}

  /// What stands behind this value, and the first thing in it.
  JsonView next() const { return {tree_, node_ + (kind() >= JsonKind::array ? node_->nodes : 1)}; }
  JsonView inside() const { return {tree_, node_ + 1}; }
  Error wrong_kind(std::string_view wanted) const;

  static const detail::JsonNode kNull;
  const detail::JsonTree* tree_ = nullptr;
  const detail::JsonNode* node_ = &kNull;
};

/// The elements of an array, for a loop.
class JsonView::Items {
 public:
  struct Iterator {
    JsonView at;
    const JsonView& operator*() const { return at; }
    Iterator& operator++() {
      at = at.next();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at.node_ != other.at.node_; }
  };
  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }

 private:
  friend class JsonView;
  Items(JsonView begin, JsonView end) : begin_{begin}, end_{end} {}
  Iterator begin_, end_;
};

/// A key of an object with its value.
struct JsonMember {
  std::string_view key;
  JsonView value;
};

/// The members of an object, for a loop.
class JsonView::Members {
 public:
  struct Iterator {
    JsonView at;  // the key
    JsonMember operator*() const { return {at.string(), at.next()}; }
    Iterator& operator++() {
      at = at.next().next();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at.node_ != other.at.node_; }
  };
  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }

 private:
  friend class JsonView;
  Members(JsonView begin, JsonView end) : begin_{begin}, end_{end} {}
  Iterator begin_, end_;
};

/// A document, or a value of one, that keeps it alive. Copies share it; nothing changes it.
class Json : public JsonView {
 public:
  Json() = default;  // null

  /// The whole text is one value, nothing follows it, no object has a key twice, at most kMaxJsonDepth
  /// levels. `source` starts every message. Everything else is a user error with line and column.
  static Json parse(std::string text, std::string_view source, JsonRules rules = {});
  /// As parse, over text that `owner` keeps where it is (or that outlives the document): not copied.
  static Json parse_in_place(std::string_view text, std::string_view source, JsonRules rules = {},
                             std::shared_ptr<const void> owner = {});
  /// A file of at most 256 MiB.
  static Json read(const std::string& path, JsonRules rules = {});

  /// A value of this document, kept.
  Json keep(JsonView value) const;

 private:
  std::shared_ptr<const detail::JsonTree> document_;
};

}  // namespace rlx
