// The message with which an operator refuses operands of given types.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/build_def.h"
#include "tests/support/errors.h"

namespace rlx::test {

template <class Op>
std::string refusal(typename Op::Attrs attrs, const std::vector<std::string>& types) {
  return message_of([&] {
    ir::Graph g;
    ir::Values in;
    for (const auto& t : types) in.push_back(g.input(cat("x", in.size()), parse_shape(t)));
    ir::make<Op>(g, std::move(attrs), in);
  });
}

}  // namespace rlx::test
