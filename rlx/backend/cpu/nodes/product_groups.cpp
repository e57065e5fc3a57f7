#include "rlx/backend/cpu/nodes/product_groups.h"

#include <array>
#include <map>

#include "rlx/backend/cpu/nodes/quant_blocks.h"
#include "rlx/ops/control/fused.h"

namespace rlx::cpu {
namespace {

// ---- finding them ----

bool is_packed_product(const ir::Graph& g, const ir::Node& n) {
  if (!n.is<ops::DequantMatmul>() || n.inputs.size() != 2) return false;
  // Weights that a graph computes could depend on another product of the group.
  if (!g.node(n.inputs[1]).op->traits.leaf) return false;
  const auto scheme = quant::scheme_from_text(n.as<ops::DequantMatmul>().scheme);
  return scheme && scheme->is_gguf() && QuantMatrix::kind_of(*scheme->format) != nullptr;
}

// ---- running them ----

/// One product of a group: its place among the operands, the packed forms and the results of the step.
struct Member {
  QuantProduct product;
  QuantKind kind;
  Packing packing;
  PackedNow now;
  int packed = -1;     // or packed in each run
  size_t lent_at = 0;  // then: where in the workspace
};

using Members = std::vector<Member>;

/// The products of the body, in the order of its results, or why it is no group.
struct Reading {
  std::string refusal;
  std::vector<const ir::Node*> products;
};

Reading read(const Request& r) {
  const ir::Graph& body = *r.node.as<ops::Fused>().body;
  Reading out;
  if (body.name() != kPackedProducts) return {"no group of packed products", {}};
  for (const ir::Value v : body.outputs()) out.products.push_back(&body.node(v));
  size_t inside = 0;
  for (const ir::Node* n : body.nodes()) inside += n->op->traits.leaf ? 0 : 1;
  if (inside != out.products.size()) return {"a product that nobody reads", {}};
  if (inside > kMostQuantProducts) return {"too many products", {}};
  return out;
}

Support accepts(const Request& r) {
  const Reading reading = read(r);
  if (!reading.refusal.empty()) return Support::no(reading.refusal);
  for (const ir::Node* n : reading.products) {
    if (const Support s = accepts_blocks(r, n->as<ops::DequantMatmul>().scheme); !s) return s;
  }
  return Support::yes();
}

Members members_of(const Request& r) {
  const ir::Graph& body = *r.node.as<ops::Fused>().body;
  std::map<ir::NodeId, int> operand_of;
  for (const ir::NodeId id : body.leaves()) operand_of.try_emplace(id, int(operand_of.size()));
  Members out;
  int packed = 0;
  for (const ir::Node* n : read(r).products) {
    const auto& a = n->as<ops::DequantMatmul>();
    Member m{.product = block_product(r.in[0].shape, n->shapes[0], a.activations),
             .kind = *QuantMatrix::kind_of(*quant::scheme_from_text(a.scheme)->format)};
    const Blocks blocks(a.scheme, 1, m.product.y_stride, m.product.x_stride);
    m.packing = blocks.packing(), m.now = blocks.now();
    m.packing.operand = operand_of.at(n->inputs[1].node);
    if (r.in[size_t(m.packing.operand)].fixed) m.packed = packed++;
    out.push_back(std::move(m));
  }
  return out;
}

/// Rows are rounded once for each kind of weights.
size_t rows_workspace(const Members& members) {
  std::map<QuantKind, size_t> kinds;
  for (const Member& m : members) {
    if (!m.product.exact) kinds[m.kind] = workspace_of(m.product);
  }
  size_t bytes = 0;
  for (const auto& [kind, own] : kinds) bytes += own;
  return bytes;
}

void run(const Members& members, const Launch& l) {
  std::array<QuantProduct, kMostQuantProducts> products;
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& m = members[i];
    products[i] = m.product;
    products[i].x = f32(l, 0);
    products[i].w = static_cast<const QuantMatrix*>(
        m.packed < 0 ? m.now.make(l.team, l.in[m.packing.operand], l.workspace + m.lent_at)
                     : l.packed[m.packed]);
    products[i].y = reinterpret_cast<float*>(l.out[i]);
  }
  quant_products(l.team, {products.data(), members.size()}, l.workspace);
}

std::unique_ptr<Step> prepare(const Request& r) {
  Members members = members_of(r);
  std::vector<Packing> packings;
  size_t workspace = round_up(rows_workspace(members));
  for (Member& m : members) {
    if (m.packed >= 0) {
      packings.push_back(m.packing);
    } else {
      m.lent_at = workspace;
      workspace += round_up(m.now.bytes);
    }
  }
  auto step = make_step([members](const Launch& l) { run(members, l); }, workspace, packings);
  step->note = cat(members.size(), " products of one x, packed blocks", activations_note(members[0].product));
  return step;
}

}  // namespace

std::vector<backend::NodeGroup> product_groups(const ir::Graph& g) {
  std::map<std::pair<ir::NodeId, uint32_t>, size_t> open;  // by x: the last group of it
  std::vector<backend::NodeGroup> found;
  for (const ir::Node* n : g.nodes()) {
    if (!is_packed_product(g, *n)) continue;
    const ir::Value x = n->inputs[0];
    auto [it, is_new] = open.try_emplace({x.node, x.index}, found.size());
    if (!is_new && found[it->second].nodes.size() == kMostQuantProducts)
      it->second = found.size(), is_new = true;
    if (is_new) found.push_back({kPackedProducts, {}});
    found[it->second].nodes.push_back(n);
  }
  std::erase_if(found, [](const backend::NodeGroup& group) { return group.nodes.size() < 2; });
  return found;
}

void add_product_groups(KernelTable& table) {
  table.add<ops::Fused>({"dequant_matmul_group_f32", accepts, prepare});
}

}  // namespace rlx::cpu
