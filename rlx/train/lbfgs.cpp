// Limited-memory BFGS. x is the vector of all trained tensors, g its gradient.
//
//   step 1:  d = -g (no pairs yet),  t = rate min(1, 1 / sum |g|)
//   later:   y = g - g_before, s = t d of the step before; if y.s > 1e-10, the pair joins the history (the oldest leaves) and
//            h = y.s / y.y; then two loops over the pairs give d = -H g:
//              q = -g;  newest to oldest: a_i = s_i.q / y_i.s_i, q -= a_i y_i;
//              d = h q; oldest to newest: d += s_i (a_i - y_i.d / y_i.s_i);      t = rate
//   x += t d
//
// The history is a table with the newest pair in the last row. Rows that are still empty hold zeros, and 1 for y.s: they
// add nothing.
#include "rlx/base/error.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/train/catalogue.h"
#include "rlx/train/settings.h"

namespace rlx::train {
namespace {

const auto kLbfgs = std::tuple{Member{"history_size", &Lbfgs::history_size}};

Tensor dot(const Tensor& a, const Tensor& b) { return (a * b).sum(); }

Tensor flattened(const std::vector<Trained>& trained, Tensor Trained::* part) {
  Tensors flat;
  for (const Trained& p : trained) flat.push_back((p.*part).reshape({(p.*part).shape().elements()}));
  return flat.size() == 1 ? flat[0] : concat(flat, {.axis = 0});
}

// The rows but the first, then the new one.
Tensor shifted(const Tensor& table, const Tensor& row) {
  const Tensor last = row.unsqueeze(0);
  const int64_t rows = table.dim(0).value();
  return rows == 1 ? last : concat({table.narrow(0, 1, rows - 1), last}, {.axis = 0});
}

struct History {
  Tensor s, y;   // [pairs, n]
  Tensor ys;     // [pairs], y_i.s_i
  Tensor scale;  // h
};

Tensor direction(const History& h, const Tensor& g, int64_t pairs) {
  Tensors a(static_cast<size_t>(pairs));
  Tensor q = -g;
  for (int64_t i = pairs; i-- > 0;) {
    a[size_t(i)] = dot(h.s[i], q) / h.ys[i];
    q = q - a[size_t(i)] * h.y[i];
  }
  Tensor d = h.scale * q;
  for (int64_t i = 0; i < pairs; ++i) d = d + h.s[i] * (a[size_t(i)] - dot(h.y[i], d) / h.ys[i]);
  return d;
}

// The history with the pair of the last step, where it may join.
History extended(Update& u, const Tensor& g, const Shape& type, int64_t pairs) {
  const DType dtype = type.dtype();
  const Shape table(dtype, {pairs, type.dim(0)}), column(dtype, {pairs}), scalar = Shape::scalar(dtype);
  const History before{u.state("s", table), u.state("y", table), u.state("ys", column, 1),
                       u.state("scale", scalar, 1)};
  const Tensor y = g - u.state("gradient", type);
  const Tensor s = u.state("moved", type);
  const Tensor ys = dot(y, s);
  const Tensor joins = logical_and(ys > 1e-10, u.count() > 1.0);
  const Tensor yy = joins.where(dot(y, y), 1.0);
  const History after{joins.where(shifted(before.s, s), before.s),
                      joins.where(shifted(before.y, y), before.y),
                      joins.where(shifted(before.ys, ys), before.ys), joins.where(ys / yy, before.scale)};
  u.keep("s", after.s);
  u.keep("y", after.y);
  u.keep("ys", after.ys);
  u.keep("scale", after.scale);
  u.keep("gradient", g);
  return after;
}

void lbfgs_step(Update& u, const Lbfgs& o) {
  std::vector<Trained>& all = u.trained();
  for (const Trained& p : all) {
    constexpr std::string_view kOneLine =
        "optimizer: lbfgs moves all tensors along one line at one rate and decays none; by a rule '";
    if (Value(p.rate64) != Value(all[0].rate64))
      throw invalid(kOneLine, p.name, "' has another rate than '", all[0].name, "'");
    if (p.weight_decay.value_or(0) != 0) throw invalid(kOneLine, p.name, "' decays by ", *p.weight_decay);
    if (p.value.dtype() != all[0].value.dtype())
      throw invalid("optimizer: lbfgs trains tensors of one type; '", all[0].name, "' is ",
                    all[0].value.dtype(), ", '", p.name, "' ", p.value.dtype());
  }
  const Tensor g = flattened(all, &Trained::gradient);
  const Tensor first = u.count().eq(1.0);
  const History h = extended(u, g, g.shape(), o.history_size);
  const Tensor d = direction(h, g, o.history_size);
  const Tensor rate = all[0].rate;
  const Tensor t = first.where(rate * (1.0 / g.abs().sum()).min(1.0), rate);
  const Tensor moved = t * d;
  u.keep("moved", moved);
  int64_t at = 0;
  for (Trained& p : all) {
    const int64_t n = p.value.shape().elements();
    const Shape& shape = p.value.shape();
    p.next = p.value + moved.narrow(0, at, n).reshape(Dims(shape.dims().begin(), shape.dims().end()));
    at += n;
  }
}

}  // namespace

Optimizer lbfgs(const Lbfgs& o) {
  return {"lbfgs", checked("lbfgs", settings_of(o, kLbfgs)), [o](Update& u) { lbfgs_step(u, o); }};
}

void add_lbfgs(Catalogue& c) {
  c["lbfgs"] = [](const Settings& s) { return lbfgs(options_of<Lbfgs>("lbfgs", s, kLbfgs)); };
}

}  // namespace rlx::train
