// Every environment variable of the library's own, in one table. Explicit arguments come before the environment. Those of the system
// (HOME, XDG_CACHE_HOME) are read where a cache is looked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

/// A variable of the environment that this library reads.
struct OptionInfo {
  std::string_view name;  // as in the environment
  std::string_view default_value;
  std::string_view meaning;
};

/// All of them; `rlx options` prints it.
std::span<const OptionInfo> option_table();

/// Value of a listed option from the environment, if set and not empty. Asking for a name that is not in
/// the table is an internal error.
std::optional<std::string> option(std::string_view name);

/// As above, read as a whole number; a value that is not one is a user error that names the variable.
std::optional<int64_t> option_int(std::string_view name);

}  // namespace rlx
