#include "rlx/train/catalogue.h"

#include <cmath>
#include <limits>

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

namespace {

struct Range {
  double least, most;
  std::string_view text;
  bool most_too = true;
};

// Rounds and pairs of a history are nodes of the step's graph, each.
Range range_of(std::string_view setting) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (setting == "beta1" || setting == "beta2") return {0, 1, "at least 0 and below 1", false};
  if (setting == "alpha" || setting == "rho") return {0, 1, "0 to 1"};
  if (setting == "ns_steps") return {0, 100, "0 to 100"};
  if (setting == "history_size") return {1, 1000, "1 to 1000"};
  if (setting == "dampening") return {-kInfinite, kInfinite, "a finite number", false};
  return {0, kInfinite, "at least 0 and finite", false};
}

}  // namespace

Settings checked(std::string_view optimizer, Settings settings) {
  for (const auto& [name, value] : settings) {
    const Range r = range_of(name);
    if (std::isfinite(value) && value >= r.least && (r.most_too ? value <= r.most : value < r.most)) continue;
    throw invalid("optimizer: setting '", name, "' of ", optimizer, " is ", value, "; ", r.text,
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
