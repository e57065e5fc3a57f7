#include "rlx/text/template/object.h"

#include <algorithm>

#include "rlx/text/template/lexer.h"

namespace rlx::text {

using jinja::error_at;

Value Object::call(CallArguments& arguments) {
  throw error_at(arguments.place(), cat("'", arguments.callee(), "' cannot be called"));
}

const Value* CallArguments::optional(std::string_view name) {
  if (next_ < positional.size()) return &positional[next_++];
  next_ = positional.size() + 1;  // later parameters come by name only
  return by_name(name);
}

const Value* CallArguments::by_name(std::string_view name) {
  named_taken_.resize(named.size());
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i].first == name) {
      named_taken_[i] = true;
      return &named[i].second;
    }
  }
  return nullptr;
}

const Value& CallArguments::required(std::string_view name) {
  const Value* v = optional(name);
  if (!v) throw error_at(place_, cat("'", callee_, "' needs the argument '", name, "'"));
  return *v;
}

int64_t CallArguments::integer(std::string_view name, int64_t otherwise) {
  const Value* v = optional(name);
  if (!v || v->is_none()) return otherwise;
  if (v->is_bool()) return v->as_bool();
  if (!v->is_int())
    throw error_at(place_,
                   cat("'", callee_, "': argument '", name, "' must be an integer, got ", v->kind_name()));
  return v->as_int();
}

bool CallArguments::boolean(std::string_view name, bool otherwise) {
  const Value* v = optional(name);
  if (!v) return otherwise;
  if (!v->is_bool())
    throw error_at(place_,
                   cat("'", callee_, "': argument '", name, "' must be true or false, got ", v->kind_name()));
  return v->as_bool();
}

std::string CallArguments::string(std::string_view name, std::string_view otherwise) {
  const Value* v = optional(name);
  if (!v || v->is_none()) return std::string(otherwise);
  if (!v->is_string())
    throw error_at(place_,
                   cat("'", callee_, "': argument '", name, "' must be a string, got ", v->kind_name()));
  return v->as_string();
}

std::string CallArguments::required_string(std::string_view name) {
  const Value& v = required(name);
  if (!v.is_string())
    throw error_at(place_,
                   cat("'", callee_, "': argument '", name, "' must be a string, got ", v.kind_name()));
  return v.as_string();
}

List CallArguments::rest() {
  List out;
  while (next_ < positional.size()) out.push_back(positional[next_++]);
  return out;
}

Dict CallArguments::rest_by_name() {
  named_taken_.resize(named.size());
  Dict out;
  for (size_t i = 0; i < named.size(); ++i) {
    if (!named_taken_[i]) out.set(named[i].first, named[i].second);
    named_taken_[i] = true;
  }
  return out;
}

void CallArguments::take_all() {
  next_ = positional.size() + 1;
  named_taken_.assign(named.size(), true);
}

void CallArguments::finish() const {
  if (next_ < positional.size())
    throw error_at(place_, cat("'", callee_, "' takes ", next_, " arguments, got ", positional.size()));
  for (size_t i = 0; i < named.size(); ++i) {
    if (i >= named_taken_.size() || !named_taken_[i])
      throw error_at(place_, cat("'", callee_, "' has no argument '", named[i].first, "'"));
  }
}

namespace jinja {

Sequence* sequence_of(const Value& v) {
  return v.is_object() ? dynamic_cast<Sequence*>(v.as_object().get()) : nullptr;
}

Value make_sequence(Sequence::Kind kind, List list, std::string text) {
  int depth = 0;
  for (const Value& v : list) depth = std::max(depth, v.depth());
  return Value(std::make_shared<Sequence>(kind, std::move(list), std::move(text)), depth + 1);
}

Value make_generator(List list) {
  return make_sequence(Sequence::Kind::generator, std::move(list), "<generator object>");
}

}  // namespace jinja
}  // namespace rlx::text
