#include "rlx/runtime/table.h"

#include <algorithm>
#include <cstdio>

#include "rlx/base/error.h"

namespace rlx {

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Table::text(std::string_view indent) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].title.size());
    for (const auto& row : rows_) {
      RLX_CHECK(row.size() == columns_.size(), "a row of ", row.size(), " cells in a table of ",
                columns_.size());
      widths.back() = std::max(widths.back(), row[c].size());
    }
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text(indent);
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string& word = cell(c);
      const std::string space(widths[c] - word.size(), ' ');
      text += columns_[c].right ? space + word : word + space;
      text += "  ";
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  line([&](size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) line([&](size_t c) -> const std::string& { return row[c]; });
  return out;
}

}  // namespace rlx
