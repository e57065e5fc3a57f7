// A loop whose values are all single numbers runs as one program on slots: no step of it sets up vectors or threads.
#include "rlx/backend/cpu/nodes/scalar_loop.h"

#include <algorithm>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/by_steps.h"
#include "rlx/backend/cpu/vm/scalars.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/scan.h"
#include "rlx/region/of_node.h"

namespace rlx::cpu {
namespace {

using Slot = ScalarProgram::Slot;

/// The body of a loop as a program, or why there is none.
struct Made {
  ScalarProgram program;
  std::vector<int> leaves, outputs;  // their slots
  std::string refusal;
};

bool is_number(const Shape& s) {
  return s.is_static() && s.elements() == 1 && ScalarProgram::holds(s.dtype());
}

// The node as a region on the slots of its operands; what is in the way otherwise.
std::string add_node(const ir::Graph& body, const ir::Node& n, ir::ValueMap<int>& slot_of,
                     ScalarProgram& to) {
  if (n.is<ir::Constant>()) {
    slot_of[n.result()] = to.add_constant(n.shapes[0].dtype(), n.as<ir::Constant>().value.bytes().data());
    return {};
  }
  if (n.is<ir::Full>()) {
    const Literal value = Literal::full(Shape::scalar(n.shapes[0].dtype()), n.as<ir::Full>().value);
    slot_of[n.result()] = to.add_constant(n.shapes[0].dtype(), value.bytes().data());
    return {};
  }
  Shapes types;
  std::vector<int> slots;
  for (const ir::Value v : n.inputs) types.push_back(body.shape(v)), slots.push_back(slot_of.at(v));
  const std::vector<region::Layout> in(n.inputs.size()), out(n.shapes.size());
  const region::Built built = region::of_node(n, types, in, out);
  if (!built) return built.refusal;
  if (const auto why = ScalarProgram::refuses(*built.region)) return *why;
  const std::vector<int> results = to.add(*built.region, slots);
  for (uint32_t i = 0; i < n.shapes.size(); ++i) slot_of[n.result(i)] = results[i];
  return {};
}

Made make(const ir::Graph& body) {
  Made out;
  ir::ValueMap<int> slot_of;
  for (const ir::Node* n : body.nodes()) {
    for (const Shape& s : n->shapes) {
      if (!is_number(s)) return {.refusal = cat("'", n->name, "' is ", s, ", no single number")};
    }
    if (n->op->traits.leaf) {
      out.leaves.push_back(slot_of[n->result()] = out.program.add_slot());
      continue;
    }
    if (std::string why = add_node(body, *n, slot_of, out.program); !why.empty())
      return {.refusal = cat(n->op->name, ": ", why)};
  }
  for (const ir::Value v : body.outputs()) out.outputs.push_back(slot_of.at(v));
  return out;
}

Support accepts(const Request& r) {
  const auto& a = r.node.as<ops::Scan>();
  if (a.gate != ops::ScanGate::none) return Support::no("steps may be left out");
  if (const Support s = all_row_major(r); !s) return s;
  for (const ir::NodeId id : a.body->leaves()) {
    if (!is_number(a.body->node(id).shapes[0])) return Support::no("not a loop over single numbers");
  }
  const Made made = make(*a.body);
  return made.refusal.empty() ? Support::yes() : Support::no(made.refusal);
}

class ScalarScan final : public Step {
 public:
  explicit ScalarScan(const Request& r) : by_steps_(r) {
    const auto& a = r.node.as<ops::Scan>();
    made_ = make(*a.body);
    length_ = a.length.value();
    reverse_ = a.reverse;
    carries_ = size_t(a.carries);
    std::vector<ScalarProgram::Carry> carried;
    for (size_t i = 0; i < carries_; ++i) carried.push_back({made_.leaves[i], made_.outputs[i]});
    made_.program.chain(carried);
    first_slice_ = carries_ + size_t(a.consts);
    for (const ir::NodeId id : a.body->leaves()) leaf_types_.push_back(a.body->node(id).shapes[0].dtype());
    for (const ir::Value v : a.body->outputs()) output_types_.push_back(a.body->shape(v).dtype());
    for (size_t i = 0; i < carries_; ++i) {
      const auto end = made_.leaves.begin() + long(carries_);
      const auto leaf = std::find(made_.leaves.begin(), end, made_.outputs[i]);
      crossed_ = crossed_ || (leaf != end && leaf != made_.leaves.begin() + long(i));
    }
    if (!crossed_) redirect_carries();
    workspace = (made_.program.slots() + carries_) * sizeof(Slot);
    note = cat(length_, " steps of ", made_.program.operations(), " operations on single numbers");
  }

  void run(const Launch& l) const override {
    if (backend::every_step_wanted(l)) return by_steps_.run(l);
    auto* const s = reinterpret_cast<Slot*>(l.workspace);
    Slot* const next = s + made_.program.slots();
    made_.program.begin(s);
    for (size_t i = 0; i < first_slice_; ++i)
      ScalarProgram::read(leaf_types_[i], l.in[i], s[made_.leaves[i]]);
    for (int64_t step = 0; step < length_; ++step) {
      const int64_t t = reverse_ ? length_ - 1 - step : step;
      for (size_t i = first_slice_; i < leaf_types_.size(); ++i)
        ScalarProgram::read(leaf_types_[i], at(l.in[i], leaf_types_[i], t), s[made_.leaves[i]]);
      made_.program.run(s);
      for (size_t i = carries_; i < output_types_.size(); ++i)
        ScalarProgram::write(output_types_[i], s[made_.outputs[i]], at(l.out[i], output_types_[i], t));
      if (crossed_) {
        for (size_t i = 0; i < carries_; ++i)
          ScalarProgram::copy(output_types_[i], s[made_.outputs[i]], next[i]);
      }
      for (size_t i = 0; i < carries_; ++i) {
        if (made_.outputs[i] == made_.leaves[i]) continue;
        ScalarProgram::copy(output_types_[i], crossed_ ? next[i] : s[made_.outputs[i]], s[made_.leaves[i]]);
      }
    }
    for (size_t i = 0; i < carries_; ++i)
      ScalarProgram::write(output_types_[i], s[made_.leaves[i]], l.out[i]);
  }

 private:
  // A carry whose old number is done with by the time its next one is made needs no copy.
  void redirect_carries() {
    for (size_t i = 0; i < carries_; ++i) {
      const int from = made_.outputs[i], to = made_.leaves[i];
      const auto begin = made_.outputs.begin(), end = made_.outputs.end();
      const bool old_goes_out = std::find(begin, end, to) != end;
      if (old_goes_out || std::count(begin, begin + long(carries_), from) > 1) continue;
      if (made_.program.redirect(from, to)) std::replace(begin, end, from, to);
    }
  }
  static std::byte* at(std::byte* sequence, DType t, int64_t i) {
    return sequence + size_t(i) * dtype_size(t);
  }

  backend::BySteps by_steps_;
  Made made_;
  int64_t length_ = 0;
  bool reverse_ = false, crossed_ = false;  // crossed: the next value of a carry is the old one of another
  size_t carries_ = 0, first_slice_ = 0;
  std::vector<DType> leaf_types_, output_types_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<ScalarScan>(r); }

}  // namespace

void add_scalar_loops(KernelTable& table) { table.add<ops::Scan>({"scan_numbers", accepts, prepare}); }

}  // namespace rlx::cpu
