// Tables of text with columns that line up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// A number with this many digits behind the point.
std::string fixed(double value, int digits);

struct Column {
  std::string title;
  bool right = false;  // numbers
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell per column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Titles and rows, each behind `indent`; the last column is as wide as it is.
  std::string text(std::string_view indent = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rlx
