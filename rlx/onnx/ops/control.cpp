// Branches and loops. Bodies see the names around them; what they use becomes an operand of the loop or branch.
#include <algorithm>
#include <limits>

#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/import.h"
#include "rlx/onnx/importer.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

constexpr int64_t kMostUnrolled = 256;

Tensors tensors_of(const Call& c, const Items& items, size_t from = 0) {
  Tensors out;
  for (size_t i = from; i < items.size(); ++i) {
    if (!items[i].is_tensor()) c.unsupported("a sequence or nothing that leaves a body decided at run time");
    if (!items[i].bounds.empty()) c.unsupported("a tensor whose size depends on data that leaves a body");
    out.push_back(c.tensor_of(items[i]));
  }
  return out;
}

Items with_elements(const Tensors& tensors, const Items& like, size_t from = 0) {
  Items out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Item it(tensors[i]);
    if (i + from < like.size() && like[i + from].is_tensor()) it.element = like[i + from].element;
    out.push_back(std::move(it));
  }
  return out;
}

// What two branches give has other sizes in one than in the other, or sizes that data decides.
struct SizesDiffer {
  struct Result {
    Shape type;
    std::vector<int> bounded;
    file::ElementType element;
  };
  std::vector<Result> yes, no;
};

std::vector<SizesDiffer::Result> results_of(const Items& items) {
  std::vector<SizesDiffer::Result> out;
  for (const Item& it : items) {
    out.push_back({it.is_tensor() ? it.shape() : Shape(), {}, it.element});
    for (const Bound& b : it.bounds) out.back().bounded.push_back(b.axis);
  }
  return out;
}

bool have_one_size(const Items& a, const Items& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!a[i].is_tensor() || !b[i].is_tensor()) continue;
    if (!a[i].bounds.empty() || !b[i].bounds.empty()) return false;
    const Dims x = a[i].shape().dims(), y = b[i].shape().dims();
    for (size_t k = 0; k < x.size() && x.size() == y.size(); ++k) {
      if (x[k] != y[k] && decide_equal(x[k], y[k]) != true) return false;
    }
  }
  return true;
}

// Results as large as the larger of the two; how much of them is meant leaves the branches beside them.
Items branch_of_sizes(Call& c, const file::Graph& yes, const file::Graph& no, const SizesDiffer& found) {
  std::vector<Dims> most(found.yes.size());
  std::vector<std::pair<size_t, int>> counted;  // result and axis
  for (size_t i = 0; i < found.yes.size(); ++i) {
    const Shape &x = found.yes[i].type, &y = found.no[i].type;
    if (x.rank() != y.rank() || x.dtype() != y.dtype())
      throw c.wrong("result ", i, " is ", x, " in one branch and ", y, " in the other");
    for (int k = 0; k < x.rank(); ++k) {
      const Dim a = x.dims()[size_t(k)], b = y.dims()[size_t(k)];
      const auto both = larger(Size(a), Size(b));
      if (!both || !both->dim()) throw c.wrong("result ", i, " has sizes ", a, " and ", b);
      const bool same = decide_equal(a, b) == true;
      most[i].push_back(same ? a : *both->dim());
      const auto is_bounded = [&](const std::vector<int>& axes) {
        return std::find(axes.begin(), axes.end(), k) != axes.end();
      };
      if (!same || is_bounded(found.yes[i].bounded) || is_bounded(found.no[i].bounded))
        counted.emplace_back(i, k);
    }
  }
  const auto build = [&](const file::Graph& body) {
    return [&](Tracer& t) {
      const Importer::Inside inside(c.importer(), t.graph());
      const Items results = c.importer().run_body(body, {});
      Tensors out;
      for (size_t i = 0; i < results.size(); ++i) {
        const Tensor x = c.tensor_of(results[i]);
        Dims high;
        for (int k = 0; k < x.rank(); ++k) high.push_back(most[i][size_t(k)] - x.dim(k));
        const bool whole = std::all_of(high.begin(), high.end(), [](Dim d) { return d == Dim(0); });
        out.push_back(whole ? x : rlx::pad(x, {.low = Dims(high.size(), 0), .high = high}));
      }
      for (const auto& [i, k] : counted) {
        const Bound* b = bound_at(results[i], k);
        out.push_back(b == nullptr ? c.dim_value(results[i].shape().dims()[size_t(k)]) : b->count);
      }
      return out;
    };
  };
  const Tensors results = rlx::if_else(c.in(0).reshape({}), build(yes), build(no));
  Items out = with_elements(Tensors(results.begin(), results.begin() + ptrdiff_t(most.size())), {});
  for (size_t i = 0; i < out.size(); ++i) out[i].element = found.yes[i].element;
  for (size_t n = 0; n < counted.size(); ++n)
    out[counted[n].first].bounds.push_back({counted[n].second, results[most.size() + n]});
  return out;
}

Items branch(Call& c) {
  const file::Graph &yes = c.body("then_branch"), &no = c.body("else_branch");
  if (const auto known = c.constant(0))
    return c.importer().run_body(known->integer_at(0) != 0 ? yes : no, {});
  Items like;
  const auto build = [&](const file::Graph& body) {
    return [&c, &body, &like](Tracer& t) {
      const Importer::Inside inside(c.importer(), t.graph());
      const Items results = c.importer().run_body(body, {});
      for (const Item& it : results) {
        if (!it.is_tensor()) c.unsupported("a sequence or nothing that leaves a body decided at run time");
      }
      if (like.size() == results.size() && !have_one_size(like, results))
        throw SizesDiffer{results_of(like), results_of(results)};
      like = results;
      Tensors out;
      for (const Item& it : results) out.push_back(c.tensor_of(it));
      return out;
    };
  };
  try {
    try {
      const Tensors results = rlx::if_else(c.in(0).reshape({}), build(yes), build(no));
      return with_elements(results, like);
    } catch (const SizesDiffer& found) {
      return branch_of_sizes(c, yes, no, found);
    }
  } catch (const Error& e) {
    if (dynamic_cast<const NeedsValue*>(&e) != nullptr || c.item(0).sources.empty()) throw;
    // Branches of different types can only be told apart while the graph is built.
    c.needs_value(c.item(0), cat("which branch is taken (", e.message(), ")"));
  }
}

// ---- Loop

struct LoopParts {
  const file::Graph& body;
  size_t carried = 0, scans = 0;
};

Item truth() { return Item(Literal::scalar(DType::bool_, 1)); }

// What the results of the body are, from nodes in a graph that is thrown away.
struct Probe {
  bool works = false, goes_on = false;
  Shapes types;  // of all results behind the condition
  std::vector<file::ElementType> elements;
  std::string why;
};

Probe probe(const Call& c, const LoopParts& p) {
  Probe out;
  try {
    BodyScope scope("probe", c.graph());
    Items arguments{Item(scope.argument("iteration", Shape(DType::i64, {}))), truth()};
    for (size_t i = 0; i < p.carried; ++i) {
      const Item& v = c.item(int(i) + 2);
      if (!v.is_tensor()) return out;
      arguments.emplace_back(scope.argument(cat("carry_", i), v.shape()));
      arguments.back().element = v.element;
    }
    const Importer::Inside inside(c.importer(), scope.graph());
    const Items results = c.importer().run_body(p.body, arguments);
    out.goes_on = results[0].constant && results[0].constant->integer_at(0) != 0;
    for (size_t i = 1; i < results.size(); ++i) {
      if (!results[i].is_tensor() || !results[i].bounds.empty()) return out;
      out.types.push_back(results[i].shape());
      out.elements.push_back(results[i].element);
    }
    out.works = true;
    for (size_t i = 0; i < p.carried; ++i)
      out.works = out.works && out.types[i] == c.item(int(i) + 2).shape();
  } catch (const Error& e) {
    out.works = false;
    out.why = e.message();
  }
  return out;
}

// Step by step, while the graph is built; the condition must be known in each, and is told where it is not.
std::optional<Items> unrolled(Call& c, const LoopParts& p, std::optional<int64_t> trips, bool starts,
                              Item& open_condition) {
  Items carried;
  for (size_t i = 0; i < p.carried; ++i) carried.push_back(c.item(int(i) + 2));
  std::vector<Tensors> stacks(p.scans);
  bool go = starts;
  int64_t step = 0;
  for (; go && (!trips || step < *trips); ++step) {
    if (step >= kMostUnrolled) return std::nullopt;
    Items arguments{Item(Literal::of<int64_t>({}, {step})), truth()};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    Items results = c.importer().run_body(p.body, arguments);
    if (!results[0].constant) {
      open_condition = results[0];
      return std::nullopt;
    }
    go = results[0].constant->integer_at(0) != 0;
    for (size_t i = 0; i < p.carried; ++i) carried[i] = results[i + 1];
    for (size_t i = 0; i < p.scans; ++i) stacks[i].push_back(c.tensor_of(results[1 + p.carried + i]));
  }
  Items out = carried;
  for (const Tensors& s : stacks) {
    if (s.empty()) return std::nullopt;
    out.push_back(rlx::stack(s, 0));
  }
  return out;
}

Items counted_loop(Call& c, const LoopParts& p, const Probe& found, Dim trips) {
  Tensors init;
  for (size_t i = 0; i < p.carried; ++i) init.push_back(c.in(int(i) + 2));
  const Tensor steps = c.iota(Shape(DType::i64, {trips}), 0);
  const auto body = [&](Tracer& t, const Tensors& args) {
    const Importer::Inside inside(c.importer(), t.graph());
    Items arguments{Item(args.back()), truth()};
    for (size_t i = 0; i < p.carried; ++i) {
      arguments.emplace_back(args[i]);
      arguments.back().element = c.item(int(i) + 2).element;
    }
    return tensors_of(c, c.importer().run_body(p.body, arguments), 1);
  };
  Items out;
  const Tensors results = rlx::scan(init, {.xs = {steps}, .length = trips}, body);
  for (size_t i = 0; i < results.size(); ++i) {
    out.emplace_back(results[i]);
    out.back().element = found.elements[i];
  }
  return out;
}

// A loop that data ends. Outputs of steps go to buffers as long as the most steps there can be.
Items while_loop(Call& c, const LoopParts& p, const Probe& found, std::optional<Dim> most,
                 const Tensor& limit) {
  if (p.scans > 0 && !most) {
    if (c.has(0) && !c.item(0).sources.empty())
      c.needs_value(c.item(0), "the number of steps, which bounds what they put out,");
    c.unsupported("a loop without a bound that puts out something in each step");
  }
  Tensors init{c.scalar(DType::i64, 0), c.has(1) ? c.in(1).reshape({}) : c.scalar(DType::bool_, 1)};
  for (size_t i = 0; i < p.carried; ++i) init.push_back(c.in(int(i) + 2));
  for (size_t i = 0; i < p.scans; ++i) {
    const Shape& s = found.types[p.carried + i];
    Dims dims = s.dims();
    dims.insert(dims.begin(), *most);
    init.push_back(c.full(dims, s.dtype(), 0));
  }
  const auto goes_on = [&](const Tensors& args) -> Tensor {
    if (!limit.is_empty()) return rlx::logical_and(args[1], args[0] < limit);
    return args[1];
  };
  const auto body = [&](Tracer& t, const Tensors& args) {
    const Importer::Inside inside(c.importer(), t.graph());
    Items arguments{Item(args[0]), truth()};
    for (size_t i = 0; i < p.carried; ++i) {
      arguments.emplace_back(args[i + 2]);
      arguments.back().element = c.item(int(i) + 2).element;
    }
    Tensors results = tensors_of(c, c.importer().run_body(p.body, arguments));
    results[0] = results[0].reshape({});
    for (size_t i = 0; i < p.scans; ++i) {
      const size_t k = 1 + p.carried + i;
      Tensors start{args[0].reshape({1})};
      const int rank = results[k].rank();
      if (rank > 0) start.push_back(c.full({int64_t(rank)}, DType::i64, 0));
      const Tensor at = start.size() == 1 ? start[0] : rlx::concat(start, {.axis = 0});
      results[k] = rlx::dynamic_update_slice(args[k + 1], results[k].unsqueeze(0), at);
    }
    results.insert(results.begin(), args[0] + 1);
    return results;
  };
  std::optional<int64_t> steps;
  if (most && most->is_static()) steps = most->value();
  const Tensors results = rlx::while_loop(init, {.max_iterations = steps}, goes_on, body);
  Items out;
  for (size_t i = 2; i < results.size(); ++i) {
    out.emplace_back(results[i]);
    out.back().element = found.elements[i - 2];
    if (i >= 2 + p.carried) out.back().bounds.push_back({0, results[0]});
  }
  return out;
}

Items loop(Call& c) {
  const file::Graph& body = c.body("body");
  LoopParts p{body, size_t(std::max(0, c.count() - 2)), 0};
  if (body.outputs.size() < 1 + p.carried)
    throw c.wrong("the body has ", body.outputs.size(), " outputs for ", p.carried, " carried values");
  p.scans = body.outputs.size() - 1 - p.carried;
  const auto start = c.has(1) ? c.constant(1) : std::optional<Literal>(Literal::scalar(DType::bool_, 1));
  const bool starts = start && start->integer_at(0) != 0;
  std::optional<Dim> trips, bound;  // bound: of a number of steps that data decides
  if (c.has(0)) {
    if (const auto s = sizes_of(c.item(0)); s && s->values.size() == 1) {
      const auto n = s->values[0].number();
      trips = n && *n < 0 ? Dim(0) : s->values[0].dim();
      if (s->values[0].is_counted()) bound = s->values[0].most();
    }
  }
  const bool endless = !c.has(0) || (trips && trips->is_static() && trips->value() > (int64_t(1) << 40));
  const Probe found = probe(c, p);
  if (found.works && found.goes_on && starts && trips && !endless && p.carried + p.scans > 0)
    return counted_loop(c, p, found, *trips);
  // Values that change their type, or sequences: only step by step.
  if (!found.works) {
    const bool known = start && (endless || (trips && trips->is_static()));
    if (known) {
      Item goes_on;
      const std::optional<int64_t> most = endless ? std::nullopt : std::optional(trips->value());
      auto out = unrolled(c, p, most, starts, goes_on);
      if (out) return std::move(*out);
      if (!goes_on.sources.empty()) c.needs_value(goes_on, "whether the loop goes on");
      // Weights may decide it.
      const Importer::FoldingWeights folding(c.importer());
      out = unrolled(c, p, most, starts, goes_on);
      if (out) return std::move(*out);
    }
    if (c.has(0) && !c.item(0).constant && !c.item(0).sources.empty())
      c.needs_value(c.item(0), "the number of steps");
    if (c.has(1) && !c.item(1).constant && !c.item(1).sources.empty())
      c.needs_value(c.item(1), "whether the loop starts");
    c.unsupported(
        cat("a loop whose values change their type", found.why.empty() ? "" : " (" + found.why + ")"));
  }
  Tensor limit;
  std::optional<Dim> most;
  if (!endless) {
    most = trips ? trips : bound;
    limit = c.in(0).cast(DType::i64).reshape({});
  }
  return while_loop(c, p, found, most, limit);
}

// ---- Scan

Items scan_once(const Call& c, const file::Graph& body, const Items& states, const Tensors& sequences) {
  const size_t n = states.size();
  Tensors init;
  for (const Item& s : states) init.push_back(c.tensor_of(s));
  Items like;
  const auto step = [&](Tracer& t, const Tensors& args) {
    const Importer::Inside inside(c.importer(), t.graph());
    Items arguments;
    for (size_t i = 0; i < args.size(); ++i) {
      arguments.emplace_back(args[i]);
      if (i < n) arguments.back().element = states[i].element;
    }
    const Items results = c.importer().run_body(body, arguments);
    like = results;
    return tensors_of(c, results);
  };
  return with_elements(rlx::scan(init, {.xs = sequences}, step), like);
}

Tensor with_axis_first(const Tensor& x, int axis) {
  if (axis == 0) return x;
  std::vector<int> perm{axis};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) perm.push_back(i);
  }
  return x.transpose(perm);
}

Tensor with_first_axis_at(const Tensor& x, int axis) {
  if (axis == 0) return x;
  std::vector<int> perm;
  for (int i = 0; i < x.rank(); ++i) perm.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return x.transpose(perm);
}

Items scan(Call& c) {
  const file::Graph& body = c.body("body");
  const int sequences = int(c.integer("num_scan_inputs", 0)), states = c.count() - sequences;
  if (sequences < 1 || states < 0) throw c.wrong(sequences, " scan inputs of ", c.count(), " operands");
  const int outputs = int(body.outputs.size()) - states;
  const std::vector<int64_t> none_in(size_t(sequences), 0), none_out(size_t(std::max(0, outputs)), 0);
  const auto in_axes = c.integers("scan_input_axes", none_in),
             in_back = c.integers("scan_input_directions", none_in);
  const auto out_axes = c.integers("scan_output_axes", none_out),
             out_back = c.integers("scan_output_directions", none_out);
  if (int(in_axes.size()) != sequences || int(out_axes.size()) != outputs || outputs < 0)
    throw c.wrong("axes do not fit the body");
  Items init(c.items().begin(), c.items().begin() + states);
  Tensors xs;
  for (int i = 0; i < sequences; ++i) {
    Tensor x = c.in(states + i);
    x = with_axis_first(x, c.axis(in_axes[size_t(i)], x.rank()));
    xs.push_back(in_back[size_t(i)] != 0 ? rlx::flip(x, {.axes = {0}}) : x);
  }
  Items out = scan_once(c, body, init, xs);
  for (int i = 0; i < outputs; ++i) {
    Item& y = out[size_t(states + i)];
    if (out_back[size_t(i)] != 0) y.tensor = rlx::flip(y.tensor, {.axes = {0}});
    y.tensor = with_first_axis_at(y.tensor, c.axis(out_axes[size_t(i)], y.tensor.rank()));
  }
  return out;
}

// Version 8 runs each entry of a batch on its own.
Items scan_of_batches(Call& c) {
  const file::Graph& body = c.body("body");
  const int sequences = int(c.integer("num_scan_inputs", 0)), states = c.count() - 1 - sequences;
  if (c.has(0)) c.unsupported("sequence lengths of version 8");
  const auto back = c.integers("directions", std::vector<int64_t>(size_t(sequences), 0));
  const int64_t batch = c.in(1).dim(0).value();
  std::vector<Items> parts;
  for (int64_t b = 0; b < batch; ++b) {
    Items init;
    for (int i = 0; i < states; ++i) init.emplace_back(c.in(1 + i)[b]);
    Tensors xs;
    for (int i = 0; i < sequences; ++i) {
      const Tensor x = c.in(1 + states + i)[b];
      xs.push_back(back[size_t(i)] != 0 ? rlx::flip(x, {.axes = {0}}) : x);
    }
    parts.push_back(scan_once(c, body, init, xs));
  }
  Items out;
  for (size_t i = 0; !parts.empty() && i < parts[0].size(); ++i) {
    Tensors all;
    for (const Items& part : parts) all.push_back(part[i].tensor);
    out.emplace_back(rlx::stack(all, 0));
  }
  return out;
}

}  // namespace

std::span<const Entry> control_entries() {
  static const std::vector<Entry> kEntries{
      {"If", 1, branch, BoundsRule::refuse, nullptr, false},
      {"Loop", 1, loop, BoundsRule::refuse, nullptr, false},
      {"Scan", 8, scan_of_batches, BoundsRule::refuse, nullptr, false},
      {"Scan", 9, scan, BoundsRule::refuse, nullptr, false},
  };
  return kEntries;
}

}  // namespace rlx::onnx
