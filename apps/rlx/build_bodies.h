// Graphs that nodes hold, as functions of a C++ source that make them node by node.
#pragma once

#include "apps/rlx/build_values.h"
#include "rlx/backend/grouping.h"

namespace rlx::cli {

class BodyWriter {
 public:
  /// `joins`: how the backend joins nodes of graphs that it plans; null where it does not.
  BodyWriter(const backend::Grouping* joins, DataFile& data) : joins_(joins), data_(data) {}

  /// `Call(record<"softmax">()).set("axis", 1)`: what differs from the defaults. Bodies become functions.
  std::string call(const ir::Node&);
  /// The functions so far.
  const std::string& text() const { return text_; }

 private:
  std::string function_for(const ir::GraphRef&, bool planned);
  std::string lines_of(const ir::Graph&);

  const backend::Grouping* joins_;
  DataFile& data_;
  std::vector<std::pair<ir::GraphRef, std::string>> functions_;
  std::string text_;
};

}  // namespace rlx::cli
