#include <string_view>

#include "rlx/ir/graph.h"

namespace rlx::ir {

std::string Origin::text() const {
  std::string out;
  const auto add = [&out](std::string_view part) {
    if (part.empty()) return;
    if (!out.empty()) out += ", ";
    out += part;
  };
  if (file != nullptr) add(cat(file_name(), ":", line));
  add(label);
  add(block);
  for (const std::string& note : notes) add(note);
  return out;
}

std::string_view Origin::file_name() const {
  if (file == nullptr) return {};
  const std::string_view path(file);
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

LocationScope::LocationScope(Graph& g, const std::source_location& where)
    : graph_(g), before_(g.current_origin()) {
  // The outermost call is the user's; what it calls inside the library keeps that line.
  if (where.line() == 0 || (before_ && before_->file != nullptr)) return;
  auto origin = before_ ? std::make_shared<Origin>(*before_) : std::make_shared<Origin>();
  origin->file = where.file_name();
  origin->line = where.line();
  origin->column = where.column();
  origin->function = where.function_name();
  g.set_current_origin(std::move(origin));
}

LabelScope::LabelScope(Graph& g, std::string_view label) : graph_(g), before_(g.current_origin()) {
  auto origin = before_ ? std::make_shared<Origin>(*before_) : std::make_shared<Origin>();
  origin->label += origin->label.empty() ? std::string(label) : cat("/", label);
  g.set_current_origin(std::move(origin));
}

}  // namespace rlx::ir
