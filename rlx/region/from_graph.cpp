#include "rlx/region/from_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/region/canonical.h"
#include "rlx/region/iteration.h"

namespace rlx::region {
namespace {

template <class... Args>
[[noreturn]] void refuse(const Args&... args) {
  throw Refused{cat(args...)};
}

// Operators that are one operation each.
const std::map<std::string_view, Op>& direct_ops() {
  using namespace ops;
  static const std::map<std::string_view, Op> table = {{Neg::name, Op::neg},
                                                       {Abs::name, Op::abs},
                                                       {Sign::name, Op::sign},
                                                       {Sqrt::name, Op::sqrt},
                                                       {Rsqrt::name, Op::rsqrt},
                                                       {Exp::name, Op::exp},
                                                       {Expm1::name, Op::expm1},
                                                       {Log::name, Op::log},
                                                       {Log1p::name, Op::log1p},
                                                       {Sin::name, Op::sin},
                                                       {Cos::name, Op::cos},
                                                       {Tan::name, Op::tan},
                                                       {Atan::name, Op::atan},
                                                       {Tanh::name, Op::tanh},
                                                       {Sigmoid::name, Op::sigmoid},
                                                       {Erf::name, Op::erf},
                                                       {Relu::name, Op::relu},
                                                       {Silu::name, Op::silu},
                                                       {Gelu::name, Op::gelu},
                                                       {GeluApprox::name, Op::gelu_tanh},
                                                       {Softplus::name, Op::softplus},
                                                       {Floor::name, Op::floor},
                                                       {Ceil::name, Op::ceil},
                                                       {Round::name, Op::round},
                                                       {Add::name, Op::add},
                                                       {Sub::name, Op::sub},
                                                       {Mul::name, Op::mul},
                                                       {Div::name, Op::div},
                                                       {Max::name, Op::max},
                                                       {Min::name, Op::min},
                                                       {Rem::name, Op::rem},
                                                       {Pow::name, Op::pow},
                                                       {LogicalAnd::name, Op::bit_and},
                                                       {LogicalOr::name, Op::bit_or},
                                                       {LogicalXor::name, Op::bit_xor},
                                                       {LogicalNot::name, Op::bit_not},
                                                       {BitwiseAnd::name, Op::bit_and},
                                                       {BitwiseOr::name, Op::bit_or},
                                                       {BitwiseXor::name, Op::bit_xor},
                                                       {BitwiseNot::name, Op::bit_not},
                                                       {ShiftLeft::name, Op::shift_left},
                                                       {ShiftRight::name, Op::shift_right}};
  return table;
}

bool is_narrow_float(DType t) { return t == DType::f16 || t == DType::bf16; }

// Whether the result of an operation on numbers of a narrow type is of that type without rounding.
bool keeps_type(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::relu:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::max:
    case Op::min:
    case Op::select:
    case Op::reduce_max:
    case Op::reduce_min:
      return true;
    default:
      return false;
  }
}

struct IntegerRange {
  int64_t low, high;
};
IntegerRange range_of(DType t) { return {saturate_to(t, -1e30), saturate_to(t, 1e30)}; }

class Builder {
 public:
  Builder(const ir::Graph& body, std::span<const Layout> operands, std::span<const Layout> results)
      : body_(body), axes_(body) {
    const auto leaves = body.leaves();
    for (size_t i = 0; i < leaves.size(); ++i) {
      argument_of_[leaves[i]] = int(i);
      add_argument(Role::in, body.node(leaves[i]).result(), i < operands.size() ? operands[i] : Layout());
    }
    for (size_t i = 0; i < body.outputs().size(); ++i)
      add_argument(Role::out, body.outputs()[i], i < results.size() ? results[i] : Layout());
    arrange(region_, axes_, layouts_, leading());
    width_ = width();
  }

  Region run() {
    for (const ir::Node* n : body_.nodes()) {
      if (body_.use_count(n->id) > 0 && !deferred(*n)) values_[n->result()] = emit(*n);
    }
    const size_t first = region_.arguments.size() - body_.outputs().size();
    for (size_t i = 0; i < body_.outputs().size(); ++i) store(i, int(first + i));
    return canonical(std::move(region_));
  }

 private:
  void add_argument(Role role, ir::Value v, const Layout& layout) {
    const Shape& shape = body_.shape(v);
    const auto classes = axes_.of(v);
    auto strides = layout.strides.empty() ? row_major_strides(shape.dims()) : layout.strides;
    if (strides.size() != classes.size()) refuse("a layout has ", strides.size(), " strides for ", shape);
    region_.arguments.push_back({.role = role, .dtype = shape.dtype()});
    layouts_.push_back({classes, strides});
  }

  // The argument whose order in memory the box follows: the largest input of a reduction, else a result.
  size_t leading() const {
    size_t best = region_.arguments.size() - body_.outputs().size();
    if (axes_.reduced().empty()) return best;
    size_t most = 0;
    for (size_t a = 0; a < best; ++a) {
      size_t moving = 0;
      for (size_t i = 0; i < layouts_[a].classes.size(); ++i)
        moving += layouts_[a].classes[i] >= 0 && layouts_[a].strides[i] != 0;
      if (moving > most) most = moving, best = a;
    }
    return best;
  }

  /// A leaf or cast that only its user makes something of: it decides nothing about the lanes.
  bool only_cast(const ir::Node& n) const {
    for (const ir::Use u : n.uses) {
      if (u.user == ir::kNoNode || !body_.node(u.user).is<ops::Cast>()) return false;
    }
    return n.op->traits.leaf;
  }
  // Lanes of f32 read an f64 rounded, which is what a cast to f32 means and no other one.
  bool read_rounded(const ir::Node& n) const {
    return n.shapes[0].dtype() != DType::f64 || std::all_of(n.uses.begin(), n.uses.end(), [&](ir::Use u) {
             return body_.shape(body_.node(u.user).result()).dtype() == DType::f32;
           });
  }
  bool narrowed_by_store(const ir::Node& n) const {
    if (!n.is<ops::Cast>() || n.shapes[0].dtype() != DType::f32) return false;
    if (body_.shape(n.inputs[0]).dtype() != DType::f64) return false;
    for (const ir::Use u : n.uses) {
      if (u.user != ir::kNoNode) return false;
    }
    return true;
  }

  int width() const {
    std::string wide, narrow;
    for (const ir::Node* n : body_.nodes()) {
      if (n->uses.empty() || (only_cast(*n) && read_rounded(*n)) || narrowed_by_store(*n)) continue;
      const DType t = n->shapes[0].dtype();
      if (is_complex(t) || is_storage_only(t)) refuse("%", n->id, " ", n->op->name, " computes in ", t);
      if (t == DType::f64 || t == DType::i64 || t == DType::u32) wide = dtype_name(t);
      if (is_float(t) && t != DType::f64) narrow = dtype_name(t);
    }
    if (!wide.empty() && !narrow.empty()) refuse("it computes in ", narrow, " and in ", wide);
    return wide.empty() ? 4 : 8;
  }

  Lane lane_of(DType t) const {
    if (t == DType::bool_) return Lane::mask;
    if (is_float(t)) return width_ == 8 ? Lane::f64 : Lane::f32;
    return width_ == 8 ? Lane::i64 : Lane::i32;
  }

  // ---- instructions ----

  int add(Op op, Lane lane, std::initializer_list<int> operands) {
    Instruction i{.op = op, .lane = lane, .per_row = true};
    size_t k = 0;
    for (const int o : operands) {
      i.operands[k++] = o;
      i.per_row = i.per_row && region_.code[size_t(o)].per_row;
    }
    return region_.add(i);
  }
  int real(DType t, double v) {
    return region_.add({.op = Op::constant,
                        .lane = lane_of(t),
                        .per_row = true,
                        .constant = {Literal::scalar(t, v).real_at(0), 0}});
  }
  int integer(int64_t v) {
    return region_.add({.op = Op::constant,
                        .lane = width_ == 8 ? Lane::i64 : Lane::i32,
                        .per_row = true,
                        .constant = {0, v}});
  }
  Lane lane(int n) const { return region_.code[size_t(n)].lane; }

  int load(ir::NodeId leaf, Lane lane) {
    const int a = argument_of_.at(leaf);
    const Argument& from = region_.arguments[size_t(a)];
    if (!can_load(from.dtype, lane)) refuse("it cannot read ", from.dtype, " as ", lane_name(lane));
    return region_.add({.op = Op::load, .lane = lane, .per_row = region_.is_per_row(from), .argument = a});
  }

  int operand(const ir::Node& n, size_t k) { return values_.at(n.inputs[k]); }

  /// Brings a result into the range of its type, where the lane is wider.
  int fitted(int v, Op op, DType t) {
    if (is_narrow_float(t) && !keeps_type(op))
      return add(t == DType::f16 ? Op::round_f16 : Op::round_bf16, Lane::f32, {v});
    if (!is_integer(t) || op == Op::max || op == Op::min || op == Op::select || op == Op::reduce_max ||
        op == Op::reduce_min || int(dtype_size(t)) == width_)
      return v;
    const int bits = 8 * int(dtype_size(t));
    if (t == DType::u8 || t == DType::u32)
      return add(Op::bit_and, lane(v), {v, integer((int64_t(1) << bits) - 1)});
    const int shift = integer(8 * width_ - bits);
    return add(Op::shift_right, lane(v), {add(Op::shift_left, lane(v), {v, shift}), shift});
  }

  int clamped(int v, DType t) {
    const IntegerRange r = range_of(t);
    return add(Op::min, lane(v), {integer(r.high), add(Op::max, lane(v), {integer(r.low), v})});
  }

  int is_not_zero(int v) {
    if (lane(v) == Lane::mask) return v;
    const int zero = is_float(lane(v)) ? real(width_ == 8 ? DType::f64 : DType::f32, 0) : integer(0);
    return add(Op::ne, Lane::mask, {v, zero});
  }

  // Leaves that only casts read are loaded by the casts; a last rounding to f32 is left to the store.
  bool deferred(const ir::Node& n) const { return only_cast(n); }

  int emit(const ir::Node& n) {
    const DType t = n.shapes[0].dtype();
    if (n.op->traits.leaf) return load(n.id, lane_of(t));
    if (n.is<ir::Full>()) return constant(Literal::scalar(t, n.as<ir::Full>().value));
    if (n.is<ir::Constant>()) return constant(n.as<ir::Constant>().value);
    if (n.is<ops::Expand>() || n.is<ops::Reshape>() || n.is<ops::Transpose>() || n.is<ops::StopGradient>())
      return operand(n, 0);
    if (n.is<ops::Cast>()) return cast(n);
    if (n.is<ops::Compare>()) {
      const Op op = Op(int(Op::eq) + int(n.as<ops::Compare>().kind));
      return compare(op, operand(n, 0), operand(n, 1));
    }
    if (n.is<ops::Where>())
      return add(Op::select, lane_of(t), {is_not_zero(operand(n, 0)), operand(n, 1), operand(n, 2)});
    if (n.is<ops::Clamp>()) return clamp(n);
    if (n.is<ops::IsNan>()) return add(Op::ne, Lane::mask, {operand(n, 0), operand(n, 0)});
    if (n.is<ops::IsFinite>()) {
      const int magnitude = add(Op::abs, lane(operand(n, 0)), {operand(n, 0)});
      return add(Op::lt, Lane::mask, {magnitude, real(DType::f64, INFINITY)});
    }
    if (n.is<ops::Reduce>()) return reduce(n);
    const auto found = direct_ops().find(n.op->name);
    if (found == direct_ops().end()) refuse("%", n.id, " ", n.op->name, " has no operation of its own");
    const Op op = found->second;
    const int v = n.inputs.size() == 1 ? add(op, lane_of(t), {operand(n, 0)})
                                       : add(op, lane_of(t), {operand(n, 0), operand(n, 1)});
    return fitted(v, op, t);
  }

  // Masks compare as 0 and 1.
  int compare(Op op, int a, int b) {
    if (lane(a) == Lane::mask) {
      const Lane number = width_ == 8 ? Lane::i64 : Lane::i32;
      a = add(Op::convert, number, {a}), b = add(Op::convert, number, {b});
    }
    return add(op, Lane::mask, {a, b});
  }

  int constant(const Literal& value) {
    const auto bytes = value.bytes();
    const size_t size = dtype_size(value.dtype());
    if (bytes.size() > size && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0)
      refuse("a constant ", value.shape(), " of different values; give it as an operand");
    const DType t = value.dtype();
    Instruction i{.op = Op::constant, .lane = lane_of(t), .per_row = true};
    if (value.elements() > 0) {
      if (is_float(t)) i.constant.real = value.real_at(0);
      if (!is_float(t)) i.constant.integer = value.integer_at(0);
    }
    return region_.add(i);
  }

  int cast(const ir::Node& n) {
    const ir::Node& source = body_.node(n.inputs[0]);
    const DType from = body_.shape(n.inputs[0]).dtype(), to = n.shapes[0].dtype();
    const bool wide_integer = is_integer(from) && dtype_size(from) > 2;
    if (wide_integer && is_narrow_float(to))
      refuse("%", n.id, " cast from ", from, " to ", to, " would round twice");
    if (deferred(source)) {
      if (to != DType::bool_ && from != DType::bool_ && is_float(to) && can_load(from, lane_of(to)))
        return fitted(load(source.id, lane_of(to)), is_narrow_float(from) && from == to ? Op::max : Op::load,
                      to);
      if (!can_load(from, lane_of(from)))
        refuse("%", n.id, " cast from ", from, " to ", to, " in lanes of ", width_, " bytes");
      return converted(load(source.id, lane_of(from)), from, to);
    }
    return converted(values_.at(n.inputs[0]), from, to);
  }

  int converted(int v, DType from, DType to) {
    if (to == DType::bool_) return is_not_zero(v);
    const Lane target = lane_of(to);
    if (from == DType::bool_) return add(Op::convert, target, {v});
    if (is_float(from) && is_float(to)) {
      // To a wider type exactly; f64 to f32 is left to the store.
      return is_narrow_float(to) && from != to ? fitted(v, Op::convert, to) : v;
    }
    if (is_float(to)) return fitted(add(Op::convert, target, {v}), Op::convert, to);
    if (is_float(from)) v = add(Op::convert, target, {v});
    const IntegerRange a = range_of(from), b = range_of(to);
    const bool inside = is_integer(from) && b.low <= a.low && a.high <= b.high;
    return inside || (is_float(from) && int(dtype_size(to)) == width_) ? v : clamped(v, to);
  }

  int clamp(const ir::Node& n) {
    const auto& a = n.as<ops::Clamp>();
    const DType t = n.shapes[0].dtype();
    int v = operand(n, 0);
    const auto bound = [&](double b) { return is_float(t) ? real(t, b) : integer(saturate_to(t, b)); };
    // The bound is the first operand: where it equals x, x is the result.
    if (a.lo != -INFINITY) v = add(Op::max, lane(v), {bound(a.lo), v});
    if (a.hi != INFINITY) v = add(Op::min, lane(v), {bound(a.hi), v});
    return v;
  }

  int reduce(const ir::Node& n) {
    const auto& a = n.as<ops::Reduce>();
    const Shape& x = body_.shape(n.inputs[0]);
    const DType t = n.shapes[0].dtype();
    const auto classes = axes_.of(n.inputs[0]);
    int64_t count = 1;
    bool moves = false;
    for (const int axis : a.axes) {
      count *= x.dim(axis).value();
      moves = moves || classes[size_t(axis)] >= 0;
    }
    int v = operand(n, 0);
    if (!moves) return v;  // of one element each
    const Op op = a.kind == ops::ReduceOp::max    ? Op::reduce_max
                  : a.kind == ops::ReduceOp::min  ? Op::reduce_min
                  : a.kind == ops::ReduceOp::prod ? Op::reduce_prod
                                                  : Op::reduce_sum;
    Instruction i{.op = op, .lane = lane(v), .per_row = true, .operands = {v, -1, -1}};
    i.constant = start_of(op, t);
    v = region_.add(i);
    if (a.kind == ops::ReduceOp::mean)
      v = add(Op::div, lane(v), {v, real(width_ == 8 ? DType::f64 : DType::f32, double(count))});
    return fitted(v, op, t);
  }

  static Constant start_of(Op op, DType t) {
    if (op == Op::reduce_sum) return {0, 0};
    if (op == Op::reduce_prod) return {1, 1};
    const bool max = op == Op::reduce_max;
    if (is_float(t)) return {max ? -INFINITY : INFINITY, 0};
    const IntegerRange r = range_of(t);
    return {0, max ? r.low : r.high};
  }

  void store(size_t output, int argument) {
    const ir::Value v = body_.outputs()[output];
    const auto classes = axes_.of(v);
    const std::set<int> has(classes.begin(), classes.end()), columns = axes_.reduced();
    size_t across = 0;
    for (const int c : axes_.all()) {
      if (columns.contains(c)) {
        across += has.contains(c);
      } else if (!has.contains(c)) {
        refuse("result ", output, " ", body_.shape(v), " spans a part of the box only");
      }
    }
    if (across != 0 && across != columns.size())
      refuse("result ", output, " ", body_.shape(v), " spans a part of the columns only");
    const ir::Node& n = body_.node(v);
    const int value = deferred(n) ? load(n.id, lane_of(body_.shape(v).dtype())) : values_.at(v);
    const Argument& to = region_.arguments[size_t(argument)];
    for (int d = 0; d < region_.rank(); ++d) {
      const bool column = d >= region_.row_rank;
      if (to.strides[size_t(d)] == 0 && region_.dims[size_t(d)] > 1 &&
          (!column || across > 0 || columns.empty()))
        refuse("result ", output, " repeats an element in memory");
    }
    if (!can_store(lane(value), to.dtype))
      refuse("it cannot write ", lane_name(lane(value)), " as ", to.dtype);
    Instruction i{.op = Op::store, .lane = lane(value), .per_row = region_.is_per_row(to)};
    i.operands[0] = value;
    i.argument = argument;
    region_.add(i);
  }

  const ir::Graph& body_;
  AxisClasses axes_;
  Region region_;
  std::vector<AxisStrides> layouts_;
  std::map<ir::NodeId, int> argument_of_;
  ir::ValueMap<int> values_;
  int width_ = 4;
};

}  // namespace

Built from_graph(const ir::Graph& body, std::span<const Layout> operands, std::span<const Layout> results) {
  for (const ir::Value v : body.outputs()) {
    if (body.shape(v).is_static() && body.shape(v).elements() == 0)
      return {std::nullopt, "a result has no elements"};
  }
  try {
    Region r = Builder(body, operands, results).run();
    const auto wrong = problem(r);
    RLX_CHECK(!wrong, "region: ", *wrong);
    return {std::move(r), {}};
  } catch (const Refused& refused) {
    return {std::nullopt, refused.reason};
  }
}

}  // namespace rlx::region
