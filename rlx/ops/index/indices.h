// What operators with index operands have in common.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// What an index out of range means.
enum class IndexMode { error, clamp };
constexpr std::array<std::string_view, 2> choice_names(IndexMode) { return {"error", "clamp"}; }

inline constexpr std::string_view kIndexModeDoc =
    "an index out of range is an error, or is moved to the nearest end (clamp)";

/// The indices as integers. Floats must hold whole numbers; `op` and `operand` name them in the error.
std::vector<int64_t> index_values(const Literal& indices, std::string_view op, std::string_view operand);

/// As index_values, checked against or moved into 0 .. size - 1.
std::vector<int64_t> index_values_below(int64_t size, const Literal& indices, IndexMode mode,
                                        std::string_view op);

/// An extent as an i64 scalar of the graph; a symbolic one gets its value when it is bound.
Expr dim_value(Graph&, Dim);

}  // namespace rlx::ops
