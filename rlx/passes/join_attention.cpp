#include "rlx/passes/join_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "rlx/ir/bodies.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/passes/ask.h"
#include "rlx/passes/canonicalise.h"
#include "rlx/passes/edit.h"
#include "rlx/passes/known_number.h"

namespace rlx::passes {
namespace {

using ir::Expr;

// Beside such a number no score changes the sum, so that replacing a score and adding to it are the same.
constexpr double kHides = -1e30;

Dims leading(const Shape& s) { return Dims(s.dims().begin(), s.dims().end() - 2); }

bool same_matrix(const Shape& a, const Shape& b) {
  return a.rank() >= 2 && b.rank() >= 2 && a.dim(-1) == b.dim(-1) && a.dim(-2) == b.dim(-2);
}

bool read_once(const ir::Node& n) { return n.shapes.size() == 1 && n.uses.size() == 1; }

/// One number that is a factor of everything else in x: x = number * rest.
struct Scaled {
  ir::Value rest;
  double number;
};
std::optional<Scaled> scaled(const ir::Graph& g, ir::Value x) {
  const ir::Node& n = g.node(x);
  if (!n.is<ops::Mul>() && !n.is<ops::Div>()) return std::nullopt;
  for (size_t side = 0; side < (n.is<ops::Mul>() ? 2u : 1u); ++side) {
    const auto number = known_number(g, n.inputs[1 - side]);
    if (!number || g.shape(n.inputs[side]) != n.shapes[0]) continue;
    return Scaled{n.inputs[side], n.is<ops::Mul>() ? *number : 1 / *number};
  }
  return std::nullopt;
}

/// What is added to the scores: a value, or `blocked` where cond says so and 0 elsewhere.
struct Addend {
  ir::Value value;  // or the condition
  bool is_condition = false, blocked_if = false;
  double blocked = 0;
};

/// What stands before a softmax.
struct Scores {
  ir::Value q, keys;  // keys as the product has them, turned
  Dims lead;          // the axes before queries and keys, where addends meet the scores
  double scale = 1;
  std::optional<double> cap;
  std::vector<Addend> addends;
};

class Reader {
 public:
  explicit Reader(const ir::Graph& g) : g_(g) {}

  // From the softmax backwards to the product; says why not.
  std::string read(ir::Value v, Scores& s) const {
    const ir::Node& n = g_.node(v);
    if (!read_once(n)) return "somebody else reads the scores";
    if (n.is<ops::Matmul>()) return product(n, s);
    if (n.is<ops::Reshape>())
      return same_matrix(n.shapes[0], g_.shape(n.inputs[0])) ? read(n.inputs[0], s) : "a reshape mixes keys";
    if (n.is<ops::Tanh>()) {
      if (s.cap || !(s.scale > 0) || !std::isfinite(s.scale)) return "tanh without a factor behind it";
      s.cap = s.scale;
      return read(n.inputs[0], s);
    }
    if (const auto x = scaled(g_, v)) {
      s.scale *= x->number;
      return read(x->rest, s);
    }
    if (s.scale == 1 && !s.cap) {
      if (n.is<ops::Add>()) return sum(n, s);
      if (n.is<ops::Where>()) return choice(n, s);
    }
    return cat(n.op->name, " between a product and its softmax");
  }

 private:
  std::string product(const ir::Node& n, Scores& s) const {
    const Shape &q = g_.shape(n.inputs[0]), &k = g_.shape(n.inputs[1]);
    if (q.rank() < 2 || k.rank() < 2 || leading(q) != leading(k))
      return "queries and keys are not in equal batches";
    s.q = n.inputs[0], s.keys = n.inputs[1];
    if (s.addends.empty()) s.lead = leading(n.shapes[0]);
    return {};
  }

  // Addends have to meet the scores under the same axes.
  bool add(const Addend& a, const Shape& at, Scores& s) const {
    if (!s.addends.empty() && s.lead != leading(at)) return false;
    s.lead = leading(at);
    s.addends.push_back(a);
    return true;
  }

  std::string sum(const ir::Node& n, Scores& s) const {
    std::string why = "nothing that is added has the shape of the scores";
    for (size_t side = 0; side < 2; ++side) {
      if (g_.shape(n.inputs[side]) != n.shapes[0]) continue;
      Scores tried = s;
      if (!add({.value = n.inputs[1 - side]}, n.shapes[0], tried)) return "biases of different axes";
      why = read(n.inputs[side], tried);
      if (!why.empty()) continue;
      s = std::move(tried);
      return {};
    }
    return why;
  }

  std::string choice(const ir::Node& n, Scores& s) const {
    for (const size_t side : {1, 2}) {
      const auto number = known_number(g_, n.inputs[3 - side]);
      if (!number || g_.shape(n.inputs[side]) != n.shapes[0]) continue;
      if (!(*number <= kHides))
        return cat("blocked scores are ", *number, ", which is seen where all are blocked");
      const Addend a{.value = n.inputs[0], .is_condition = true, .blocked_if = side == 2, .blocked = *number};
      return add(a, n.shapes[0], s) ? read(n.inputs[side], s) : "biases of different axes";
    }
    return "where without one number";
  }

  const ir::Graph& g_;
};

/// Leading axes as batch and heads: the last is the heads, the others are the batch.
struct BatchAndHeads {
  Dim batch = 1, heads = 1;
};
BatchAndHeads batch_and_heads(const Dims& lead) {
  if (lead.size() < 2) return {.batch = lead.empty() ? Dim(1) : lead[0]};
  BatchAndHeads out{.heads = lead.back()};
  for (size_t i = 0; i + 1 < lead.size(); ++i) out.batch = out.batch * lead[i];
  return out;
}

class Rule {
 public:
  Rule(const ir::Target& target, std::vector<Remark>* remarks) : target_(target), remarks_(remarks) {}

  std::optional<ir::Values> operator()(ir::Graph& g, const ir::Node& n) const {
    if (!n.is<ops::Matmul>()) return std::nullopt;
    const ir::Node* p = &g.node(n.inputs[0]);
    while (p->is<ops::Reshape>() && read_once(*p) && same_matrix(p->shapes[0], g.shape(p->inputs[0])))
      p = &g.node(p->inputs[0]);
    if (!p->is<ops::Softmax>()) return std::nullopt;
    const std::string name = remarks_ ? label_for_remark(g, *p) : "";
    auto made = joined(g, n, *p);
    const auto* y = std::get_if<ir::Value>(&made);
    if (remarks_) {
      remarks_->push_back({name,
                           y ? "with the products on both sides: attention"
                             : cat("not attention: ", std::get<std::string>(made)),
                           y != nullptr});
    }
    return y ? std::optional(ir::Values{*y}) : std::nullopt;
  }

 private:
  using Made = std::variant<ir::Value, std::string>;

  Made joined(ir::Graph& g, const ir::Node& n, const ir::Node& p) const {
    const Shape &weights = g.shape(n.inputs[0]), &values = g.shape(n.inputs[1]);
    if (!read_once(p) || !read_once(g.node(n.inputs[0]))) return "somebody else reads the softmax";
    if (p.as<ops::Softmax>().axis != p.shapes[0].rank() - 1) return "softmax is not over the last axis";
    if (const DType t = p.shapes[0].dtype(); t != DType::f32 && t != DType::f64)
      return cat("what lies between is rounded to ", t);
    if (values.rank() != weights.rank() || leading(values) != leading(weights))
      return "values are not in equal batches";
    Scores s;
    if (std::string why = Reader(g).read(p.inputs[0], s); !why.empty()) return why;
    return attention(g, n, s, p.shapes[0]);
  }

  Made attention(ir::Graph& g, const ir::Node& n, Scores s, const Shape& scores) const {
    const auto [batch, heads] = batch_and_heads(s.lead);
    const Dim queries = scores.dim(-2), keys = scores.dim(-1);
    const Dim lanes = g.shape(s.q).dim(-1), value_lanes = n.shapes[0].dim(-1);
    for (const Dim d : {batch, heads, queries, keys, lanes, value_lanes}) {
      if (!d.is_static() || d.value() == 0) return "sizes that are not known or 0";
    }
    const ir::OriginScope scope(g, ir::noted_origin(n, "joined attention"));
    Expr q{&g, s.q}, k{&g, s.keys};
    // Where the heads go back to their lanes, attention writes them there.
    const bool back = to_lanes(g, n) && s.lead.size() == 2;
    ops::AttentionAttrs a;
    a.num_heads = heads.value();
    a.attn_logit_softcap = s.cap;
    a.layout = back ? ops::HeadLayout::bshd : ops::HeadLayout::bhsd;
    const Dims bias{batch, heads, queries, keys};
    if (const std::string why = refused(g, s, bias, a, {lanes, value_lanes}, q.dtype()); !why.empty())
      return why;
    while (const auto x = scaled(g, q)) q.value = x->rest, s.scale *= x->number;
    k = turned_keys(k, s.scale);
    a.score_scale = s.scale;
    const auto laid = [&](Expr x, Dim rows, Dim columns) {
      x = ops::reshape(x, {batch, heads, rows, columns});
      return back ? turned(x, {0, 2, 1, 3}) : x;
    };
    const Expr rows = laid(q, queries, lanes), columns = laid(k, keys, lanes),
               read = laid({&g, n.inputs[1]}, keys, value_lanes);
    Expr total;
    for (const Addend& addend : s.addends) {
      const Expr x =
          ops::reshape(added(g, addend, q.dtype()), *repeated(g.shape(addend.value), s.lead, bias));
      total = total ? ops::add(total, x) : x;
    }
    if (may_block_all(g, s)) total = nan_where_all_blocked(total);
    Expr y = ops::attention_with(rows, columns, read, {}, total, a).output;
    if (back) y = ops::transpose(y, {0, 2, 1, 3});
    return ops::reshape(y, n.shapes[0].dims()).value;
  }

  // Keys as rows. A factor may stand behind the turn or in front of it.
  static Expr turned_keys(Expr k, double& scale) {
    const ir::Graph& g = *k.graph;
    while (const auto x = scaled(g, k)) k.value = x->rest, scale *= x->number;
    std::vector<int> swap(size_t(k.rank()));
    std::iota(swap.begin(), swap.end(), 0);
    std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
    const ir::Node& n = g.node(k);
    if (!n.is<ops::Transpose>()) return turned(k, swap);
    Expr rest{k.graph, n.inputs[0]};
    while (const auto x = scaled(g, rest)) rest.value = x->rest, scale *= x->number;
    if (rest.value != n.inputs[0]) k = ops::transpose(rest, n.as<ops::Transpose>().perm);
    return turned(k, swap);
  }

  static bool to_lanes(const ir::Graph& g, const ir::Node& n) {
    return n.shapes[0].rank() == 4 && !n.uses.empty() &&
           std::all_of(n.uses.begin(), n.uses.end(), [&](const ir::Use& u) {
             if (u.user == ir::kNoNode) return false;
             const ir::Node& user = g.node(u.user);
             return user.is<ops::Transpose>() &&
                    user.as<ops::Transpose>().perm == std::vector<int>{0, 2, 1, 3};
           });
  }

  // The extents of an addend as [batch, heads, queries, keys], 1 where it is repeated; nothing where it is repeated along
  // a part of what becomes the batch, or along the keys.
  static std::optional<Dims> repeated(const Shape& x, const Dims& lead, const Dims& bias) {
    Dims dims(lead.size() + 2, Dim(1));
    if (size_t(x.rank()) > dims.size()) return std::nullopt;
    std::copy(x.dims().begin(), x.dims().end(), dims.end() - x.rank());
    if (dims.back() != bias[3]) return std::nullopt;
    const bool one = lead.size() < 2;  // no axis of heads
    Dims out{1, one ? Dim(1) : dims[lead.size() - 1], dims[lead.size()], bias[3]};
    const size_t of_batch = one ? lead.size() : lead.size() - 1;
    if (std::equal(lead.begin(), lead.begin() + ptrdiff_t(of_batch), dims.begin())) {
      out[0] = bias[0];
    } else if (!std::all_of(dims.begin(), dims.begin() + ptrdiff_t(of_batch),
                            [](Dim d) { return d == Dim(1); })) {
      return std::nullopt;
    }
    return out;
  }

  static Expr added(ir::Graph& g, const Addend& a, DType t) {
    const Expr x{&g, a.value};
    if (!a.is_condition) return x;
    const Expr zero = ir::full(g, Shape(t, {}), 0), blocked = ir::full(g, Shape(t, {}), a.blocked);
    return a.blocked_if ? ops::where(x, blocked, zero) : ops::where(x, zero, blocked);
  }

  // Asked on a graph of its own, so that a no leaves nothing behind.
  std::string refused(const ir::Graph& g, const Scores& s, const Dims& bias, const ops::AttentionAttrs& a,
                      std::pair<Dim, Dim> lanes, DType t) const {
    ir::Graph probe;
    const auto heads = [&](const char* name, Dim rows, Dim columns) {
      const Dims dims = a.layout == ops::HeadLayout::bhsd ? Dims{bias[0], bias[1], rows, columns}
                                                          : Dims{bias[0], rows, bias[1], columns};
      return Expr{&probe, probe.input(name, Shape(t, dims))};
    };
    const Expr q = heads("q", bias[2], lanes.first), k = heads("k", bias[3], lanes.first),
               v = heads("v", bias[3], lanes.second);
    Expr total;
    for (const Addend& addend : s.addends) {
      const Shape& x = g.shape(addend.value);
      const auto dims = repeated(x, s.lead, bias);
      if (!dims) return cat("a bias of ", x, " for scores of ", Shape(t, bias));
      if (!addend.is_condition && x.dtype() != t) return cat("a bias of ", x, " for queries of ", t);
      const Expr one = ir::full(probe, Shape(t, *dims), 0);
      total = total ? ops::add(total, one) : one;
    }
    const ops::AttentionResult r = ops::attention_with(q, k, v, {}, total, a);
    const ir::Support support = runs(target_, probe, probe.node(r.output.value));
    return support ? "" : support.reason();
  }

  static Expr nan_where_all_blocked(Expr bias) {
    const Expr top = ops::reduce_max(bias, {3}, true),
               none = ops::equal(top, ops::scalar_like(top, -INFINITY));
    return ops::where(none, ops::scalar_like(bias, NAN), bias);
  }

  // Whether some row may allow no key. Of several addends each may allow what another one blocks.
  static bool may_block_all(const ir::Graph& g, const Scores& s) {
    const auto blocking = std::count_if(s.addends.begin(), s.addends.end(), [&](const Addend& a) {
      return !(a.is_condition && std::isfinite(a.blocked)) && !finite(g, a, false);
    });
    if (blocking == 0) return false;
    return blocking > 1 || !std::any_of(s.addends.begin(), s.addends.end(), [&](const Addend& a) {
             return finite(g, a, true) && !finite(g, a, false);
           });
  }

  // Whether an addend that is known leaves all scores finite, or one in each row.
  static bool finite(const ir::Graph& g, const Addend& a, bool one_in_each_row) {
    const ir::Node& n = g.node(a.value);
    if (!n.is<ir::Constant>() || n.shapes[0].rank() == 0) return false;
    const Literal& l = n.as<ir::Constant>().value;
    const int64_t keys = n.shapes[0].dim(-1).value();
    for (int64_t row = 0; row < l.elements(); row += keys) {
      int64_t open = 0;
      for (int64_t j = row; j < row + keys; ++j) {
        const double x = l.real_at(j);
        open += a.is_condition ? (x != 0) != a.blocked_if : std::isfinite(x);
      }
      if (open < (one_in_each_row ? 1 : keys)) return false;
    }
    return true;
  }

  const ir::Target& target_;
  std::vector<Remark>* remarks_;
};

bool has_softmax(const ir::Graph& g) {
  return ir::any_node(g, [](const ir::Node& n) { return n.is<ops::Softmax>(); });
}

}  // namespace

ir::Rewritten join_attention(ir::Graph graph, const ir::Target& target, std::vector<Remark>* remarks) {
  if (!has_softmax(graph)) return {std::move(graph), 0};
  return edit(std::move(graph), Rule(target, remarks));
}

}  // namespace rlx::passes
