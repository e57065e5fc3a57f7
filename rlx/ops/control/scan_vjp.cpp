// Reverse mode of loops.
//
// The forward loop runs once more in the text but not in time: it is emitted with the values the gradient
// needs as further outputs and takes the place of the original. Then one reverse sweep carries the cotangents
// of the carries and the sums of the gradients of the constants, and stacks the gradients of the sequences.
//
// With K checkpoints the steps are cut into segments of S = ceil(L / K), the last one with what is left. The
// forward loop keeps the carries at the start of each full segment; the sweep runs a segment forward again
// and then backward. Cotangents and sums pass from segment to segment as they do from step to step, so that
// every addition happens in the order of the plain form and the gradients are the same bits.
//
// The sweep over a gated loop is gated by the sequence of the flags that the forward loop met, so that it
// skips the same steps; segments are gated likewise, by the flag at their start or by whether any of their
// steps has one.
#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/scan_parts.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

// Most bytes that a gated loop keeps for its gradient before it is cut into segments.
constexpr double kGatedBytes = 32 << 20;

// What the sweep carries: cotangents of the carries, sums of the gradients of the constants.
struct Swept {
  Exprs dcarries, sums;
  Exprs all() const { return join_lists<Expr>({dcarries, sums}); }
};

// A stretch of steps, forward: results as those of the loop, and what the sweep over it needs.
struct Stretch {
  Exprs results, residuals, carried;
};

class Reverse {
 public:
  Reverse(const Vjp& c, const Scan::Attrs& a)
      : c_(c), a_(a), in_(scan_operands(c, a)), n_(in_.carries.size()), total_(size_t(c.count())) {
    const Shapes outputs = output_shapes(*a.body);
    leaves_ = leaf_shapes(*a.body);
    results_ = outputs.size();
    wanted_.resize(total_);
    seeded_.resize(results_);
    for (size_t i = 0; i < total_; ++i)
      wanted_[i] = is_differentiable(leaves_[i].dtype()) && (i < n_ || c.wants(int(i)));
    for (size_t i = 0; i < results_; ++i)
      seeded_[i] = is_differentiable(outputs[i].dtype()) && (i < n_ || c.has_dy(int(i)));
    split_ = c.bodies.split_vjp(*a.body, wanted_, seeded_, a.save == ScanSave::carries);
    const auto back_leaves = split_.backward->leaves();
    for (size_t i = 0; i < n_; ++i) {
      const bool is_flag = i == 0 && a.gate == ScanGate::carry;
      if (is_flag || split_.backward->use_count(back_leaves[i]) > 0) kept_.push_back(i);
    }
    forward_ = make_body(a.body->name(), leaves_, [&](Graph& g, const Exprs& x) {
      Exprs out = inline_graph(g, *split_.forward, x);
      for (const size_t i : kept_) out.push_back(x[i]);
      return out;
    });
    checkpoints_ = a.checkpoints > 0 ? a.checkpoints : gated_checkpoints();
  }

  Exprs run() {
    Swept swept;
    Exprs dys;
    for (size_t i = 0; i < results_; ++i) {
      if (seeded_[i]) (i < n_ ? swept.dcarries : dys).push_back(c_.dy(int(i)));
    }
    for (size_t i = n_; i < n_ + in_.consts.size(); ++i) {
      if (wanted_[i]) swept.sums.push_back(zeros_like(c_.in(int(i))));
    }
    if (checkpoints_ > 0) return run_segments(swept, dys);
    const Stretch made = forward(c_.graph, in_, a_.length);
    c_.replacements = made.results;
    return gradients(sweep(c_.graph, swept, in_.consts, in_.xs, made, dys, a_.length));
  }

 private:
  // Forward over `length` steps, with residuals.
  Stretch forward(Graph& g, const ScanOperands& in, Dim length) const {
    const Exprs made = emit_scan(g, in, plain(forward_, length, a_.reverse));
    return {take(made, 0, results_), take(made, results_, split_.residuals.size()),
            take(made, results_ + split_.residuals.size(), kept_.size())};
  }

  // Backward over the same steps; the carries of the sweep, then gradients of the sequences.
  Exprs sweep(Graph& g, const Swept& swept, const Exprs& consts, const Exprs& xs, const Stretch& made,
              const Exprs& dys, Dim length) const {
    const Exprs flags = gate_of(made.carried, xs);
    const Exprs steps = join_lists<Expr>({flags, made.carried, xs, made.residuals, dys});
    const Shapes inputs = join_lists<Shape>({shapes_of(swept.all()), shapes_of(consts), slices_of(steps)});
    const GraphRef body = make_body(a_.body->name() + "_backward", inputs, [&](Graph& b, const Exprs& x) {
      size_t at = 0;
      const auto next = [&](size_t count) { return at += count, take(x, at - count, count); };
      const Exprs d = next(swept.dcarries.size()), sum = next(swept.sums.size()), q = next(consts.size()),
                  flag = next(flags.size()), carry = next(kept_.size()), slices = next(xs.size()),
                  residual = next(made.residuals.size()), dy = next(dys.size());
      // A carry that nobody reads is bound to anything of its type.
      Exprs carries;
      for (size_t i = 0, k = 0; i < n_; ++i) {
        const bool is_kept = k < kept_.size() && kept_[k] == i;
        carries.push_back(is_kept ? carry[k++] : full(b, leaves_[i], 0));
      }
      const Exprs grads =
          inline_graph(b, *split_.backward, join_lists<Expr>({carries, q, slices, residual, d, dy}));
      Exprs out;
      size_t grad = 0, s = 0;
      for (size_t i = 0; i < total_; ++i) {
        if (!wanted_[i]) continue;
        const bool is_const = i >= n_ && i < n_ + in_.consts.size();
        out.push_back(is_const ? sum[s++] + grads[grad] : grads[grad]);
        ++grad;
      }
      return out;
    });
    Scan::Attrs attrs = plain(body, length, !a_.reverse);
    attrs.gate = flags.empty() ? ScanGate::none : ScanGate::sequence;
    return emit_scan(g, {swept.all(), consts, steps}, attrs);
  }

  // The flags of a gated loop, one per step.
  Exprs gate_of(const Exprs& carried, const Exprs& xs) const {
    if (a_.gate == ScanGate::none) return {};
    return {a_.gate == ScanGate::carry ? carried[0] : xs[0]};
  }

  // A gated loop may be far longer than what it runs. What it keeps per step is bounded: beyond that the loop
  // is cut into about sqrt(length) segments, of which those that do not run cost nothing.
  int64_t gated_checkpoints() const {
    if (a_.gate == ScanGate::none || !a_.length.is_static()) return 0;
    double bytes = 0;
    for (const Value v : forward_->outputs()) {
      const Shape& s = forward_->shape(v);
      bytes += s.is_static() ? double(s.size_bytes()) : 1;
    }
    const int64_t length = a_.length.value();
    return double(length) * bytes > kGatedBytes ? int64_t(std::ceil(std::sqrt(double(length)))) : 0;
  }

  Exprs run_segments(Swept swept, const Exprs& dys) const {
    Graph& g = c_.graph;
    const int64_t length = a_.length.value(), steps = (length + checkpoints_ - 1) / checkpoints_,
                  segments = length / steps, whole = segments * steps, rest = length - whole;
    // In time the short segment comes last: behind the others, or before them when the loop runs backwards.
    const auto cut = [&](const Exprs& all, bool last) {
      Exprs out;
      const int64_t from = last ? (a_.reverse ? 0 : whole) : (a_.reverse ? rest : 0);
      for (const Expr& x : all) {
        out.push_back(make<Narrow>(g, {0, Dim(from), Dim(last ? rest : whole)}, {x}));
        if (last) continue;
        Dims dims = x.shape().dims();
        dims[0] = segments;
        dims.insert(dims.begin() + 1, Dim(steps));
        out.back() = reshape(out.back(), dims);
      }
      return out;
    };
    const auto joined = [&](Expr segmented, Expr last) {
      Dims dims = segmented.shape().dims();
      dims.erase(dims.begin());
      dims[0] = whole;
      const Expr flat = reshape(segmented, dims);
      if (rest == 0) return flat;
      return a_.reverse ? concat({last, flat}, 0) : concat({flat, last}, 0);
    };

    const Exprs xs = cut(in_.xs, false), segment_dys = cut(dys, false);
    const size_t consts = in_.consts.size(), ys = results_ - n_;
    const Exprs any_flag = a_.gate == ScanGate::sequence ? Exprs{any(xs[0], {1})} : Exprs{};
    const Exprs outer_xs = join_lists<Expr>({any_flag, xs});
    const Shapes inputs =
        join_lists<Shape>({shapes_of(in_.carries), shapes_of(in_.consts), slices_of(outer_xs)});
    const GraphRef outer = make_body(a_.body->name() + "_segment", inputs, [&](Graph& b, const Exprs& x) {
      const ScanOperands in{take(x, 0, n_), take(x, n_, consts),
                            take(x, n_ + consts + any_flag.size(), xs.size())};
      return join_lists<Expr>({emit_scan(b, in, plain(a_.body, steps, a_.reverse)), in.carries});
    });
    const Exprs made =
        emit_scan(g, {in_.carries, in_.consts, outer_xs}, by_segment(outer, segments, a_.reverse, a_.gate));
    const Exprs starts = take(made, results_, n_);
    Exprs results = take(made, 0, n_), tail_grads;
    const Exprs tail_xs = rest > 0 ? cut(in_.xs, true) : Exprs{};
    Stretch tail;
    if (rest > 0) {
      tail = forward(g, {results, in_.consts, tail_xs}, rest);
      results = take(tail.results, 0, n_);
      tail_grads = sweep(g, swept, in_.consts, tail_xs, tail, cut(dys, true), rest);
      swept = {take(tail_grads, 0, swept.dcarries.size()),
               take(tail_grads, swept.dcarries.size(), swept.sums.size())};
    }
    for (size_t i = 0; i < ys; ++i)
      results.push_back(joined(made[n_ + i], rest > 0 ? tail.results[n_ + i] : Expr{}));
    c_.replacements = results;

    const Exprs flags = a_.gate == ScanGate::carry ? Exprs{starts[0]} : any_flag;
    const Exprs per_segment = join_lists<Expr>({flags, starts, xs, segment_dys});
    const Shapes back_inputs =
        join_lists<Shape>({shapes_of(swept.all()), shapes_of(in_.consts), slices_of(per_segment)});
    const GraphRef back =
        make_body(a_.body->name() + "_segment_backward", back_inputs, [&](Graph& b, const Exprs& x) {
          size_t at = 0;
          const auto next = [&](size_t count) { return at += count, take(x, at - count, count); };
          const Swept state{next(swept.dcarries.size()), next(swept.sums.size())};
          const Exprs q = next(consts), flag = next(flags.size()), carries = next(n_),
                      slices = next(xs.size()), dy = next(dys.size());
          return sweep(b, state, q, slices, forward(b, {carries, q, slices}, steps), dy, steps);
        });
    Exprs grads = emit_scan(
        g, {swept.all(), in_.consts, per_segment},
        by_segment(back, segments, !a_.reverse, flags.empty() ? ScanGate::none : ScanGate::sequence));
    for (size_t i = swept.all().size(); i < grads.size(); ++i)
      grads[i] = joined(grads[i], rest > 0 ? tail_grads[i] : Expr{});
    return gradients(grads);
  }

  Scan::Attrs plain(GraphRef body, Dim length, bool reverse) const {
    return {.body = std::move(body), .length = length, .reverse = reverse, .save = a_.save, .gate = a_.gate};
  }

  // Loops over segments: their own derivatives keep the carries and run the segments again.
  static Scan::Attrs by_segment(GraphRef body, Dim segments, bool reverse, ScanGate gate) {
    return {.body = std::move(body),
            .length = segments,
            .reverse = reverse,
            .save = ScanSave::carries,
            .gate = gate};
  }

  // One gradient per operand.
  Exprs gradients(const Exprs& swept) const {
    Exprs out(total_);
    for (size_t i = 0, r = 0; i < total_; ++i) {
      if (wanted_[i]) out[i] = swept[r++];
    }
    return out;
  }

  const Vjp& c_;
  const Scan::Attrs& a_;
  const ScanOperands in_;
  const size_t n_, total_;
  int64_t checkpoints_ = 0;
  size_t results_ = 0;
  Shapes leaves_;
  std::vector<bool> wanted_, seeded_;
  BodyTransforms::Split split_;
  std::vector<size_t> kept_;  // carries that the backward body reads
  GraphRef forward_;          // carries', ys, residuals, and the incoming carries that are kept
};

}  // namespace

Exprs Scan::vjp(const Vjp& c, const Attrs& a) { return Reverse(c, a).run(); }

}  // namespace rlx::ops
