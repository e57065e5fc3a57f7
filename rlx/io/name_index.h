// Look-up by name over a list that stays in file order: four bytes an item.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace rlx::io {

/// `name_of(i)` gives the name of item i and must mean the same at every call.
class NameIndex {
 public:
  /// Returns the first name that occurs twice, if one does.
  template <class NameOf>
  std::optional<std::string_view> build(size_t count, NameOf name_of) {
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return name_of(a) < name_of(b); });
    for (size_t i = 1; i < count; ++i) {
      if (name_of(order_[i - 1]) == name_of(order_[i])) return name_of(order_[i]);
    }
    return std::nullopt;
  }

  template <class NameOf>
  std::optional<size_t> find(std::string_view name, NameOf name_of) const {
    const auto at = std::lower_bound(order_.begin(), order_.end(), name,
                                     [&](uint32_t i, std::string_view n) { return name_of(i) < n; });
    if (at == order_.end() || name_of(*at) != name) return std::nullopt;
    return *at;
  }

 private:
  std::vector<uint32_t> order_;
};

}  // namespace rlx::io
