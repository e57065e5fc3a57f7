// Pieces of loops that the rules of scan share.
#pragma once

#include <optional>

#include "rlx/ops/control/body.h"
#include "rlx/ops/control/scan.h"

namespace rlx::ops {

/// The type of one slice of a sequence, and of `length` of them.
inline Shape slice_of(const Shape& s) { return s.with_dims(Dims(s.dims().begin() + 1, s.dims().end())); }

inline Shape stacked(const Shape& s, Dim length) {
  Dims dims = s.dims();
  dims.insert(dims.begin(), length);
  return s.with_dims(std::move(dims));
}

inline Shapes slices_of(const Exprs& tensors) {
  Shapes out;
  for (const Expr& t : tensors) out.push_back(slice_of(t.shape()));
  return out;
}

struct ScanOperands {
  Exprs carries, consts, xs;
};

/// The operands of a rule's scan, as lists.
template <class Context>
ScanOperands scan_operands(const Context& c, const Scan::Attrs& a) {
  ScanOperands out;
  for (int i = 0; i < c.count(); ++i)
    (i < a.carries ? out.carries : i < a.carries + a.consts ? out.consts : out.xs).push_back(c.in(i));
  return out;
}

/// Which leaf of the body, and operand of the loop, is the flag of a gated scan.
inline std::optional<size_t> gate_leaf(const Scan::Attrs& a) {
  if (a.gate == ScanGate::none) return std::nullopt;
  return a.gate == ScanGate::carry ? 0 : size_t(a.carries + a.consts);
}

/// Attributes of `a` around another body.
inline Scan::Attrs like(Scan::Attrs a, GraphRef body) {
  a.body = std::move(body);
  return a;
}

/// Appends a scan; the numbers of carries and constants are those of the operands.
inline Exprs emit_scan(Graph& g, const ScanOperands& in, Scan::Attrs a) {
  a.carries = int(in.carries.size());
  a.consts = int(in.consts.size());
  const Exprs operands = join_lists<Expr>({in.carries, in.consts, in.xs});
  return make_all<Scan>(g, std::move(a), Values(operands.begin(), operands.end()));
}

}  // namespace rlx::ops
