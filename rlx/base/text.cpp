#include "rlx/base/text.h"

#include <algorithm>
#include <cmath>

namespace rlx {

void append_text(std::string& out, double value) {
  if (std::isnan(value)) {
    out.append("nan");
    return;
  }
  if (std::isinf(value)) {
    out.append(value < 0 ? "-inf" : "inf");
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  const std::string_view digits(buffer, size_t(end - buffer));
  out.append(digits);
  if (digits.find_first_of(".e") == std::string_view::npos) out.append(".0");
}

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  // Of three characters one may differ; with two, 'foo' would be near 'dot'.
  size_t best_distance = (name.size() < 4 ? 1 : std::max<size_t>(2, name.size() / 3)) + 1;
  if (name.size() > 200) return best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 200) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace rlx
