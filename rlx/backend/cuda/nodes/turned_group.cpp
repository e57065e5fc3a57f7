// A product of some rows for queries, keys and values whose columns are turned and put into caches by the kernel that makes them (groups/groups.h).
#include <algorithm>
#include <numeric>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/kernels/row_moves.h"
#include "rlx/backend/cuda/nodes/copied_tiles.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/row_moves.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kPiece = 8;  // columns of 16 bits that a thread takes

/// The body of a group, read.
struct Reading {
  explicit Reading(const Request& r) {
    const ir::Graph& body = *r.node.as<ops::Fused>().body;
    const ir::Node* product = nullptr;
    for (const ir::Node* n : body.nodes()) {
      if (n->is<ops::Matmul>()) product = n;
    }
    const auto leaves = body.leaves();
    const auto operand = [&](ir::Value v) {
      return int(std::find(leaves.begin(), leaves.end(), v.node) - leaves.begin());
    };
    if (!product || operand(product->inputs[0]) == int(leaves.size()) ||
        operand(product->inputs[1]) == int(leaves.size())) {
      problem = "no product of operands";
      return;
    }
    a = operand(product->inputs[0]), b = operand(product->inputs[1]);
    const Arg &x = r.in[size_t(a)], &w = r.in[size_t(b)];
    rows = read_rows(r, {&product, 1});
    problem = rows.problem;
    if (problem.empty() && (w.shape.rank() != 2 || !x.is_row_major()))
      problem = "operands of the product are strided";
    if (!problem.empty()) return;
    const int64_t k = x.shape.dim(-1).value(), n = w.shape.dim(1).value();
    sizes = {.dtype = x.dtype(),
             .m = k > 0 ? x.shape.elements() / k : 0,
             .n = n,
             .k = k,
             .a_row = k,
             .c_row = n,
             .b_row = w.layout.strides[0],
             .b_column = w.layout.strides[1],
             .b_is_fixed = w.fixed};
    for (const RowMove& m : rows.moves) check(m, Member(r.in.size()));
    if (problem.empty() && !CopiedTiles::suits(sizes, 1, together)) problem = "another kernel is faster";
  }

  // Heads lie side by side in the rows of the product, and what turns together is finished together.
  void check(const RowMove& m, Member product) {
    const auto& [size, stride] = m.x;
    const bool plain = (size[0] == 1 || stride[0] == size[1] * sizes.n) &&
                       (size[1] == 1 || stride[1] == sizes.n) && (size[2] == 1 || stride[2] == size[3]);
    if (m.from != product || !plain || size[0] * size[1] != sizes.m) problem = "rows of another order";
    if (m.dtype != sizes.dtype || width_of(m, true) != kPiece) problem = "rows of odd length";
    if (m.turns && m.column % size[3] != 0) problem = "heads begin anywhere";
    if (m.turns) together = std::lcm(together, size[3]);
  }

  int a = 0, b = 0;
  int64_t together = 16;
  FewRows sizes;
  RowsReading rows;
  std::string problem;
};

/// The text in front of the kernel.
std::string hooks_text(const Reading& g, const std::vector<Member>& members) {
  const auto name = [&](Member a) {
    return cat("p.m", std::find(members.begin(), members.end(), a) - members.begin());
  };
  std::string fields, body;
  for (size_t i = 0; i < members.size(); ++i) fields += cat("  char* m", i, ";\n");
  for (const RowMove& m : g.rows.moves) {
    const int64_t lanes = m.x.sizes[3], end = m.column + m.x.sizes[2] * lanes;
    body += cat("  if (column >= ", m.column, " && column < ", end, ") {\n    const int head = (column - ",
                m.column, ") / ", lanes, ", lane = (column - ", m.column, ") % ", lanes, ";\n");
    if (m.turns) body += cat("    if (lane >= ", lanes / 2, ") return;\n");
    body +=
        cat("    const u32 row = text % ", m.x.sizes[1], "u, batch = text / ", m.x.sizes[1],
            "u;\n    const T* const from = at - lane;\n", move_text(m, kPiece, name), "    return;\n  }\n");
  }
  return cat("struct Params {\n", fields, "  u64* fault;\n  u64 number;\n};\n", kRowMoves,
             "inline void move_columns(const Params& p, const T* at, u32 text, int column) {\n", body,
             "}\n#define kMovesRows\n",
             "inline void finish_rows(const Params& p, const T* rows, int row, int count, int column) {\n",
             "  for (int e = threadIdx.x; e < count * (kTile / 8); e += blockDim.x) {\n",
             "    const int below = e / (kTile / 8), at = e % (kTile / 8) * 8;\n",
             "    move_columns(p, rows + below * (kTile + 8) + at, row + below, column + at);\n  }\n}\n");
}

class TurnedGroupStep final : public Step {
 public:
  explicit TurnedGroupStep(const Request& r) : device_(device_of(r)), operands_(r.in.size()) {
    const Reading g(r);
    sizes_ = g.sizes, a_ = g.a, b_ = g.b, moves_ = g.rows.moves;
    members_ = members_of(moves_);
    std::erase(members_, Member(operands_));
    fault_ = fault_of(moves_);
    copies_ = cache_copies(r, g.rows.caches);
    aligned_ = CopiedTiles::make(device_, sizes_, 1, hooks_text(g, members_), g.together);
    in_place = g.rows.caches;
    workspace = std::max(size_t(sizes_.m * sizes_.n) * 2, aligned_->workspace());
    note = cat("weights by the copy engine, ", aligned_->tiling().text(), ", ", moves_.size(),
               " moves of rows: ", sizes_.m, " x ", sizes_.n, " x ", sizes_.k);
  }

  void run(const Launch& l) const override {
    copies_(l);
    const Stream& s = stream_of(l);
    std::vector<uint64_t> params;
    uint64_t all = 0;
    for (const Member m : members_) {
      params.push_back(reinterpret_cast<uintptr_t>(m >= 0 ? l.in[m] : l.out[-1 - m]));
      all |= params.back();
    }
    params.push_back(reinterpret_cast<uintptr_t>(s.fault));
    params.push_back(fault_);
    const std::byte *const a = l.in[a_], *const b = l.in[b_];
    if (all % kVectorBytes == 0 && CopiedTiles::fits(a, b))
      return aligned_->run_with(s.handle, params.data(), a, {b, b}, l.workspace);
    // The product into memory, then the moves from there: one more operand.
    const Anywhere& use = anywhere_.get([&] {
      return Anywhere{PlainColumns(device_, sizes_, 1, CopiedTiles::plain_hooks()),
                      std::make_shared<const RowMoves>(device_, moves_)};
    });
    struct {
      void* c;
      int64_t row;
    } plain{l.workspace, sizes_.c_row};
    use.product.run_with(s.handle, &plain, a, {b, b});
    std::vector<std::byte*> in(l.in, l.in + operands_);
    in.push_back(l.workspace);
    Launch moved = l;
    moved.in = in.data();
    use.moves->run(moved);
  }

 private:
  struct Anywhere {
    PlainColumns product;
    std::shared_ptr<const RowMoves> moves;
  };

  const Device& device_;
  size_t operands_;
  FewRows sizes_;
  int a_ = 0, b_ = 0;
  std::vector<RowMove> moves_;
  std::vector<Member> members_;
  uint64_t fault_ = 0;
  std::function<void(const Launch&)> copies_;
  std::optional<CopiedTiles> aligned_;
  OnFirstUse<Anywhere> anywhere_;
};

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kTurnedGroup)
    return Support::no("no product with moves of rows");
  const Reading g(r);
  return g.problem.empty() ? Support::yes() : Support::no(g.problem);
}

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<TurnedGroupStep>(r); }

}  // namespace

void add_turned_groups(KernelTable& table, const std::string& architecture) {
  if (architecture == kHopper) table.add<ops::Fused>({"turned_group", accepts, prepare});
}

}  // namespace rlx::cuda
