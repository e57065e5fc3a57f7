// Reductions over any axes.
#include "rlx/ops/reduce/reduce.h"

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/kernels/reduce.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/variance.h"

namespace rlx::cpu {
namespace {

constexpr Reduction kKinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                Reduction::prod};

// `mean` is any kind that divides or takes logarithms.
Support accepts_kind(const Request& r, bool extreme, bool mean) {
  const DType t = r.in[0].dtype();
  const bool bytes = extreme && (t == DType::u8 || t == DType::bool_);
  if (t != DType::f32 && t != DType::f64 && t != DType::i32 && t != DType::i64 && !bytes)
    return Support::no("no such reduction of ", t);
  if (mean && !is_float(t)) return Support::no("no mean of ", t);
  if (r.in[0].shape.rank() > Reduce::kMaxRank) return Support::no("more than ", Reduce::kMaxRank, " axes");
  return Support::yes();
}

Reduce describe(const Request& r, Reduction kind, const std::vector<int>& axes) {
  const Arg& x = r.in[0];
  Reduce p{.kind = kind, .dtype = x.dtype(), .rank = x.shape.rank()};
  p.alone = backend::batch_independent(r);
  for (int i = 0; i < p.rank; ++i) {
    p.size[i] = x.shape.dim(i).value();
    p.stride[i] = x.layout.strides[size_t(i)];
  }
  for (const int axis : axes) p.reduced[axis] = true;
  return p;
}

std::unique_ptr<Step> prepare_step(const Reduce& p, int threads) {
  return make_step(
      [p](const Launch& l) {
        Reduce now = p;
        now.x = l.in[0];
        now.y = l.out[0];
        reduce(l.team, now, l.workspace);
      },
      reduce_workspace(p, threads));
}

Support accepts(const Request& r) {
  const ops::ReduceOp kind = r.node.as<ops::Reduce>().kind;
  return accepts_kind(r, kind == ops::ReduceOp::max || kind == ops::ReduceOp::min,
                      kind == ops::ReduceOp::mean);
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Reduce>();
  return prepare_step(describe(r, kKinds[size_t(a.kind)], a.axes), r.threads);
}

// Sums and means of complex numbers: those of pairs, along whose axis nothing is reduced.
Support accepts_complex(const Request& r) {
  const ops::ReduceOp kind = r.node.as<ops::Reduce>().kind;
  if (r.in[0].dtype() != DType::c64) return Support::no("x is ", r.in[0].dtype());
  if (kind != ops::ReduceOp::sum && kind != ops::ReduceOp::mean)
    return Support::no("neither a sum nor a mean");
  if (r.in[0].shape.rank() >= Reduce::kMaxRank)
    return Support::no("more than ", Reduce::kMaxRank - 1, " axes");
  return Support::yes();
}

std::unique_ptr<Step> prepare_complex(const Request& r) {
  const auto& a = r.node.as<ops::Reduce>();
  Reduce p = describe(r, kKinds[size_t(a.kind)], a.axes);
  p.dtype = DType::f32;
  for (int i = 0; i < p.rank; ++i) p.stride[i] *= 2;
  p.size[p.rank] = 2;
  p.stride[p.rank++] = 1;
  return prepare_step(p, r.threads);
}

Support accepts_conditions(const Request& r) { return accepts_kind(r, true, false); }

template <class Op, Reduction Kind>
std::unique_ptr<Step> prepare_conditions(const Request& r) {
  return prepare_step(describe(r, Kind, r.node.as<Op>().axes), r.threads);
}

Support accepts_float(const Request& r) { return accepts_kind(r, false, true); }

std::unique_ptr<Step> prepare_logsumexp(const Request& r) {
  return prepare_step(describe(r, Reduction::log_sum_exp, r.node.as<ops::Logsumexp>().axes), r.threads);
}

std::unique_ptr<Step> prepare_variance(const Request& r) {
  const auto& a = r.node.as<ops::Variance>();
  Reduce p = describe(r, Reduction::variance, a.axes);
  p.correction = a.correction;
  return prepare_step(p, r.threads);
}

}  // namespace

void add_reduce(KernelTable& table) {
  table.add<ops::Reduce>({"reduce_strided", accepts, prepare});
  table.add<ops::Reduce>(wide_kernel<accepts, prepare>("reduce_wide"));
  table.add<ops::Reduce>({"reduce_pairs_c64", accepts_complex, prepare_complex});
  table.add<ops::AnyOf>({"any_strided", accepts_conditions, prepare_conditions<ops::AnyOf, Reduction::max>});
  table.add<ops::AllOf>({"all_strided", accepts_conditions, prepare_conditions<ops::AllOf, Reduction::min>});
  table.add<ops::Logsumexp>({"logsumexp_strided", accepts_float, prepare_logsumexp});
  table.add<ops::Variance>({"variance_strided", accepts_float, prepare_variance});
}

}  // namespace rlx::cpu
