#include "rlx/ir/named_literals.h"

#include <vector>

namespace rlx::ir {

const Literal& NamedLiterals::at(std::string_view name) const {
  if (const auto it = find(name); it != end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : *this) names.push_back(known);
  throw invalid("tensors: none is named '", name, "'; there ", names.size() == 1 ? "is " : "are ",
                names.empty() ? "none" : join(names));
}

Literal& NamedLiterals::at(std::string_view name) {
  return const_cast<Literal&>(static_cast<const NamedLiterals&>(*this).at(name));
}

}  // namespace rlx::ir
