// Python's two ways to put values into a text: `"%s" % values` and `"{}".format(values)`.
#pragma once

#include <string>
#include <string_view>

#include "rlx/text/template/object.h"
#include "rlx/text/template/operations.h"

namespace rlx::text::jinja {

/// What both need to know of the template they run in.
struct FormatPlace {
  Place place;
  Budget& budget;
  bool markup;  // the format is markup, so what goes into it is escaped
};

/// `values` is a tuple of them, a dict for `%(name)s`, or one value.
std::string format_percent(std::string_view format, const Value& values, const FormatPlace& at);

/// Takes all arguments.
std::string format_braces(std::string_view format, CallArguments& arguments, const FormatPlace& at);

}  // namespace rlx::text::jinja
