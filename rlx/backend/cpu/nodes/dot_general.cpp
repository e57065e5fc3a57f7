// Contractions over any axes as matrix products.
//
// Each operand is seen as [batch.., rows, columns]: its free axes joined into one, its contracted ones into
// the other. Where the strides do not allow that, it is copied into this order first.
#include "rlx/ops/linalg/dot_general.h"

#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/integer_products.h"
#include "rlx/backend/cpu/nodes/products.h"
#include "rlx/backend/cpu/nodes/wide.h"

namespace rlx::cpu {
namespace {

using Axes = std::vector<int>;

Axes free_axes(int rank, const Axes& contracting, const Axes& batch) {
  Axes out;
  for (int i = 0; i < rank; ++i) {
    const auto is_in = [&](const Axes& list) { return std::find(list.begin(), list.end(), i) != list.end(); };
    if (!is_in(contracting) && !is_in(batch)) out.push_back(i);
  }
  return out;
}

// Axes as one of this size and stride; no stride when they do not lie evenly.
struct Joined {
  int64_t size = 1;
  std::optional<int64_t> stride = 0;
};
Joined join(const Arg& x, const Axes& axes) {
  Joined out;
  bool first = true;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t size = x.shape.dim(axes[i]).value(), stride = x.layout.strides[size_t(axes[i])];
    if (size == 1) continue;
    if (first) {
      out.stride = stride;
      first = false;
    } else if (out.stride && stride != *out.stride * out.size) {
      out.stride.reset();
    }
    out.size *= size;
  }
  return out;
}

// An operand as a product reads it, and the copy that it needs for that.
struct Side {
  Arg arg;  // [batch.., rows, columns]
  std::optional<StridedCopy> copy;
  size_t bytes() const { return copy ? round_up(size_t(arg.shape.size_bytes())) : 0; }
};

Side side_of(const Arg& x, const Axes& batch, const Axes& rows, const Axes& columns) {
  const Joined r = join(x, rows), c = join(x, columns);
  Dims dims;
  for (const int axis : batch) dims.push_back(x.shape.dim(axis));
  dims.push_back(r.size);
  dims.push_back(c.size);
  Side side{.arg = {.shape = x.shape.with_dims(dims), .fixed = x.fixed}};
  if (r.stride && c.stride) {
    for (const int axis : batch) side.arg.layout.strides.push_back(x.layout.strides[size_t(axis)]);
    side.arg.layout.strides.push_back(*r.stride);
    side.arg.layout.strides.push_back(*c.stride);
    return side;
  }
  side.arg.fixed = false;
  side.arg.layout = ir::Layout::row_major(dims);
  StridedCopy copy{.element_bytes = int(dtype_size(x.dtype()))};
  Axes order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  int64_t stride = 1;
  copy.rank = int(order.size());
  for (size_t i = order.size(); i-- > 0;) {
    copy.size[i] = x.shape.dim(order[i]).value();
    copy.from_stride[i] = x.layout.strides[size_t(order[i])];
    copy.to_stride[i] = stride;
    stride *= copy.size[i];
  }
  side.copy = copy;
  return side;
}

struct Sides {
  Side a, b;
  Arg c;
};
Sides sides_of(const Request& r) {
  const auto& t = r.node.as<ops::DotGeneral>();
  const Arg &x = r.in[0], &y = r.in[1];
  const Axes rows = free_axes(x.shape.rank(), t.lhs_contracting, t.lhs_batch);
  const Axes columns = free_axes(y.shape.rank(), t.rhs_contracting, t.rhs_batch);
  Sides s{side_of(x, t.lhs_batch, rows, t.lhs_contracting),
          side_of(y, t.rhs_batch, t.rhs_contracting, columns),
          {}};
  Dims dims(s.a.arg.shape.dims().begin(), s.a.arg.shape.dims().end() - 1);
  dims.push_back(s.b.arg.shape.dim(-1));
  s.c = {.shape = r.out[0].shape.with_dims(dims), .layout = ir::Layout::row_major(dims)};
  return s;
}

Support accepts(const Request& r) {
  for (const Arg& x : r.in) {
    if (x.shape.rank() > StridedCopy::kMaxRank)
      return Support::no(x.shape.rank(), " axes, more than ", StridedCopy::kMaxRank);
  }
  if (const Support s = none_empty(r); !s) return s;
  const Support real = accepts_product(r.in[0], r.in[1], r.out[0]);
  return real ? real : accepts_integers(r);
}

// The product's own step runs on the operands, or their copies at the start of the workspace.
class DotStep final : public Step {
 public:
  DotStep(const Request& r, const Sides& s) : a_(s.a.copy), b_(s.b.copy), a_bytes_(s.a.bytes()) {
    const Arg in[] = {s.a.arg, s.b.arg};
    const Request product{
        .node = r.node, .in = in, .out = {&s.c, 1}, .threads = r.threads, .builder = r.builder};
    step_ = accepts_integers(r) ? prepare_integers(product)
                                : prepare_product(product, describe_product(s.a.arg, s.b.arg, s.c), {});
    before_ = a_bytes_ + s.b.bytes();
    workspace = before_ + step_->workspace;
    packings = step_->packings;
    note = step_->note;
  }

  void run(const Launch& l) const override {
    std::byte* in[] = {l.in[0], l.in[1]};
    if (a_) in[0] = copied(l, *a_, l.in[0], l.workspace);
    if (b_) in[1] = copied(l, *b_, l.in[1], l.workspace + a_bytes_);
    Launch inner = l;
    inner.in = in;
    inner.workspace = l.workspace + before_;
    step_->run(inner);
  }

 private:
  static std::byte* copied(const Launch& l, StridedCopy copy, const std::byte* from, std::byte* to) {
    copy.from = from;
    copy.to = to;
    strided_copy(l.team, copy);
    return to;
  }

  std::optional<StridedCopy> a_, b_;
  size_t a_bytes_, before_ = 0;
  std::unique_ptr<Step> step_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<DotStep>(r, sides_of(r)); }

}  // namespace

void add_dot_general(KernelTable& table) {
  table.add<ops::DotGeneral>({"dot_general_products", accepts, prepare});
  table.add<ops::DotGeneral>(wide_kernel<accepts, prepare>("dot_general_wide"));
}

}  // namespace rlx::cpu
