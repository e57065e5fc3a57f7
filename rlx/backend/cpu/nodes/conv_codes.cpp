// Bodies of codes (rlx/passes/quantise_codes.h): products and convolutions of 8-bit codes with what becomes of
// their sums, and extremes over windows of codes.
#include "rlx/backend/cpu/nodes/conv_codes.h"

#include <array>
#include <cmath>
#include <limits>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/conv/conv_codes.h"
#include "rlx/backend/cpu/nodes/packed.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/all.h"

namespace rlx::cpu {
namespace {

const std::vector<int> kToLast = {0, 2, 3, 1}, kToFirst = {0, 3, 1, 2};

/// What a body says; operands are x, w, mult, offset.
struct CodeBody {
  std::string refusal;
  const ir::Node* product = nullptr;  // conv2d, matmul or pool
  bool transposed = false;            // w of a matrix product
  int32_t x_zero = 0, w_zero = 0, y_zero = 0;
  std::optional<std::array<float, 2>> sum;  // multipliers of a sum of two operands of codes
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

class Reader {
 public:
  explicit Reader(const Request& r) : body_(*r.node.as<ops::Fused>().body), leaves_(body_.leaves()) {}

  CodeBody read() {
    if (body_.outputs().size() != 1) return refused("several results");
    ir::Value v = body_.outputs()[0];
    if (leaves_.size() == 1) return read_pool(v);
    if (leaves_.size() == 2) return read_result(v) && read_sum(v) ? out_ : refused("no sum of codes");
    if (leaves_.size() != 4) return refused("no product of codes");
    if (!read_result(v) || !read_scale(v)) return refused("no scaled sum of codes");
    if (!read_product(v)) return refused("no product of codes");
    return out_;
  }

 private:
  CodeBody refused(std::string_view why) {
    out_.refusal = why;
    return out_;
  }
  const ir::Node& node(ir::Value v) const { return body_.node(v); }
  bool is_leaf(ir::Value v, size_t i) const { return v.node == leaves_[i]; }

  std::optional<double> number(ir::Value v) const {
    const ir::Node& n = node(v);
    if (n.is<ir::Full>()) return n.as<ir::Full>().value;
    if (n.is<ir::Constant>() && n.shapes[0].elements() == 1) return n.as<ir::Constant>().value.real_at(0);
    return std::nullopt;
  }
  bool read_zero(ir::Value v, int32_t& zero) const {
    const auto z = number(v);
    if (!z || std::fabs(*z) > 255 || *z != std::nearbyint(*z)) return false;
    zero = int32_t(*z);
    return true;
  }

  // From the result down to sum * mult + offset.
  bool read_result(ir::Value& v) {
    if (node(v).shapes[0].dtype() == DType::f32) {
      if (!node(v).is<ops::Relu>()) return true;
      out_.least = 0;
      v = node(v).inputs[0];
      return true;
    }
    if (!node(v).is<ops::Cast>()) return false;
    v = node(v).inputs[0];
    if (!node(v).is<ops::Clamp>()) return false;
    const auto& clamp = node(v).as<ops::Clamp>();
    v = node(v).inputs[0];
    if (node(v).is<ops::Add>()) {
      if (!read_zero(node(v).inputs[1], out_.y_zero)) return false;
      v = node(v).inputs[0];
    }
    if (!node(v).is<ops::Round>()) return false;
    v = node(v).inputs[0];
    out_.least = float(clamp.lo - out_.y_zero), out_.most = float(clamp.hi - out_.y_zero);
    const bool is_signed = node(body_.outputs()[0]).shapes[0].dtype() == DType::i8;
    return clamp.lo >= (is_signed ? -128 : 0) && clamp.hi <= (is_signed ? 127 : 255);
  }

  bool read_scale(ir::Value& v) {
    if (!node(v).is<ops::Add>() || !is_leaf(node(v).inputs[1], 3)) return false;
    v = node(v).inputs[0];
    if (!node(v).is<ops::Mul>() || !is_leaf(node(v).inputs[1], 2)) return false;
    v = node(v).inputs[0];
    return true;
  }

  // codes - zero
  bool read_codes(ir::Value v, size_t leaf, int32_t& zero) const {
    if (node(v).is<ops::Sub>()) {
      if (!read_zero(node(v).inputs[1], zero)) return false;
      v = node(v).inputs[0];
    }
    if (!node(v).is<ops::Cast>() || node(v).shapes[0].dtype() != DType::f32) return false;
    const DType from = body_.shape(node(v).inputs[0]).dtype();
    return is_leaf(node(v).inputs[0], leaf) && (from == DType::u8 || from == DType::i8);
  }

  bool behind(ir::Value& v, const std::vector<int>& perm) const {
    if (!node(v).is<ops::Transpose>() || node(v).as<ops::Transpose>().perm != perm) return false;
    v = node(v).inputs[0];
    return true;
  }

  bool read_product(ir::Value v) {
    const bool last = behind(v, kToLast);
    const ir::Node& n = node(v);
    if (last ? !n.is<ops::Conv2d>() : !n.is<ops::Matmul>()) return false;
    out_.product = &n;
    ir::Value x = n.inputs[0], w = n.inputs[1];
    if (last && !behind(x, kToFirst)) return false;
    if (!last) out_.transposed = behind(w, {1, 0});
    return read_codes(x, 0, out_.x_zero) && read_codes(w, 1, out_.w_zero);
  }

  // codes * number + codes * number, of operands alike
  bool read_sum(ir::Value v) {
    if (!node(v).is<ops::Add>() || node(body_.outputs()[0]).shapes[0].dtype() == DType::f32) return false;
    int32_t* zeros[] = {&out_.x_zero, &out_.w_zero};
    out_.sum.emplace();
    for (size_t i = 0; i < 2; ++i) {
      ir::Value term = node(v).inputs[i];
      (*out_.sum)[i] = 1;
      if (node(term).is<ops::Mul>()) {
        const auto by = number(node(term).inputs[1]);
        if (!by) return false;
        (*out_.sum)[i] = float(*by);
        term = node(term).inputs[0];
      }
      if (!read_codes(term, i, *zeros[i])) return false;
      if (body_.node(leaves_[i]).shapes[0].dims() != node(v).shapes[0].dims()) return false;
    }
    return true;
  }

  CodeBody read_pool(ir::Value v) {
    if (!behind(v, kToLast) || !node(v).is<ops::Pool>()) return refused("no pool of codes");
    const ir::Node& n = node(v);
    ir::Value x = n.inputs[0];
    const DType t = n.shapes[0].dtype();
    if (!behind(x, kToFirst) || !is_leaf(x, 0) || (t != DType::u8 && t != DType::i8) ||
        n.as<ops::Pool>().kind != ops::ReduceOp::max || n.as<ops::Pool>().kernel_size.size() != 2)
      return refused("no maximum over windows of codes");
    out_.product = &n;
    return out_;
  }

  const ir::Graph& body_;
  std::vector<ir::NodeId> leaves_;
  CodeBody out_;
};

Support accepts(const Request& r) {
  const CodeBody body = Reader(r).read();
  if (!body.refusal.empty()) return Support::no(body.refusal);
  if (const Support s = none_empty(r); !s) return s;
  const bool conv = body.product != nullptr && body.product->is<ops::Conv2d>();
  for (size_t i = conv ? 1 : 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

// [n, height, width, channels] of x and y.
CodeConvShape image_shape(const Shape& x, const Shape& y) {
  CodeConvShape s{.batch = x.dim(0).value()};
  s.in_channels = x.dim(3).value(), s.out_channels = y.dim(3).value();
  for (int i = 0; i < 2; ++i)
    s.size[size_t(i)] = x.dim(i + 1).value(), s.out[size_t(i)] = y.dim(i + 1).value();
  return s;
}

/// A convolution and its shape, which a plan stands for.
struct Described {
  CodeConv conv;
  CodeConvShape shape;
};
Described describe(const Request& r, const CodeBody& body) {
  Described d;
  CodeConv& p = d.conv;
  CodeConvShape& s = d.shape;
  const Shape &x = r.in[0].shape, &w = r.in[1].shape, &y = r.out[0].shape;
  if (body.product->is<ops::Conv2d>()) {
    const auto& a = body.product->as<ops::Conv2d>();
    s = image_shape(x, y);
    s.groups = a.groups;
    for (size_t i = 0; i < 2; ++i) {
      s.kernel[i] = w.dim(int(i) + 2).value(), s.stride[i] = a.stride[i];
      s.dilation[i] = a.dilation[i], s.low[i] = a.padding[i];
    }
    const auto& strides = r.in[0].layout.strides;
    p.x.image = strides[0], p.x.row = strides[1], p.x.column = strides[2], p.x.channel = strides[3];
  } else {
    s.in_channels = x.dim(-1).value(), s.out_channels = y.dim(-1).value();
    s.size[1] = s.out[1] = x.elements() / s.in_channels;
    p.x.column = s.in_channels;
  }
  p.x.dtype = x.dtype(), p.x.zero = body.x_zero;
  p.y_dtype = y.dtype(), p.y_zero = body.y_zero, p.least = body.least, p.most = body.most;
  return d;
}

PackedCodeWeights::Source weights_of(const Request& r, const CodeBody& body) {
  const Shape& w = r.in[1].shape;
  PackedCodeWeights::Source s{.dtype = w.dtype(), .zero = body.w_zero};
  if (body.product->is<ops::Conv2d>()) {
    const int64_t taps = w.dim(2).value() * w.dim(3).value();
    s.filter = w.dim(1).value() * taps, s.channel = taps, s.row = w.dim(3).value(), s.column = 1;
  } else {
    s.filter = body.transposed ? w.dim(1).value() : 1;
    s.channel = body.transposed ? 1 : w.dim(1).value();
  }
  return s;
}

std::unique_ptr<Step> prepare_pool(const Request& r, const CodeBody& body) {
  const auto& a = body.product->as<ops::Pool>();
  CodePool p{.shape = image_shape(r.in[0].shape, r.out[0].shape), .dtype = r.in[0].dtype()};
  for (size_t i = 0; i < 2; ++i) {
    p.shape.kernel[i] = a.kernel_size[i], p.shape.stride[i] = a.stride[i];
    p.shape.low[i] = a.padding[i];
  }
  auto step = make_step([p](const Launch& l) {
    CodePool now = p;
    now.x = l.in[0], now.y = l.out[0];
    max_pool_codes(l.team, now);
  });
  step->note = "channels last";
  return step;
}

std::unique_ptr<Step> prepare_sum(const Request& r, const CodeBody& body) {
  CodeSum p{.n = r.out[0].shape.elements(), .a_dtype = r.in[0].dtype(), .b_dtype = r.in[1].dtype()};
  p.a_mult = (*body.sum)[0], p.b_mult = (*body.sum)[1];
  p.offset = -(p.a_mult * float(body.x_zero) + p.b_mult * float(body.w_zero));
  p.least = body.least, p.most = body.most, p.zero = body.y_zero;
  auto step = make_step([p](const Launch& l) {
    CodeSum now = p;
    now.a = l.in[0], now.b = l.in[1], now.y = l.out[0];
    sum_codes(l.team, now);
  });
  step->note = "sums of codes";
  return step;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const CodeBody body = Reader(r).read();
  if (body.sum) return prepare_sum(r, body);
  if (body.product->is<ops::Pool>()) return prepare_pool(r, body);
  const Described d = describe(r, body);
  const CodeConv& p = d.conv;
  const PackedCodeWeights::Source w = weights_of(r, body);
  const std::shared_ptr<const CodeLayout> plan =
      plan_conv_codes(d.shape, {p.x.dtype, p.x.zero}, {w.dtype, w.zero});
  Packing packing{.operand = 1};
  packing.form = cat("codes ", PackedCodeWeights::kLayoutVersion, " ", isa_name(current_isa()), " ",
                     PackedCodeWeights::form(*plan), " at ", w.filter, " ", w.channel, " zero ", w.zero);
  packing.bytes = int64_t(PackedCodeWeights::bytes(*plan));
  const PackedNow anew = add_makers<PackedCodeWeights>(
      packing, size_t(packing.bytes), [plan, w](Team team, const std::byte* data, std::byte* lent) {
        PackedCodeWeights::Source from = w;
        from.data = data;
        return PackedCodeWeights::pack(team, *plan, from, lent);
      });
  packing.bytes_of = [bytes = size_t(packing.bytes)](const void* form) {
    const auto* codes = static_cast<const PackedCodeWeights*>(form);
    return std::span(codes->data(), bytes);
  };
  packing.restore = [plan](Team, std::span<const std::byte> bytes) -> std::shared_ptr<const void> {
    return std::make_shared<const PackedCodeWeights>(PackedCodeWeights::from_bytes(*plan, bytes));
  };
  auto step = with_packed(r, packing, anew, conv_codes_workspace(*plan, r.threads),
                          [p, plan](const Launch& l, const void* weights) {
                            CodeConv now = p;
                            now.plan = plan.get();
                            now.x.data = l.in[0];
                            now.weights = static_cast<const PackedCodeWeights*>(weights);
                            now.mult = f32(l, 2), now.offset = f32(l, 3);
                            now.y = l.out[0];
                            conv_codes(l.team, now, l.workspace);
                          });
  step->note =
      cat("sums of ", p.x.dtype, " codes, ", d.shape.size[0] > 1 ? "channels last" : "packed weights");
  return step;
}

}  // namespace

// ---- pool as an operator ----

namespace {

Support accepts_planes(const Request& r) {
  const auto& a = r.node.as<ops::Pool>();
  const DType t = r.in[0].dtype();
  if (t != DType::u8 && t != DType::i8) return Support::no("x is ", t);
  if (a.kind != ops::ReduceOp::max || a.kernel_size.size() != 2 || r.in[0].shape.rank() != 4)
    return Support::no("no maximum over windows of images");
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_planes(const Request& r) {
  const auto& a = r.node.as<ops::Pool>();
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  CodePool p{.shape = {.batch = x.dim(0).value(), .in_channels = x.dim(1).value()}, .dtype = x.dtype()};
  for (size_t i = 0; i < 2; ++i) {
    p.shape.size[i] = x.dim(int(i) + 2).value(), p.shape.out[i] = y.dim(int(i) + 2).value();
    p.shape.kernel[i] = a.kernel_size[i], p.shape.stride[i] = a.stride[i], p.shape.low[i] = a.padding[i];
  }
  return make_step([p](const Launch& l) {
    CodePool now = p;
    now.x = l.in[0], now.y = l.out[0];
    max_pool_code_planes(l.team, now);
  });
}

}  // namespace

void add_conv_codes(KernelTable& table) {
  table.add<ops::Fused>({"codes", accepts, prepare});
  table.add<ops::Pool>({"pool_codes", accepts_planes, prepare_planes});
}

}  // namespace rlx::cpu
