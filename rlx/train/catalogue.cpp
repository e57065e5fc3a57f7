#include "rlx/train/catalogue.h"

#include <cmath>

#include "rlx/base/error.h"
#include "rlx/train/settings.h"

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

Settings checked(std::string_view optimizer, Settings settings) {
  for (const auto& [name, value] : settings) {
    const bool below_one = name == "beta1" || name == "beta2", share = name == "alpha" || name == "rho";
    const bool good = below_one             ? value >= 0 && value < 1
                      : share               ? value >= 0 && value <= 1
                      : name == "dampening" ? std::isfinite(value)
                                            : value >= 0 && std::isfinite(value);
    if (good) continue;
    throw invalid("optimizer: setting '", name, "' of ", optimizer, " is ", value, "; ",
                  below_one             ? "at least 0 and below 1"
                  : share               ? "0 to 1"
                  : name == "dampening" ? "a finite number"
                                        : "at least 0 and finite",
                  " is needed");
  }
  return settings;
}

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
