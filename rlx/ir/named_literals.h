// Tensors by name: what a run is given, what it returns, weights.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "rlx/ir/literal.h"

namespace rlx::ir {

class NamedLiterals : public std::map<std::string, Literal, std::less<>> {
 public:
  using std::map<std::string, Literal, std::less<>>::map;

  /// The tensor of this name; an unknown one is a user error that lists the names there are.
  const Literal& at(std::string_view name) const;
  Literal& at(std::string_view name);
};

}  // namespace rlx::ir
