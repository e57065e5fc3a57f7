// The filters, tests, methods and global functions of templates. Names that are not here are errors.
#pragma once

#include <string_view>

#include "rlx/text/template/object.h"
#include "rlx/text/template/operations.h"

namespace rlx::text::jinja {

/// What built-ins may use of the running template.
struct Runtime {
  Budget budget;
};

bool is_filter(std::string_view name);
bool is_test(std::string_view name);
Value apply_filter(std::string_view name, const Value& input, CallArguments& arguments, Runtime& runtime);
bool apply_test(std::string_view name, const Value& input, CallArguments& arguments, Runtime& runtime);

/// A bound method of a string, list or dict; undefined when there is no such method.
Value find_method(const Value& object, std::string_view name, Runtime& runtime);

}  // namespace rlx::text::jinja
