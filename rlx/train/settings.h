// Settings of an optimiser as names and numbers, from the members of its struct. For the sources of the optimisers.
#pragma once

#include <cmath>
#include <tuple>

#include "rlx/base/error.h"
#include "rlx/train/optimizer.h"

namespace rlx::train {

/// A member of an options struct under its name.
template <class Options, class T>
struct Member {
  const char* name;
  T Options::* place;
};
template <class Options, class T>
Member(const char*, T Options::*) -> Member<Options, T>;

/// The members as names and numbers.
template <class Options, class... Members>
Settings settings_of(const Options& o, const std::tuple<Members...>& members) {
  Settings out;
  std::apply([&](const auto&... m) { (out.emplace(m.name, double(o.*m.place)), ...); }, members);
  return out;
}

/// The settings themselves; numbers for which the formulas of no optimiser are meant are refused. A name has one range everywhere.
Settings checked(std::string_view optimizer, Settings);

/// The struct from names and numbers; a name that no member has is a user error.
template <class Options, class... Members>
Options options_of(std::string_view optimizer, const Settings& settings,
                   const std::tuple<Members...>& members) {
  Options o;
  std::vector<std::string> known;
  std::apply([&](const auto&... m) { (known.emplace_back(m.name), ...); }, members);
  for (const auto& [name, value] : settings) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    throw invalid("optimizer: ", optimizer, " has no setting '", name, "'",
                  near.empty() ? "" : cat("; did you mean '", near, "'"), "; it has ", join(known));
  }
  checked(optimizer, settings);  // so that every number fits its type
  const auto read = [&](const auto& m) {
    const auto it = settings.find(m.name);
    if (it == settings.end()) return;
    using T = std::remove_cvref_t<decltype(o.*m.place)>;
    if (!std::same_as<T, double> && it->second != std::floor(it->second))
      throw invalid("optimizer: setting '", m.name, "' of ", optimizer, " is ", it->second,
                    "; a whole number is needed");
    if (std::same_as<T, bool> && it->second != 0 && it->second != 1)
      throw invalid("optimizer: setting '", m.name, "' of ", optimizer, " is ", it->second,
                    "; 0 or 1 is needed");
    o.*m.place = T(it->second);
  };
  std::apply([&](const auto&... m) { (read(m), ...); }, members);
  return o;
}

/// The decay of one tensor.
inline double decay_of(const Trained& p, double own) { return p.weight_decay.value_or(own); }
/// The gradient with decay p added; itself where there is none.
Tensor decayed_gradient(const Trained&, double own);
/// A scalar f64 in the type of a trained tensor.
Tensor as_type_of(const Trained&, const Tensor& scalar);

}  // namespace rlx::train
