// Rotations and rows that go into caches, as one kernel (groups/groups.h).
#include <algorithm>
#include <map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/row_moves.h"
#include "rlx/backend/node_groups.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/shape/dynamic_slice.h"

namespace rlx::cuda {
namespace {

class Reader {
 public:
  Reader(const Request& r, std::span<const ir::Node* const> products)
      : r_(r), body_(*r.node.as<ops::Fused>().body) {
    const auto leaves = body_.leaves();
    for (size_t i = 0; i < leaves.size(); ++i) {
      operand_of_[leaves[i]] = Member(i);
      args_[leaves[i]] = r.in[i];
    }
    if (products.empty()) return;
    // What makes the input of the products moves no rows.
    const ir::Node& before = body_.node(products.front()->inputs[0]);
    if (!before.op->traits.leaf) before_ = &before;
    // Columns of products are views of more operands.
    for (const ir::Node* n : body_.nodes()) {
      const auto product = std::find(products.begin(), products.end(), n);
      const bool is_view = n->op->view != nullptr && n->shapes.size() == 1 && !n->inputs.empty() &&
                           operand_of_.contains(n->inputs[0].node) && is_product(operand(n->inputs[0]));
      if (product == products.end() && !is_view) continue;
      operand_of_[n->id] =
          is_view ? operand(n->inputs[0]) : Member(r.in.size()) + Member(product - products.begin());
      args_[n->id] = {.shape = n->shapes[0], .layout = backend::expected_layout(body_, n->result())};
    }
  }

  RowsReading run() {
    for (const ir::Node* n : body_.nodes()) {
      if (operand_of_.contains(n->id) || n == before_ || !out_.problem.empty()) continue;
      if (n->is<ops::Rope>()) {
        add_turn(*n);
      } else if (n->is<ops::DynamicUpdateSlice>()) {
        add_update(*n);
      } else {
        out_.problem = cat("no rows are moved by ", n->op->name);
      }
    }
    for (const RowMove& m : out_.moves) {
      if (out_.problem.empty()) out_.problem = problem_of(m);
    }
    return std::move(out_);
  }

 private:
  Member operand(ir::Value v) const { return operand_of_.at(v.node); }
  bool is_operand(ir::Value v) const { return operand_of_.contains(v.node); }
  const Arg& arg(ir::Value v) const { return args_.at(v.node); }
  bool is_product(Member m) const { return m >= Member(r_.in.size()); }
  // Where views of a product begin; the address of an operand says so itself.
  int64_t column(ir::Value v) const { return is_product(operand(v)) ? arg(v).layout.offset : 0; }
  Member result(ir::Value v) const {
    const auto& outputs = body_.outputs();
    const auto it = std::find(outputs.begin(), outputs.end(), v);
    return it == outputs.end() ? kNoMember : Member(-1 - (it - outputs.begin()));
  }

  // A rotation whose result is read outside; one for a cache comes with the update.
  void add_turn(const ir::Node& n) {
    if (result(n.result()) == kNoMember) return;
    RowMove m = turn_of(n);
    m.to = result(n.result());
    const Lanes y = lanes_of({.shape = n.shapes[0], .layout = backend::Layout::row_major(n.shapes[0].dims())},
                             n.as<ops::Rope>());
    m.to_strides = y.strides;
    out_.moves.push_back(std::move(m));
  }

  RowMove turn_of(const ir::Node& n) {
    const auto& a = n.as<ops::Rope>();
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (!is_operand(n.inputs[i]) || (i > 0 && !arg(n.inputs[i]).is_row_major())) {
        out_.problem = "an operand of a rotation is strided";
        return {};
      }
    }
    if (arg(n.inputs[1]).dtype() != arg(n.inputs[2]).dtype()) out_.problem = "tables of two types";
    RowMove m =
        row_move_of(a, arg(n.inputs[0]), arg(n.inputs[1]), n.inputs.size() > 3 ? &arg(n.inputs[3]) : nullptr,
                    {operand(n.inputs[0]), operand(n.inputs[1]), operand(n.inputs[2]),
                     n.inputs.size() > 3 ? operand(n.inputs[3]) : kNoMember},
                    out_.problem);
    m.column = column(n.inputs[0]);
    return m;
  }

  // x [batch, rows, width] gets update [batch, fewer rows, width].
  void add_update(const ir::Node& n) {
    const Shape &x = n.shapes[0], &update = body_.shape(n.inputs[1]);
    if (x.rank() != 3 || update.dim(0) != x.dim(0) || update.dim(2) != x.dim(2)) {
      out_.problem = "an update of other than rows";
      return;
    }
    const ir::Node& maker = body_.node(n.inputs[1]);
    RowMove m;
    if (is_operand(n.inputs[1])) {
      const Arg& u = arg(n.inputs[1]);
      const auto& s = u.layout.strides;
      m.dtype = u.dtype();
      m.x = {{update.dim(0).value(), update.dim(1).value(), 1, update.dim(2).value()}, {s[0], s[1], 0, s[2]}};
      m.from = operand(n.inputs[1]);
      m.column = column(n.inputs[1]);
    } else {
      m = turn_of(maker);
      if (!out_.problem.empty()) return;
      if (maker.as<ops::Rope>().layout == ops::HeadLayout::bhsd) out_.problem = "heads in front of rows";
    }
    const int64_t width = x.dim(2).value();
    m.to = result(n.result());
    if (m.to == kNoMember || !is_operand(n.inputs[0]) || !is_operand(n.inputs[2])) {
      out_.problem = "an update inside of the group";
      return;
    }
    m.to_strides = {x.dim(1).value() * width, width, m.x.sizes[3], 1};
    m.starts = operand(n.inputs[2]);
    m.starts_type = arg(n.inputs[2]).dtype();
    m.room = x.dim(1).value() - update.dim(1).value();
    out_.moves.push_back(std::move(m));
    out_.caches.push_back({operand(n.inputs[0]), -1 - out_.moves.back().to});
  }

  const Request& r_;
  const ir::Graph& body_;
  const ir::Node* before_ = nullptr;
  std::map<ir::NodeId, Member> operand_of_;
  std::map<ir::NodeId, Arg> args_;
  RowsReading out_;
};

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kRowsGroup) return Support::no("no group of rows");
  const RowsReading reading = read_rows(r, {});
  return reading.problem.empty() ? Support::yes() : Support::no(reading.problem);
}

std::unique_ptr<Step> prepare(const Request& r) {
  const RowsReading reading = read_rows(r, {});
  auto moves = std::make_shared<const RowMoves>(device_of(r), reading.moves);
  auto step = backend::make_step([copies = cache_copies(r, reading.caches), moves](const Launch& l) {
    copies(l);
    moves->run(l);
  });
  step->note = cat(reading.moves.size(), " moves of rows");
  step->in_place = reading.caches;
  return step;
}

}  // namespace

RowsReading read_rows(const Request& r, std::span<const ir::Node* const> products) {
  return Reader(r, products).run();
}

std::function<void(const Launch&)> cache_copies(const Request& r,
                                                const std::vector<backend::InPlace>& caches) {
  struct Copy {
    backend::InPlace place;
    std::shared_ptr<Step> copy;
  };
  std::vector<Copy> copies;
  for (const backend::InPlace& c : caches)
    copies.push_back({c, prepare_gpu_copy(device_of(r), r.in[size_t(c.operand)], r.out[size_t(c.result)])});
  return [=](const Launch& l) {
    for (const Copy& c : copies) {
      if (l.in[c.place.operand] == l.out[c.place.result]) continue;
      std::byte* const to = l.out[c.place.result];
      Launch one = l;
      one.in = l.in + c.place.operand;
      one.out = &to;
      c.copy->run(one);
    }
  };
}

void add_rows_groups(KernelTable& table) { table.add<ops::Fused>({"rows_group", accepts, prepare}); }

}  // namespace rlx::cuda
