// Records of operators by names that are known when a source is compiled: `record<"matmul">()`. What sources written by `rlx build` say,
// so that they need no header of the operators and link the records they name, no others.
#pragma once

#include <cstddef>
#include <string_view>

#include "rlx/ir/op_def.h"

namespace rlx::ops {

/// The name of an operator as an argument of templates.
template <size_t N>
struct OpName {
  char text[N]{};
  constexpr OpName(const char (&name)[N]) : OpName(std::string_view(name, N - 1)) {}  // NOLINT: a text is one
  explicit constexpr OpName(std::string_view name) {
    for (size_t i = 0; i < name.size(); ++i) text[i] = name[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

/// A name that is none of an operator is an error of the linker.
template <OpName Name>
const ir::OpDef& record();

}  // namespace rlx::ops
