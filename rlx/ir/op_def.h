// The record of an operator: everything the rest of the system may ask of it. Records are built from
// operator structs by rlx/ir/op_record.h; nothing switches on operator names.
#pragma once

#include <array>
#include <concepts>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/attr.h"
#include "rlx/ir/layout.h"
#include "rlx/ir/value.h"

namespace rlx::ir {

struct OpDef;
struct Node;
class Interpreter;

/// Two extents that must be equal, and who asked for it: a node, or kNoNode for the graph itself.
struct Constraint {
  Dim a, b;
  NodeId node = kNoNode;
  std::string what;  // completes "what differ, A and B"
};

/// What `infer` sees. Operands are types; the rule checks them, brings the attributes into canonical form
/// and returns the result types.
class Infer {
 public:
  /// `equations` takes what must be equal and is not plain; null where all sizes are numbers.
  Infer(const OpDef& op, std::span<const Shape> in, std::vector<Constraint>* equations)
      : op_(op), in_(in), equations_(equations) {}

  /// Operands that are there.
  int count() const { return int(in_.size()); }
  /// The type of operand i.
  const Shape& in(int i) const;
  std::span<const Shape> in() const { return in_; }

  /// Throws a user error: the operator's name, then the message.
  template <class... Args>
  [[noreturn]] void fail(const Args&... args) const {
    fail_text(cat(args...));
  }
  /// The common extent of two axes that must agree. Where that is not plain, the graph makes them one size
  /// and infers again, or keeps the equation for binding. `what` completes "what differ, A and B".
  Dim same(Dim a, Dim b, std::string_view what);
  /// NumPy broadcasting of extents; the dtypes are not looked at. A symbol never stands for a broadcast 1:
  /// it is one size with what it meets.
  Dims broadcast(const Shape& a, const Shape& b);
  /// Canonical axis, or an error naming operand i.
  int axis(int axis, int i) const;
  std::vector<int> axes(std::vector<int> axes, int i) const;  // sorted, unique
  /// All operands listed must have one dtype; the error says what to cast.
  void same_dtype(std::initializer_list<int> operands) const;
  // Refuses operand i unless its type is such.
  void require_rank(int i, int rank) const;
  void require_min_rank(int i, int rank) const;
  void require_float(int i) const;  // f16, bf16, f32, f64
  void require_float_or_complex(int i) const;
  void require_numeric(int i) const;  // not bool, not fp8
  /// Index operands: any integer, or for compatibility f32 and f64 holding whole numbers.
  void require_index(int i) const;
  /// As messages call it.
  std::string operand_name(int i) const;

 private:
  [[noreturn]] void fail_text(std::string text) const;
  const OpDef& op_;
  std::span<const Shape> in_;
  std::vector<Constraint>* equations_;
};

/// What `reference` sees: operand values and the inferred result types, all static.
struct Eval {
  std::span<const Literal> operands;
  std::span<const Shape> results;
  Interpreter& interpreter;

  // Operand i, the type of result i, the number of operands.
  const Literal& in(int i) const { return operands[size_t(i)]; }
  const Shape& out(int i = 0) const { return results[size_t(i)]; }
  int count() const { return int(operands.size()); }
  /// Runs a body on positional operands.
  Literals run(const GraphRef& body, std::span<const Literal> in) const;
};

/// What blocks decompose into. direct: fused operators, for running as it is; fusable: primitives, for
/// derivatives and for the compiler's own fusion.
enum class FusionPolicy { direct, fusable };
/// As texts write them.
constexpr std::array<std::string_view, 2> choice_names(FusionPolicy) { return {"direct", "fusable"}; }

/// What `decompose` sees: emit an equivalent in `graph`, return its results.
struct Lower {
  Graph& graph;
  std::span<const Value> operands;
  std::span<const Shape> results;
  FusionPolicy policy = FusionPolicy::direct;

  // Operand i, whether it was given, the number of operands, the type of result i.
  Expr in(int i) const { return {&graph, operands[size_t(i)]}; }
  bool has(int i) const { return i < count(); }
  int count() const { return int(operands.size()); }
  const Shape& out(int i = 0) const { return results[size_t(i)]; }
};

/// Derivatives and batching of bodies. The transforms hand themselves to the rules of control flow through
/// this, so that operators need not know them.
class BodyTransforms {
 public:
  virtual ~BodyTransforms() = default;

  /// A body cut in two. `forward` maps the leaves to the outputs and then the residuals; `backward` maps the
  /// leaves, the residuals and one cotangent per seeded output to one gradient per wanted leaf.
  struct Split {
    GraphRef forward, backward;
    Shapes residuals;
  };
  /// With `recompute` there are no residuals: backward runs the body again from its leaves.
  virtual Split split_vjp(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& seeded,
                          bool recompute) const = 0;
  /// Leaves and one tangent per active leaf -> outputs, then one tangent per differentiable output.
  virtual GraphRef jvp(const Graph& body, const std::vector<bool>& active) const = 0;
  /// Batched leaves carry the batch as axis 0; so does every output.
  virtual GraphRef vmap(const Graph& body, const std::vector<bool>& batched, Dim size) const = 0;
};

/// What `vjp` sees. It returns one gradient per operand; an empty Expr is zero.
struct Vjp {
  Graph& graph;
  std::span<const Value> operands, results;
  std::span<const Expr> cotangents;  // empty Expr: zero
  const std::vector<bool>& wanted;   // per operand: somebody asks for this gradient
  const BodyTransforms& bodies;
  /// A rule that makes the results anew, together with what its gradient needs, puts them here; they take
  /// the place of the node's results, which then costs nothing twice.
  Exprs& replacements;

  // Operand i, result i, the number of operands, whether somebody used result i.
  Expr in(int i) const { return {&graph, operands[size_t(i)]}; }
  Expr out(int i = 0) const { return {&graph, results[size_t(i)]}; }
  int count() const { return int(operands.size()); }
  bool has_dy(int i) const { return bool(cotangents[size_t(i)]); }
  /// The cotangent of result i, made of zeros when nobody used it.
  Expr dy(int i = 0) const;
  /// Whether somebody asks for the gradient of operand i.
  bool wants(int i) const { return i < count() && wanted[size_t(i)]; }
};

/// What `jvp` sees. It returns one tangent per result; an empty Expr is zero.
struct Jvp {
  Graph& graph;
  std::span<const Value> operands, results;
  std::span<const Expr> tangents;  // empty Expr: zero
  const BodyTransforms& bodies;
  Exprs& replacements;  // as in Vjp

  // Operand i, result i, the number of operands, whether operand i has a tangent.
  Expr in(int i) const { return {&graph, operands[size_t(i)]}; }
  Expr out(int i = 0) const { return {&graph, results[size_t(i)]}; }
  int count() const { return int(operands.size()); }
  bool has_dx(int i) const { return i < count() && bool(tangents[size_t(i)]); }
  Expr dx(int i) const;  // zeros when there is none
};

/// What `vmap` sees: batched operands carry the batch as axis 0, shared ones do not have it. Every result
/// must carry it as axis 0.
struct Vmap {
  Graph& graph;
  std::span<const Value> operands;
  const std::vector<bool>& is_batched;
  Dim size;
  const BodyTransforms& bodies;

  // Operand i, the number of operands, whether operand i carries the batch.
  Expr in(int i) const { return {&graph, operands[size_t(i)]}; }
  int count() const { return int(operands.size()); }
  bool batched(int i) const { return i < count() && is_batched[size_t(i)]; }
};

/// What `view` sees, all static: the type of operand 0, where its elements lie, and the type of the result.
struct View {
  const Shape& in;
  const Layout& layout;
  const Shape& out;
};

/// Work of a node: operations (a multiply-add is two) and bytes that are read or written at least once.
struct Cost {
  double operations = 0, bytes = 0;
};

/// Properties that generic passes and transforms may rely on.
struct Traits {
  bool elementwise = false;  // result element depends on the broadcast-aligned operand elements only
  bool linear = false;       // jointly linear in all differentiable operands: the tangent is the op itself
  bool commutative = false;
  bool contraction = false;  // sums products over an inner size: dear to run again
  bool pure = true;
  bool leaf = false;                // input, param
  bool block = false;               // of the HIR stage: larger than backends know; lowering decomposes it
  bool zero_gradient = false;       // piecewise constant: the derivative is zero where it exists
  bool surrogate_gradient = false;  // the derivative is defined by its rule, not by differences
};

/// A case for the conformance run. Operands are types with a fill: "f32[2,3]", "f32[3] positive",
/// "i32[4] <9"; see rlx/ir/sample.h.
struct Sample {
  AttrsRef attrs;
  std::vector<std::string> inputs;
};

struct OpDef {
  std::string_view name, summary, doc;
  std::vector<std::string> operands;  // names; a last "rest..." takes any number, "mask?" may be left out
  std::vector<std::string> results;
  int min_operands = 0, max_operands = 0;  // max -1: any number
  std::vector<FieldInfo> fields;
  Traits traits;

  std::shared_ptr<void> (*copy_attrs)(const void* attrs);  // null copies the defaults
  // The rules of the operator; what they see is above. Null where the record has none.
  Shapes (*infer)(Infer&, void* attrs) = nullptr;
  Literals (*reference)(const Eval&, const void* attrs) = nullptr;
  Exprs (*decompose)(const Lower&, const void* attrs) = nullptr;
  Exprs (*vjp)(const Vjp&, const void* attrs) = nullptr;
  Exprs (*jvp)(const Jvp&, const void* attrs) = nullptr;
  Exprs (*vmap)(const Vmap&, const void* attrs) = nullptr;
  std::vector<Sample> (*samples)() = nullptr;

  /// Where the only result lies when it is a view of operand 0; nothing when its bytes must be moved.
  std::optional<Layout> (*view)(const View&, const void* attrs) = nullptr;
  /// Number of operations on static operands; null: those of the parts where a composite holds products, else one per
  /// element of the results.
  double (*operations)(std::span<const Shape> in, std::span<const Shape> out, const void* attrs) = nullptr;

  /// The attribute of that name; null when there is none.
  const FieldInfo* find_field(std::string_view name) const;
  /// What is wrong with this many operands; empty when nothing is.
  std::string operand_count_error(int count) const;
  bool is_composite() const { return decompose != nullptr; }
};

/// Of a node with static types: bytes of all operands and results, and the operator's operations.
Cost cost_of(const OpDef&, std::span<const Shape> in, std::span<const Shape> out, const void* attrs);

/// What an operator struct must have; rlx/ir/op_record.h describes it.
template <class Op>
concept OpRecord = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  { Op::doc } -> std::convertible_to<std::string_view>;
  { Op::operands } -> std::convertible_to<std::string_view>;
  typename Op::Attrs;
  &Op::infer;
} && (requires { &Op::reference; } || requires { &Op::decompose; } || requires { Op::traits.leaf; });

/// The record of an operator; one object per program, so its address tells operators apart.
template <OpRecord Op>
const OpDef& def();

/// Operators by name, for the parser and other readers. A copy of rlx::ops::table() with operators of one's
/// own added is what readers take to know those too:
///
///   ir::OpTable mine = ops::table();
///   mine.add<Cube>();
///   const Graph g = Graph::parse(text, mine);
class OpTable {
 public:
  /// The record must outlive the table. A name that is taken is a user error.
  void add(const OpDef& def);
  template <OpRecord Op>
  OpTable& add() {
    add(def<Op>());
    return *this;
  }
  /// The operator of that name; null when there is none.
  const OpDef* find(std::string_view name) const;
  /// As find, but an unknown name is a user error that suggests the nearest one.
  const OpDef& at(std::string_view name) const;
  const std::map<std::string, const OpDef*, std::less<>>& all() const { return by_name_; }

 private:
  std::map<std::string, const OpDef*, std::less<>> by_name_;
};

}  // namespace rlx::ir
