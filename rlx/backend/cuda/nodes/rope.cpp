// Rotary position encoding and its gradient.
#include "rlx/ops/attention/rope.h"

#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/row_moves.h"

namespace rlx::cuda {

RowMove row_move_of(const ops::RopeAttrs& a, const Arg& x, const Arg& table, const Arg* positions,
                    const RopeMembers& members, std::string& problem) {
  if (a.n_rot > 0 && a.n_rot != a.head_dim) problem = "some lanes pass";
  RowMove m;
  m.dtype = x.dtype();
  m.x = lanes_of(x, a);
  m.from = members.x;
  m.turns = true;
  m.interleaved = a.interleaved;
  m.table_rows = table.shape.dim(0).value();
  m.table_columns = table.shape.dim(1).value();
  m.table_type = table.dtype();
  m.cosines = members.cosines, m.sines = members.sines, m.positions = members.positions;
  if (positions) {
    m.position_type = positions->dtype();
    m.positions_by_batch = positions->shape.rank() == 2;
  }
  return m;
}

namespace {

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return Support::no("no rotation of ", t);
  if (r.in[0].shape.rank() < 4 && r.in[0].layout.strides.back() != 1)
    return Support::no("the lanes of x are not neighbours");
  for (size_t i = 1; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  if (r.in.size() > 3 && !is_integer(r.in[3].dtype())) return Support::no("positions are ", r.in[3].dtype());
  return Support::yes();
}

// A thread for each lane reads its pair: own c - other s for the first of it, own c + other s for the second.
std::string body_of(const Request& r, const ops::RopeAttrs& a, bool inverse) {
  const Lanes x = lanes_of(r.in[0], a), y = lanes_of(r.out[0], a);
  const int64_t rotated = a.n_rot > 0 ? a.n_rot : a.head_dim, half = rotated / 2;
  const int64_t columns = r.in[1].shape.dim(1).value(), rows = r.in[1].shape.dim(0).value();
  std::string out = cat("  const auto own = x[", offset_text(x.strides), "];\n  auto& to = y[",
                        offset_text(y.strides), "];\n");
  if (rotated < a.head_dim) out += cat("  if (i3 >= ", rotated, ") { to = own; return; }\n");
  out += a.interleaved ? "  const i64 pair = i3 / 2, o3 = i3 ^ 1;\n  const bool second = i3 % 2;\n"
                       : cat("  const bool second = i3 >= ", half, ";\n  const i64 pair = second ? i3 - ",
                             half, " : i3, o3 = second ? i3 - ", half, " : i3 + ", half, ";\n");
  std::vector<int64_t> fixed = x.strides;
  const int64_t step = fixed[3];
  fixed[3] = 0;
  out += cat("  const f32 other = as_f32(x[", offset_text(fixed), " + o3 * i64(", step, ")]);\n");
  if (r.in.size() > 3) {
    const bool by_batch = r.in[3].shape.rank() == 2;
    out += cat("  const i64 which = ", by_batch ? cat("i0 * ", x.sizes[1], " + ") : "", "i1;\n",
               "  const i64 place = i64(positions[which]);\n  if (place < 0 || place >= ", rows,
               ") { *fault = (number << 40) + u64(which); return; }\n");
  } else {
    out += "  const i64 place = i1;\n";
  }
  out += cat("  const f32 c = as_f32(cosines[place * ", columns, " + pair]), s = ", inverse ? "-" : "",
             "as_f32(sines[place * ", columns, " + pair]);\n",
             "  put(to, second ? as_f32(own) * c + other * s : as_f32(own) * c - other * s);\n");
  return out;
}

std::unique_ptr<Step> prepare_lanes(const Request& r, const ops::RopeAttrs& a, bool inverse) {
  const int64_t count = r.out[0].shape.elements();
  const std::string_view t = memory_type(r.in[0].dtype());
  const bool placed = r.in.size() > 3;
  const std::string parameters =
      cat("const ", t, "* x, const ", memory_type(r.in[1].dtype()), "* cosines, const ",
          memory_type(r.in[2].dtype()), "* sines, ",
          placed ? cat("const ", r.in[3].dtype(), "* positions, ") : "", t, "* y, u64* fault, u64 number");
  const FunctionRef f = device_of(r).functions().get(
      element_kernel("rope", lanes_of(r.in[0], a).sizes, parameters, body_of(r, a, inverse)));
  const uint64_t number =
      new_fault(cat("rope: element % of positions is out of range; it must be at least 0 and below ",
                    r.in[1].shape.dim(0)));
  return make_gpu_step("a thread for each lane", [=](Stream& s, const Launch& l) {
    if (placed) {
      (*f)(s.handle, blocks_for(count), {256}, 0, l.in[0], l.in[1], l.in[2], l.in[3], l.out[0], s.fault,
           number);
    } else {
      (*f)(s.handle, blocks_for(count), {256}, 0, l.in[0], l.in[1], l.in[2], l.out[0], s.fault, number);
    }
  });
}

template <class Op, bool Inverse>
std::unique_ptr<Step> prepare(const Request& r) {
  const ops::RopeAttrs& a = r.node.as<Op>();
  if (r.out[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const bool placed = r.in.size() > 3;
  std::string problem;
  RowMove m = row_move_of(a, r.in[0], r.in[1], placed ? &r.in[3] : nullptr, {0, 1, 2, placed ? 3 : kNoMember},
                          problem);
  m.inverse = Inverse;
  m.to = -1;
  const Lanes y = lanes_of(r.out[0], a);
  m.to_strides = y.strides;
  if (problem.empty())
    problem = y.strides[3] != 1 || r.in[2].dtype() != m.table_type ? "mixed" : problem_of(m);
  if (!problem.empty()) return prepare_lanes(r, a, Inverse);
  auto moves = std::make_shared<const RowMoves>(device_of(r), std::vector{m});
  return make_gpu_step("a thread for some pairs", [moves](Stream&, const Launch& l) { moves->run(l); });
}

}  // namespace

void add_rope(KernelTable& table) {
  table.add<ops::Rope>({"rope", accepts, prepare<ops::Rope, false>});
  table.add<ops::RopeBackward>({"rope", accepts, prepare<ops::RopeBackward, true>});
}

}  // namespace rlx::cuda
