#include "rlx/train/catalogue.h"

#include "rlx/base/error.h"

namespace rlx::train {
namespace {

const Catalogue& catalogue() {
  static const Catalogue all = [] {
    Catalogue c;
    add_first_order(c);
    add_adam(c);
    add_muon(c);
    add_lbfgs(c);
    return c;
  }();
  return all;
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : catalogue()) out.push_back(name);
  return out;
}

Optimizer optimizer_named(const std::string& name, const Settings& settings) {
  const auto it = catalogue().find(name);
  if (it != catalogue().end()) return it->second(settings);
  const auto names = optimizer_names();
  const std::string near = nearest_name(name, names);
  throw invalid("optimizer: unknown optimizer '", name, "'",
                near.empty() ? "" : cat("; did you mean '", near, "'"), "; known: ", join(names));
}

}  // namespace rlx::train
