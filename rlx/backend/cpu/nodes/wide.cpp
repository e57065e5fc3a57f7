#include "rlx/backend/cpu/nodes/wide.h"

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/vm/program.h"
#include "rlx/base/aligned.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/region/from_graph.h"

namespace rlx::cpu {
namespace {

// The same elements in another type, both row-major.
RegionProgram conversion(const Shape& from, DType to) {
  const int64_t count = from.elements();
  ir::Graph body("convert");
  const ir::Expr x{&body, body.input("x", Shape(from.dtype(), {count}))};
  body.set_outputs({ops::cast(x, to)});
  const region::Layout line{{1}};
  const region::Layout layouts[] = {line};
  const region::Built built = region::from_graph(body, layouts, layouts);
  RLX_CHECK(bool(built), "no conversion from ", from.dtype(), " to ", to, ": ", built.refusal);
  return RegionProgram(*built.region);
}

struct WideArgs {
  std::vector<Arg> in, out;
  bool any = false;
};
WideArgs widened(const Request& r, unsigned kept) {
  WideArgs w;
  const auto widen = [&](const Arg& x) {
    const DType t = wide_dtype(x.dtype());
    if (t == x.dtype()) return x;
    w.any = true;
    return Arg{
        .shape = x.shape.with_dtype(t), .layout = ir::Layout::row_major(x.shape.dims()), .fixed = x.fixed};
  };
  for (size_t i = 0; i < r.in.size(); ++i) w.in.push_back((kept >> i & 1u) ? r.in[i] : widen(r.in[i]));
  for (const Arg& y : r.out) w.out.push_back(widen(y));
  return w;
}

// Integers keep their low bits: sums that wrapped in the wide type are what they would be in the narrow one.
template <class From, class To>
void cut(Team team, const std::byte* from, std::byte* to, int64_t count) {
  team.parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      reinterpret_cast<To*>(to)[i] = To(reinterpret_cast<const From*>(from)[i]);
  });
}
void cut_integers(Team team, DType to_dtype, const std::byte* from, std::byte* to, int64_t count) {
  switch (to_dtype) {
    case DType::u32:
      return cut<int64_t, uint32_t>(team, from, to, count);
    case DType::i16:
      return cut<int32_t, int16_t>(team, from, to, count);
    default:
      return cut<int32_t, uint8_t>(team, from, to, count);  // i8, u8, bool
  }
}

// One operand or result that is converted, and where its wide form lies in the workspace. Without a program a
// result is cut off.
struct Converted {
  size_t index;
  std::shared_ptr<const RegionProgram> program;
  size_t offset;
  Shape to;
};

class WideStep final : public Step {
 public:
  WideStep(const Request& r, Prepare prepare, unsigned kept) : inputs_(r.in.size()), results_(r.out.size()) {
    const WideArgs w = widened(r, kept);
    inner_ = prepare({.node = r.node, .in = w.in, .out = w.out, .threads = r.threads, .builder = r.builder});
    std::vector<bool> packed(inputs_, false);
    for (const Packing& p : inner_->packings) packed[size_t(p.operand)] = true;
    workspace = round_up((inputs_ + results_) * sizeof(std::byte*));
    for (size_t i = 0; i < inputs_; ++i) {
      if (w.in[i].dtype() != r.in[i].dtype() && !packed[i])
        in_.push_back(converted(i, r.in[i].shape, w.in[i].shape));
    }
    for (size_t i = 0; i < results_; ++i) {
      if (w.out[i].dtype() != r.out[i].dtype()) out_.push_back(converted(i, w.out[i].shape, r.out[i].shape));
    }
    scratch_ = workspace;
    for (const auto* list : {&in_, &out_}) {
      for (const Converted& c : *list) {
        if (c.program) workspace = std::max(workspace, scratch_ + c.program->workspace(r.threads));
      }
    }
    workspace = std::max(workspace, scratch_ + inner_->workspace);
    for (const Packing& p : inner_->packings) packings.push_back(widened_packing(p, r, w));
    note = inner_->note.empty() ? "in wider types" : cat(inner_->note, ", in wider types");
  }

  void run(const Launch& l) const override {
    auto** addresses = reinterpret_cast<std::byte**>(l.workspace);
    for (size_t i = 0; i < inputs_; ++i) addresses[i] = l.in[i];
    for (size_t i = 0; i < results_; ++i) addresses[inputs_ + i] = l.out[i];
    for (const Converted& c : in_) {
      addresses[c.index] = l.workspace + c.offset;
      convert(l, c, l.in[c.index], addresses[c.index]);
    }
    for (const Converted& c : out_) addresses[inputs_ + c.index] = l.workspace + c.offset;
    Launch inner = l;
    inner.in = addresses;
    inner.out = addresses + inputs_;
    inner.workspace = l.workspace + scratch_;
    inner_->run(inner);
    for (const Converted& c : out_) convert(l, c, l.workspace + c.offset, l.out[c.index]);
  }

 private:
  Converted converted(size_t index, const Shape& from, const Shape& to) {
    const size_t at = workspace;
    workspace += round_up(size_t(std::max(from.size_bytes(), to.size_bytes())));
    const bool cuts = !is_float(to.dtype()) && dtype_size(to.dtype()) < dtype_size(from.dtype());
    return {index, cuts ? nullptr : std::make_shared<const RegionProgram>(conversion(from, to.dtype())), at,
            to};
  }

  void convert(const Launch& l, const Converted& c, std::byte* from, std::byte* to) const {
    if (!c.program) return cut_integers(l.team, c.to.dtype(), from, to, c.to.elements());
    std::byte* const arguments[] = {from, to};
    c.program->run(l.team, arguments, l.workspace + scratch_);
  }

  // A weight is widened before it is packed, once.
  static Packing widened_packing(const Packing& p, const Request& r, const WideArgs& w) {
    const auto i = size_t(p.operand);
    if (w.in[i].dtype() == r.in[i].dtype()) return p;
    Packing out = p;
    out.form = cat(p.form, " from ", r.in[i].dtype());
    out.make = [make = p.make, from = r.in[i].shape, to = w.in[i].shape](Team team, const std::byte* data) {
      const RegionProgram program = conversion(from, to.dtype());
      const AlignedBytes wide = allocate_aligned(size_t(to.size_bytes()));
      const AlignedBytes scratch = allocate_aligned(program.workspace(team.threads()));
      std::byte* const arguments[] = {const_cast<std::byte*>(data), wide.get()};
      program.run(team, arguments, scratch.get());
      return make(team, wide.get());
    };
    return out;
  }

  size_t inputs_, results_;
  std::unique_ptr<Step> inner_;
  std::vector<Converted> in_, out_;
  size_t scratch_ = 0;  // behind the wide forms
};

}  // namespace

DType wide_dtype(DType t) {
  switch (t) {
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    case DType::i8:
    case DType::i16:
    case DType::u8:
    case DType::bool_:
      return DType::i32;
    case DType::u32:
      return DType::i64;
    default:
      return t;
  }
}

Support accepts_wide(const Request& r, Accepts accepts, unsigned kept) {
  const WideArgs w = widened(r, kept);
  if (!w.any) return Support::no("no operand is of a narrow type");
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (w.in[i].dtype() != r.in[i].dtype() && !r.in[i].is_row_major())
      return Support::no("operand ", i, " is strided");
  }
  if (const Support s = none_empty(r); !s) return s;
  return accepts({.node = r.node, .in = w.in, .out = w.out, .threads = r.threads, .builder = r.builder});
}

std::unique_ptr<Step> prepare_wide(const Request& r, Prepare prepare, unsigned kept) {
  return std::make_unique<WideStep>(r, prepare, kept);
}

}  // namespace rlx::cpu
