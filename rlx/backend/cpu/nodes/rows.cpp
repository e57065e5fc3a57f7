// Operations on rows: softmax and norms over the last axis, in f32.
#include "rlx/backend/cpu/kernels/rows.h"

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/residual_norm.h"
#include "rlx/ops/reduce/softmax.h"

namespace rlx::cpu {
namespace {

// Rows of x as a matrix whose last axis is contiguous: all axes but the last must be one run.
struct Rows {
  int64_t count = 0, n = 0, stride = 0;
};
std::optional<Rows> rows_of(const Arg& x) {
  const int rank = x.shape.rank();
  if (rank == 0) return std::nullopt;
  Rows r{1, x.shape.dim(-1).value(), 0};
  if (r.n > 1 && x.layout.strides.back() != 1) return std::nullopt;
  for (int i = rank - 2; i >= 0; --i) {
    const int64_t size = x.shape.dim(i).value(), stride = x.layout.strides[size_t(i)];
    if (size == 1) continue;
    if (stride < r.n || stride == 0) return std::nullopt;  // rows that share numbers, or are all the same
    if (r.stride == 0) {
      r.stride = stride;
    } else if (stride != r.stride * r.count) {
      return std::nullopt;
    }
    r.count *= size;
  }
  if (r.stride == 0) r.stride = r.n;
  return r;
}

Support last_axis_rows(const Request& r, int axis) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  if (axis != r.in[0].shape.rank() - 1) return Support::no("axis ", axis, " is not the last");
  if (!rows_of(r.in[0])) return Support::no("the rows of operand 0 are not evenly apart");
  return Support::yes();
}

template <class Op>
Support accepts_softmax(const Request& r) {
  return last_axis_rows(r, r.node.as<Op>().axis);
}

template <class Op, bool Logarithm>
std::unique_ptr<Step> prepare_softmax(const Request& r) {
  const Rows x = *rows_of(r.in[0]);
  Softmax p{.rows = x.count, .n = x.n, .x_stride = x.stride, .y_stride = x.n, .logarithm = Logarithm};
  auto step = make_step([p](const Launch& l) {
    Softmax now = p;
    now.x = f32(l, 0);
    now.y = reinterpret_cast<float*>(l.out[0]);
    softmax(l.team, now);
  });
  step->in_place = {0};
  return step;
}

template <class Op>
Support accepts_norm(const Request& r) {
  if (const Support s = last_axis_rows(r, r.node.as<Op>().axis); !s) return s;
  for (size_t i = 1; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

template <class Op, NormKind Kind>
std::unique_ptr<Step> prepare_norm(const Request& r) {
  const Rows x = *rows_of(r.in[0]);
  Norm p{.kind = Kind, .rows = x.count, .n = x.n, .epsilon = float(r.node.as<Op>().eps)};
  p.x_stride = x.stride;
  p.y_stride = x.n;
  auto step = make_step([p, count = r.in.size()](const Launch& l) {
    Norm now = p;
    now.x = f32(l, 0);
    if (count > 1) now.gamma = f32(l, 1);
    if (count > 2) now.beta = f32(l, 2);
    now.y = reinterpret_cast<float*>(l.out[0]);
    norm(l.team, now);
  });
  step->in_place = {0};
  return step;
}

// ---- x + residual and its norm ----

/// Which operands and results the kernel reads and writes; -1 for none.
struct SumAndNorm {
  NormKind kind = NormKind::layer;
  double eps = 0;
  int x = 0, residual = 1, gamma = -1, beta = -1, y = 0, sum = -1;
};

struct FoundSum {
  SumAndNorm found;
  std::string refusal;  // empty when it was found
};

template <class Op>
void read_attributes(const ir::Node& norm, NormKind kind, SumAndNorm& s, int& axis) {
  s.kind = kind;
  s.eps = norm.as<Op>().eps;
  axis = norm.as<Op>().axis;
}

// Of a fused body: a sum and its norm, and nothing else.
FoundSum find_sum(const Request& r) {
  const ir::Graph& body = *r.node.as<ops::Fused>().body;
  const ir::Node *add = nullptr, *norm = nullptr;
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf) continue;
    if (n->is<ops::Add>() && add == nullptr) {
      add = n;
    } else if ((n->is<ops::LayerNorm>() || n->is<ops::RmsNorm>()) && norm == nullptr) {
      norm = n;
    } else {
      return {{}, "no sum and its norm alone"};
    }
  }
  if (add == nullptr || norm == nullptr || norm->inputs[0] != add->result())
    return {{}, "no sum and its norm alone"};
  FoundSum out;
  SumAndNorm& s = out.found;
  int axis = 0;
  if (norm->is<ops::LayerNorm>()) {
    read_attributes<ops::LayerNorm>(*norm, NormKind::layer, s, axis);
  } else {
    read_attributes<ops::RmsNorm>(*norm, NormKind::rms, s, axis);
  }
  if (axis != add->shapes[0].rank() - 1) return {{}, cat("axis ", axis, " is not the last")};
  const auto leaves = body.leaves();
  const auto operand = [&](ir::Value v) {
    const auto at = std::find(leaves.begin(), leaves.end(), v.node);
    return at == leaves.end() ? -1 : int(at - leaves.begin());
  };
  for (const ir::Node* n : {add, norm}) {
    for (size_t i = n == norm; i < n->inputs.size(); ++i) {
      if (operand(n->inputs[i]) < 0) return {{}, cat("operand ", i, " of ", n->op->name, " is made inside")};
    }
  }
  s.x = operand(add->inputs[0]);
  s.residual = operand(add->inputs[1]);
  for (const int i : {s.x, s.residual}) {
    if (r.in[size_t(i)].shape != add->shapes[0])
      return {{}, cat("operand ", i, " is ", r.in[size_t(i)].shape, " and is repeated in the sum")};
  }
  if (norm->inputs.size() > 1) s.gamma = operand(norm->inputs[1]);
  if (norm->inputs.size() > 2) s.beta = operand(norm->inputs[2]);
  const auto& results = body.outputs();
  for (size_t i = 0; i < results.size(); ++i) (results[i] == norm->result() ? s.y : s.sum) = int(i);
  return out;
}

// Of an operator with both results: x, residual, gamma, beta -> y, sum.
template <class Op, NormKind Kind>
SumAndNorm sum_of(const Request& r) {
  return {.kind = Kind, .eps = r.node.as<Op>().eps, .gamma = 2, .beta = 3, .sum = 1};
}

template <class Op>
Support accepts_residual(const Request& r) {
  if (r.node.as<Op>().has_bias) return Support::no("a bias in the sum");
  return plain_f32(r);
}

Support accepts_fused_residual(const Request& r) {
  if (const FoundSum s = find_sum(r); !s.refusal.empty()) return Support::no(s.refusal);
  return plain_f32(r);
}

std::unique_ptr<Step> residual_step(const Request& r, const SumAndNorm& s) {
  const Shape& shape = r.in[size_t(s.x)].shape;
  Norm p{.kind = s.kind, .n = shape.dim(-1).value(), .epsilon = float(s.eps)};
  p.rows = p.n == 0 ? 0 : shape.elements() / p.n;
  p.x_stride = p.y_stride = p.n;
  auto step = make_step([p, s](const Launch& l) {
    Norm now = p;
    const auto operand = [&l](int i) { return i < 0 ? nullptr : f32(l, size_t(i)); };
    const auto result = [&l](int i) { return i < 0 ? nullptr : reinterpret_cast<float*>(l.out[i]); };
    now.x = operand(s.x);
    now.residual = operand(s.residual);
    now.gamma = operand(s.gamma);
    now.beta = operand(s.beta);
    now.y = result(s.y);
    now.sum = result(s.sum);
    norm(l.team, now);
  });
  for (const int y : {s.sum, s.y}) {
    for (const int x : {s.x, s.residual}) {
      const bool scales = x == s.gamma || x == s.beta;  // a body may read an operand in both places
      if (y >= 0 && !scales) step->in_place.push_back({x, y});
    }
  }
  return step;
}

template <class Op, NormKind Kind>
void add_residual(KernelTable& table) {
  table.add<Op>({"residual_norm_rows_f32", accepts_residual<Op>,
                 [](const Request& r) { return residual_step(r, sum_of<Op, Kind>(r)); }});
}

}  // namespace

void add_rows(KernelTable& table) {
  add_residual<ops::FusedResidualLn, NormKind::layer>(table);
  add_residual<ops::FusedResidualRmsNorm, NormKind::rms>(table);
  table.add<ops::Fused>({"residual_norm_rows_f32", accepts_fused_residual,
                         [](const Request& r) { return residual_step(r, find_sum(r).found); }});
  table.add<ops::Softmax>(
      {"softmax_rows_f32", accepts_softmax<ops::Softmax>, prepare_softmax<ops::Softmax, false>});
  table.add<ops::LogSoftmax>(
      {"log_softmax_rows_f32", accepts_softmax<ops::LogSoftmax>, prepare_softmax<ops::LogSoftmax, true>});
  table.add<ops::LayerNorm>(
      {"layer_norm_rows_f32", accepts_norm<ops::LayerNorm>, prepare_norm<ops::LayerNorm, NormKind::layer>});
  table.add<ops::RmsNorm>(
      {"rms_norm_rows_f32", accepts_norm<ops::RmsNorm>, prepare_norm<ops::RmsNorm, NormKind::rms>});
}

}  // namespace rlx::cpu
