// Loops over a batch.
//
// A carry carries the batch when it starts so or a step makes it so; what does not depend on the batch stays
// shared, a counter for example. Where each row has its own flag the loop is gated by whether any row is
// live; the others keep their carries, and their outputs are zeros.
#include "rlx/ops/control/live_rows.h"
#include "rlx/ops/control/scan_parts.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

struct BatchedScan {
  std::vector<bool> batched;  // per operand
  BatchedBody body;
  bool own_flags = false;  // rows are skipped one by one
};

// Each round may make further carries batched; the last changes nothing.
BatchedScan batch_scan(const Vmap& c, const Scan::Attrs& a) {
  BatchedScan out;
  for (int i = 0; i < c.count(); ++i) out.batched.push_back(c.batched(i));
  const auto leaves = a.body->leaves();
  for (bool changed = true; changed;) {
    changed = false;
    out.body = batch_body(c, *a.body, out.batched);
    out.own_flags = gate_leaf(a) && out.batched[*gate_leaf(a)];
    for (size_t i = 0; i < size_t(a.carries); ++i) {
      const bool passes = a.body->outputs()[i] == a.body->value(leaves[i]);
      if (out.batched[i] || !(out.body.batched[i] || (out.own_flags && !passes))) continue;
      out.batched[i] = changed = true;
    }
  }
  return out;
}

// One step for the live rows. With the flags in the carries the leaves have whether any is live in front, and
// so have the outputs; with the flags in the sequences that stands in front of the slices and is not read.
GraphRef masked_step(const Scan::Attrs& a, const BatchedScan& scan, const GraphRef& body,
                     const Shapes& inputs) {
  const bool carried = a.gate == ScanGate::carry;
  const size_t n = size_t(a.carries), extra = carried ? 0 : size_t(a.carries + a.consts);
  return make_body(a.body->name() + "_batch", inputs, [&](Graph& g, Exprs x) {
    x.erase(x.begin() + long(extra));
    const Expr live = x[*gate_leaf(a)];
    Exprs out = inline_graph(g, *body, feed_dead_rows(live, x, scan.batched));
    for (size_t i = 0; i < out.size(); ++i) {
      const bool shared = i < n && !scan.batched[i];
      out[i] = shared ? x[i] : choose_rows(live, {out[i]}, {i < n ? x[i] : zeros_like(out[i])})[0];
    }
    return carried ? join_lists<Expr>({{any(out[0], {})}, out}) : out;
  });
}

}  // namespace

Exprs Scan::vmap(const Vmap& c, const Attrs& a) {
  const auto n = size_t(a.carries);
  const BatchedScan scan = batch_scan(c, a);
  ScanOperands in;
  for (int i = 0; i < c.count(); ++i) {
    const bool batched = scan.batched[size_t(i)];
    if (i < a.carries) {
      in.carries.push_back(batched ? lifted(c, i) : c.in(i));
    } else if (i < a.carries + a.consts) {
      in.consts.push_back(c.in(i));
    } else {
      in.xs.push_back(batched ? move_axis(c.in(i), 0, 1) : c.in(i));  // the steps stay in front
    }
  }
  std::vector<bool> wanted = scan.body.batched;
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = i < n ? bool(scan.batched[i]) : wanted[i] || scan.own_flags;
  GraphRef body = with_batched_outputs(scan.body, wanted, c.size);
  const bool carried = scan.own_flags && a.gate == ScanGate::carry;
  if (scan.own_flags) {
    if (carried) {
      in.carries.insert(in.carries.begin(), any(in.carries[0], {}));
    } else {
      in.xs.insert(in.xs.begin(), any(in.xs[0], {1}));
    }
    const Shapes inputs = join_lists<Shape>({shapes_of(in.carries), shapes_of(in.consts), slices_of(in.xs)});
    body = masked_step(a, scan, body, inputs);
  }
  Exprs out = emit_scan(c.graph, in, like(a, body));
  if (carried) out.erase(out.begin());
  for (size_t i = n; i < out.size(); ++i) {
    if (wanted[i]) out[i] = move_axis(out[i], 0, 1);
  }
  return out;
}

}  // namespace rlx::ops
