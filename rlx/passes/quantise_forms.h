// How rounded values are written: recognising codes behind floats and floats behind codes.
#pragma once

#include <optional>

#include "rlx/ir/graph.h"
#include "rlx/ir/inline.h"

namespace rlx::passes {

/// A float made of codes: (codes - zero) * scale. Scale is absent for 1; one number, or one per position of an
/// axis, with the rank of the codes or less.
struct Dequantised {
  ir::Value codes;  // u8 or i8
  int64_t zero = 0;
  std::optional<ir::Value> scale;
};
std::optional<Dequantised> dequantised(ir::Graph&, ir::Value);

/// Codes made of a float: round(x / scale) + zero, clamped to [least, most].
struct Quantised {
  ir::Value x;
  double scale = 1;
  int64_t zero = 0;
  double least = 0, most = 0;
  DType dtype = DType::u8;
  bool whole_range() const;
};
std::optional<Quantised> quantised(const ir::Graph&, const ir::Node&, const ir::Values& operands);

/// Whether the value depends on weights and constants alone.
bool is_fixed(const ir::Graph&, ir::Value);

}  // namespace rlx::passes
