// Rows picked by index.
#include "rlx/backend/cpu/kernels/index.h"

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/index/gather.h"

namespace rlx::cpu {
namespace {

Support index_operand(const Arg& a, size_t i) {
  if (a.dtype() != DType::i32 && a.dtype() != DType::i64) return Support::no("indices are ", a.dtype());
  if (!a.is_row_major()) return Support::no("operand ", i, " is strided");
  return Support::yes();
}

Support accepts(const Request& r) {
  if (!r.in[0].is_row_major()) return Support::no("the table is strided");
  return index_operand(r.in[1], 1);
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Gather>();
  const AxisView table = axis_view(r.in[0].shape, a.axis);
  Gather p;
  p.dtype = r.in[0].dtype();
  p.outer = table.outer;
  p.size = table.length;
  p.inner = table.inner;
  p.count = r.in[1].shape.elements();
  p.indices.dtype = r.in[1].dtype();
  p.indices.mode = a.mode == ops::IndexMode::clamp ? IndexMode::clamp : IndexMode::error;
  return make_step([p](const Launch& l) {
    Gather now = p;
    now.table = l.in[0];
    now.indices.data = l.in[1];
    now.y = l.out[0];
    gather(l.team, now);
  });
}

}  // namespace

void add_index(KernelTable& table) { table.add<ops::Gather>({"gather_rows", accepts, prepare}); }

}  // namespace rlx::cpu
