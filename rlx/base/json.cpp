#include "rlx/base/json.h"

#include <cmath>

#include "rlx/base/file.h"
#include "rlx/base/json_tree.h"
#include "rlx/base/json_write.h"

namespace rlx {
namespace {

constexpr uint64_t kMaxFile = uint64_t(1) << 28;

constexpr std::string_view kKindNames[] = {"null",     "a boolean", "an integer", "a number",
                                           "a string", "an array",  "an object"};

}  // namespace

const detail::JsonNode JsonView::kNull{};

Json Json::parse(std::string text, std::string_view source, JsonRules rules) {
  const auto tree = std::make_shared<detail::JsonTree>();
  tree->source = source;
  tree->owned_text = std::move(text);
  detail::read_json(*tree, tree->owned_text, rules);
  Json out;
  out.tree_ = tree.get();
  out.node_ = tree->nodes.data();
  out.document_ = tree;
  return out;
}

Json Json::parse_in_place(std::string_view text, std::string_view source, JsonRules rules,
                          std::shared_ptr<const void> owner) {
  const auto tree = std::make_shared<detail::JsonTree>();
  tree->source = source;
  tree->owner = std::move(owner);
  detail::read_json(*tree, text, rules);
  Json out;
  out.tree_ = tree.get();
  out.node_ = tree->nodes.data();
  out.document_ = tree;
  return out;
}

Json Json::read(const std::string& path, JsonRules rules) {
  return parse(read_file(path, kMaxFile), path, rules);
}

Json Json::keep(JsonView value) const {
  Json out;
  static_cast<JsonView&>(out) = value;
  out.document_ = document_;
  return out;
}

Error JsonView::wrong_kind(std::string_view wanted) const {
  return error("is ", kKindNames[size_t(kind())], "; ", wanted, " expected");
}

bool JsonView::boolean() const {
  if (kind() != JsonKind::boolean) throw wrong_kind("a boolean");
  return node_->flag;
}

int64_t JsonView::integer() const {
  if (kind() == JsonKind::integer) {
    if (node_->flag) throw error("is ", uint64_t(node_->integer), ", beyond 64 bits with sign");
    return node_->integer;
  }
  if (kind() == JsonKind::real) {
    const double value = node_->real;
    if (value == std::floor(value) && std::abs(value) < 0x1p63) return int64_t(value);
  }
  throw wrong_kind("an integer");
}

uint64_t JsonView::unsigned_integer() const {
  if (kind() == JsonKind::integer && node_->flag) return uint64_t(node_->integer);
  const int64_t value = integer();
  if (value < 0) throw error("is ", value, "; an integer not below 0 expected");
  return uint64_t(value);
}

double JsonView::real() const {
  if (kind() == JsonKind::real) return node_->real;
  if (kind() != JsonKind::integer) throw wrong_kind("a number");
  return node_->flag ? double(uint64_t(node_->integer)) : double(node_->integer);
}

std::string_view JsonView::string() const {
  if (kind() != JsonKind::string) throw wrong_kind("a string");
  return {node_->text, node_->size};
}

size_t JsonView::size() const { return kind() >= JsonKind::array ? node_->size : 0; }

JsonView::Items JsonView::items() const {
  if (kind() != JsonKind::array) throw wrong_kind("an array");
  return {inside(), next()};
}

JsonView::Members JsonView::members() const {
  if (kind() != JsonKind::object) throw wrong_kind("an object");
  return {inside(), next()};
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  for (const auto [name, value] : members()) {
    if (name == key) return value.is_null() ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

JsonView JsonView::at(std::string_view key) const {
  if (const auto value = find(key)) return *value;
  throw error("has no '", key, "'");
}

JsonView JsonView::at(size_t index) const {
  if (kind() == JsonKind::array && index >= size())
    throw error("has ", size(), " elements; element ", index, " was asked for");
  auto item = items().begin();
  for (; index > 0; --index) ++item;
  return *item;
}

std::vector<std::string> JsonView::keys() const {
  std::vector<std::string> out;
  for (const auto [key, value] : members()) out.emplace_back(key);
  return out;
}

std::string JsonView::place() const {
  if (tree_ == nullptr) return "json";
  std::string path;
  // Down from the document to the value: each step is the child whose nodes reach over it.
  const detail::JsonNode* const target = node_;
  JsonView here(tree_, tree_->nodes.data());
  while (here.node_ != target) {
    if (here.is_array()) {
      size_t index = 0;
      JsonView item = here.inside();
      for (; item.next().node_ <= target; item = item.next()) ++index;
      path += cat("[", index, "]");
      here = item;
    } else {
      JsonView key = here.inside();
      while (key.next().next().node_ <= target) key = key.next().next();
      if (!path.empty()) path += '.';
      path += key.string();
      here = key.node_ == target ? key : key.next();
    }
  }
  return path.empty() ? tree_->source : cat(tree_->source, ": ", path);
}

std::string JsonView::text(int indent) const {
  JsonWriter out({.indent = indent, .python_numbers = true});
  out.value(*this);
  return out.take();
}

}  // namespace rlx
