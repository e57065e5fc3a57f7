#include "rlx/io/json.h"

#include <cmath>
#include <set>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/io/json_document.h"
#include "rlx/io/json_text.h"

namespace rlx::io {
namespace {

constexpr uint64_t kMaxFile = uint64_t(1) << 28;

const JsonDocument kNull;

const JsonDocument& node_of(const Json& json) { return Json::Access::node(json); }

Error wrong_kind(const Json& json, std::string_view wanted) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "a number",
                                                "a string", "an array",  "an object"};
  return invalid(json.place(), " is ", kNames[size_t(json.kind())], "; ", wanted, " expected");
}

}  // namespace

JsonDocument parse_json_document(std::string_view text, std::string_view source) {
  check_json_depth(text, source);
  std::vector<std::set<std::string>> keys;  // of the open objects
  std::string repeated;
  const auto watch = [&](int, nlohmann::json::parse_event_t event, JsonDocument& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end && !keys.empty()) keys.pop_back();
    if (event == Event::key && !keys.empty() && repeated.empty()) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) repeated = key;
    }
    return true;
  };
  JsonDocument document;
  try {
    document = JsonDocument::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::exception& e) {
    throw invalid(source, ": JSON is malformed: ", e.what());
  }
  if (!repeated.empty()) throw invalid(source, ": the key '", repeated, "' occurs twice in one object");
  return document;
}

Json Json::Access::wrap(JsonDocument document, std::string source) {
  Json out;
  const auto owned = std::make_shared<const JsonDocument>(std::move(document));
  out.node_ = owned.get();
  out.document_ = owned;
  out.place_ = std::move(source);
  return out;
}

Json Json::Access::child(const Json& parent, const JsonDocument& node, const std::string& step) {
  Json out;
  out.document_ = parent.document_;
  out.node_ = &node;
  out.place_ = cat(parent.place_, parent.place_.find(": ") == std::string::npos ? ": " : ".", step);
  return out;
}

Json::Json() : node_(&kNull) {}

Json Json::parse(std::string_view text, std::string_view source) {
  return Access::wrap(parse_json_document(text, source), std::string(source));
}

Json Json::read(const std::string& path) { return parse(read_file(path, kMaxFile), path); }

std::string Json::place() const { return place_.empty() ? "json" : place_; }

Json::Kind Json::kind() const {
  const JsonDocument& n = node_of(*this);
  if (n.is_boolean()) return Kind::boolean;
  if (n.is_number_integer()) return Kind::integer;
  if (n.is_number()) return Kind::real;
  if (n.is_string()) return Kind::string;
  if (n.is_array()) return Kind::array;
  if (n.is_object()) return Kind::object;
  return Kind::null;
}

bool Json::boolean() const {
  if (kind() != Kind::boolean) throw wrong_kind(*this, "a boolean");
  return node_of(*this).get<bool>();
}

int64_t Json::integer() const {
  const JsonDocument& n = node_of(*this);
  if (n.is_number_unsigned() && n.get<uint64_t>() > uint64_t(INT64_MAX)) {
    throw invalid(place(), " is ", n.get<uint64_t>(), ", beyond 64 bits with sign");
  }
  if (n.is_number_integer()) return n.get<int64_t>();
  if (n.is_number_float()) {
    const double value = n.get<double>();
    if (value == std::floor(value) && std::abs(value) < 0x1p63) return int64_t(value);
  }
  throw wrong_kind(*this, "an integer");
}

double Json::real() const {
  if (!node_of(*this).is_number()) throw wrong_kind(*this, "a number");
  return node_of(*this).get<double>();
}

std::string Json::string() const {
  if (kind() != Kind::string) throw wrong_kind(*this, "a string");
  return node_of(*this).get<std::string>();
}

size_t Json::size() const {
  const JsonDocument& n = node_of(*this);
  return n.is_array() || n.is_object() ? n.size() : 0;
}

Json Json::at(size_t index) const {
  if (kind() != Kind::array) throw wrong_kind(*this, "an array");
  if (index >= size())
    throw invalid(place(), " has ", size(), " elements; element ", index, " was asked for");
  return Access::child(*this, node_of(*this)[index], cat("[", index, "]"));
}

std::vector<std::string> Json::keys() const {
  if (kind() != Kind::object) throw wrong_kind(*this, "an object");
  std::vector<std::string> out;
  for (const auto& item : node_of(*this).items()) out.push_back(item.key());
  return out;
}

std::optional<Json> Json::find(std::string_view key) const {
  if (kind() != Kind::object) throw wrong_kind(*this, "an object");
  const JsonDocument& n = node_of(*this);
  const auto it = n.find(std::string(key));
  if (it == n.end() || it->is_null()) return std::nullopt;
  return Access::child(*this, *it, std::string(key));
}

Json Json::at(std::string_view key) const {
  if (auto value = find(key)) return *value;
  throw invalid(place(), " has no '", key, "'");
}

std::string Json::text(int indent) const { return node_of(*this).dump(indent); }

}  // namespace rlx::io
