// Branches and loops as nodes of ONNX. Constants of a loop and captures of a branch are names of the graph around it.
#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/onnx/write/writer.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/ops/elementwise/select.h"

namespace rlx::onnx {
namespace {

// A body whose leaves have these names.
class Body {
 public:
  Body(Writer& outer, const ir::Graph& g, const Names& leaves)
      : outer_(outer), graph_(with_counterparts(g)), writer_(graph_, &outer) {
    const auto ids = graph_.leaves();
    for (size_t i = 0; i < ids.size(); ++i) writer_.set_name(graph_.node(ids[i]).result(), leaves.at(i));
    writer_.out().name = outer.fresh("body");
    writer_.write_body();
  }
  Writer& writer() { return writer_; }
  // Every output is a node of the body, whatever it is made of.
  std::string output(size_t i) {
    return writer_.node("Identity", {writer_.name(writer_.graph().outputs()[i])});
  }
  void put_out(const std::string& name, const Shape& s) {
    writer_.out().outputs.push_back(writer_.value_info(name, s));
  }
  void put_out_all() {
    const ir::Graph& g = writer_.graph();
    for (size_t i = 0; i < g.outputs().size(); ++i) put_out(output(i), g.shape(g.outputs()[i]));
  }
  void take(const std::string& name, const Shape& s) {
    writer_.out().inputs.push_back(writer_.value_info(name, s));
  }
  file::Graph finish() {
    outer_.kept().insert(outer_.kept().end(), writer_.kept().begin(), writer_.kept().end());
    return std::move(writer_.out());
  }

 private:
  Writer& outer_;
  ir::Graph graph_;
  Writer writer_;
};

Names branch(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::If>();
  Names captures;
  for (size_t i = 1; i < n.inputs.size(); ++i) captures.push_back(w.name(n.inputs[i]));
  const auto body = [&](const ir::Graph& g) {
    Body b(w, g, captures);
    b.put_out_all();
    return b.finish();
  };
  std::string condition = w.name(n.inputs[0]);
  if (w.graph().shape(n.inputs[0]).dtype() != DType::bool_) condition = w.cast(condition, DType::bool_);
  return w.nodes("If", {condition},
                 {attribute("then_branch", body(*a.then_body)), attribute("else_branch", body(*a.else_body))},
                 int(n.shapes.size()));
}

// The body of a scan that skips steps: where the flag is false, carries stay and outputs are zeros.
ir::Graph gated_body(const ops::Scan::Attrs& a) {
  const ir::Graph& body = *a.body;
  ir::Graph g(body.name());
  ir::Exprs leaves;
  for (const ir::NodeId id : body.leaves()) {
    const ir::Node& n = body.node(id);
    leaves.push_back({&g, g.input(ir::leaf_name(n), n.shapes[0])});
  }
  const size_t flag = a.gate == ops::ScanGate::carry ? 0 : size_t(a.carries + a.consts);
  const ir::Exprs made = ir::inline_graph(g, body, leaves);
  ir::Values outputs;
  for (size_t i = 0; i < made.size(); ++i) {
    const bool carry = int(i) < a.carries;
    const ir::Expr skipped = carry ? leaves[i] : ir::Expr{&g, ir::full(g, made[i].shape(), 0)};
    outputs.push_back(ops::where(leaves[flag], made[i], skipped));
  }
  g.set_outputs(outputs);
  return g;
}

// A loop of no steps: the carries as they came, and nothing stacked.
Names unchanged(Writer& w, const ir::Node& n, int carries) {
  Names out;
  for (size_t i = 0; i < n.shapes.size(); ++i) {
    const Shape& s = n.shapes[i];
    out.push_back(int(i) < carries ? w.node("Identity", {w.name(n.inputs[i])})
                                   : w.node("Expand", {w.scalar(s.dtype(), 0), w.dims(s.dims())}));
  }
  return out;
}

Names scan(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Scan>();
  if (a.length == Dim(0)) return unchanged(w, n, a.carries);
  const ir::Graph g = a.gate == ops::ScanGate::none ? *a.body : gated_body(a);
  Names leaves, in;
  std::vector<std::pair<std::string, Shape>> arguments;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const bool constant = int(i) >= a.carries && int(i) < a.carries + a.consts;
    if (constant) {
      leaves.push_back(w.name(n.inputs[i]));
      continue;
    }
    leaves.push_back(w.fresh("step"));
    arguments.emplace_back(leaves.back(), g.node(g.leaves()[i]).shapes[0]);
    in.push_back(w.name(n.inputs[i]));
  }
  int64_t sequences = int64_t(n.inputs.size()) - a.carries - a.consts;
  Body b(w, g, leaves);
  for (const auto& [name, shape] : arguments) b.take(name, shape);
  if (sequences == 0) {
    // Something must be scanned for the loop to have a length.
    const std::string zero = w.constant(Literal::of<int64_t>({}, {0}));
    in.push_back(w.node("Expand", {zero, w.dim(a.length)}));
    b.take(w.fresh("step"), Shape(DType::i64, {}));
    sequences = 1;
  }
  b.put_out_all();
  std::vector<file::Attribute> attributes{attribute("body", b.finish()),
                                          attribute("num_scan_inputs", sequences)};
  if (a.reverse) {
    attributes.push_back(attribute("scan_input_directions", std::vector<int64_t>(size_t(sequences), 1)));
    attributes.push_back(
        attribute("scan_output_directions", std::vector<int64_t>(n.shapes.size() - size_t(a.carries), 1)));
  }
  return w.nodes("Scan", in, attributes, int(n.shapes.size()));
}

// All elements of the condition must hold.
std::string holds(Writer& w, const ir::Graph& cond, const std::string& value) {
  const Shape& s = cond.shape(cond.outputs()[0]);
  std::string c = s.dtype() == DType::bool_ ? value : w.cast(value, DType::bool_);
  if (s.rank() > 0)
    c = w.cast(w.node("ReduceMin", {w.cast(c, DType::i32)}, {attribute("keepdims", int64_t(0))}),
               DType::bool_);
  return c;
}

Names loop(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::While>();
  Names start, leaves;
  for (const ir::Value v : n.inputs) start.push_back(w.name(v));
  leaves = start;
  for (int i = 0; i < a.carries; ++i) leaves[size_t(i)] = w.fresh("carry");
  const std::string first = holds(w, *a.cond, w.inlined(*a.cond, start)[0]);
  Body b(w, *a.body, leaves);
  b.take(w.fresh("iteration"), Shape(DType::i64, {}));
  b.take(w.fresh("condition"), Shape(DType::bool_, {}));
  for (int i = 0; i < a.carries; ++i) b.take(leaves[size_t(i)], n.shapes[size_t(i)]);
  Names next = leaves;
  for (int i = 0; i < a.carries; ++i) next[size_t(i)] = b.output(size_t(i));
  const std::string again = holds(b.writer(), *a.cond, b.writer().inlined(*a.cond, next)[0]);
  b.put_out(b.writer().node("Identity", {again}), Shape(DType::bool_, {}));
  for (int i = 0; i < a.carries; ++i) b.put_out(next[size_t(i)], n.shapes[size_t(i)]);
  const std::string most =
      a.max_iterations ? w.constant(Literal::of<int64_t>({}, {*a.max_iterations})) : std::string();
  Names in{most, first};
  in.insert(in.end(), start.begin(), start.begin() + a.carries);
  return w.nodes("Loop", in, {attribute("body", b.finish())}, a.carries);
}

}  // namespace

const std::map<std::string_view, WriteNode>& control_writers() {
  static const std::map<std::string_view, WriteNode> kWriters{
      {"if", branch}, {"scan", scan}, {"while", loop}};
  return kWriters;
}

}  // namespace rlx::onnx
