// A program at one of its three stages.
//
//   HIR   a graph that may contain blocks (linear layers, whole decoder layers) and a fusion policy
//   MIR   a graph of operators
//   LIR   a graph and a plan: where each buffer lies, in which order nodes run, what goes in and out
//
// Blocks are added at HIR stage only; asking a module for what its stage does not have is a user error that
// says so.
#pragma once

#include <variant>

#include "rlx/ir/module.h"
#include "rlx/lang/graph.h"
#include "rlx/lang/plan.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/block/block.h"
#include "rlx/ops/table.h"

namespace rlx {

using ir::FusionPolicy;
using ir::Stage;
using ir::stage_name;
using ops::MaskKind;

/// A graph with blocks, and what they are lowered to.
struct Hir {
  Graph graph;
  FusionPolicy policy = FusionPolicy::direct;
};
/// A graph of operators alone.
struct Mir {
  Graph graph;
};
/// A graph of operators and where its buffers lie.
struct Lir {
  Graph graph;
  Plan plan;
};

/// A block could not be expanded.
class LowerError : public Error {
 public:
  explicit LowerError(std::string message) : Error(ErrorKind::user, std::move(message)) {}
};

/// Blocks replaced by their decomposition under the policy, in the bodies of loops and branches too, wherever
/// the graph came from. Nodes made for a block carry its label as the `block` of their origin.
Graph lower(const ir::Graph&, FusionPolicy policy = FusionPolicy::direct);
Mir lower(const Hir&);
/// One slot per buffer; every size must be known and every block lowered.
Lir plan(const Mir&);

/// A program at one of three stages, with the builders and conversions of each.
class GraphModule {
 public:
  /// HIR stage, with what `build` returns as the only output.
  static GraphModule define(const std::string& name, const std::function<Value(GraphModule&)>& build);
  /// An empty module at HIR stage.
  static GraphModule hir(const std::string& name) { return Hir{Graph(name)}; }
  /// An empty module at MIR stage.
  static GraphModule mir(const std::string& name) { return Mir{Graph(name)}; }
  /// At HIR stage, blocks or not.
  static GraphModule from_hir(Hir hir) { return hir; }
  /// At the stage of its content: HIR when there are blocks in it, else MIR.
  static GraphModule from_graph(const ir::Graph& graph);
  /// At MIR stage.
  static GraphModule from_mir(Mir mir) { return mir; }
  /// At LIR stage, with its plan.
  static GraphModule from_lir(Lir lir) { return lir; }

  /// How far it is lowered.
  Stage stage() const { return Stage(state_.index()); }
  /// The name of its graph.
  const std::string& name() const { return graph().name(); }

  /// What blocks are lowered to.
  FusionPolicy fusion_policy() const;
  /// Sets the policy, at HIR stage.
  GraphModule& with_fusion_policy(FusionPolicy policy);

  // At HIR and MIR stage.
  Value input(const std::string& name, const Shape& shape, const Loc& loc = Loc::current());
  Value param(const std::string& name, const Shape& shape, const Loc& loc = Loc::current());
  void set_outputs(const Values& outputs, const std::vector<std::string>& names = {});

  // At HIR stage.
  void set_hir_outputs(const Values& outputs);
  GraphModule& finish_hir(Value output);
  Value linear(Value x, Value weight, std::optional<Value> bias = {},
               std::optional<Activation> activation = {}, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value linear_fused(Value x, Value weight, Value bias, std::optional<Activation> activation = {},
                     const Declared& shape = {}, const Loc& loc = Loc::current());
  std::pair<Value, Value> shared_linear_pair(Value x, Value w_first, Value w_second,
                                             const Loc& loc = Loc::current());
  Value swiglu_ffn(Value x, Value up_w, Value gate_w, Value down_w, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  /// The norm; result 1 of its node is the sum.
  Value residual_rms_norm(Value x, Value residual, Value gamma, Value beta, double eps,
                          const Declared& shape = {}, const Loc& loc = Loc::current());
  /// window belongs to sliding_window, which sees window + 1 keys.
  Value attention(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads, int64_t head_dim,
                  MaskKind mask_kind, int64_t window = 0, const Declared& shape = {},
                  const Loc& loc = Loc::current());
  Value depthwise_conv1d_causal(Value input, Value weight, Value left_pad, int64_t kernel_size,
                                const Declared& shape = {}, const Loc& loc = Loc::current());
  /// scale and zp are absent for packed (GGUF) weights.
  Value dequant_matmul(Value x, Value w, std::optional<Value> scale, std::optional<Value> zp,
                       const std::string& scheme, const Declared& shape = {},
                       const Loc& loc = Loc::current());
  /// Output and final state.
  std::pair<Value, Value> gated_delta_net(Value q, Value k, Value v, Value g, Value beta, int64_t state_size,
                                          const Loc& loc = Loc::current());
  std::pair<Value, Value> gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta, Value state,
                                                int64_t state_size, const Loc& loc = Loc::current());
  Value rope(Value x, Value cos, Value sin, int64_t head_dim, int64_t n_rot, const Declared& shape = {},
             const Loc& loc = Loc::current());
  Value rms_norm(Value x, Value gamma, Value beta, double eps, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  /// 14 inputs, or 15 with a mask, in the order of the operator llama_decoder_block; window as in attention.
  Value llama_decoder_block(const Values& inputs, int64_t num_heads, int64_t head_dim, int64_t num_kv_heads,
                            double eps, MaskKind mask_kind, int64_t window = 0, const Declared& shape = {},
                            const Loc& loc = Loc::current());
  /// 29 inputs in the order of the operator qwen35_mtp_head.
  Value qwen35_mtp_head(const Values& inputs, int64_t num_heads, int64_t num_kv_heads, int64_t head_dim,
                        int64_t n_rot, double eps, const Declared& shape = {},
                        const Loc& loc = Loc::current());
  /// Any operator, verbatim; null attributes are the defaults.
  Value hir_mir(std::string_view op, const Values& inputs, ir::AttrsRef attrs = nullptr,
                const Declared& shape = {}, const Loc& loc = Loc::current());

  /// Nodes that `build` makes carry the label; the one it returns has it as its name.
  Value named(const std::string& label, const std::function<Value(GraphModule&)>& build);
  /// `named`, for builders that get the module as an argument.
  static Value block(GraphModule& hir, const std::string& label,
                     const std::function<Value(GraphModule&)>& build) {
    return hir.named(label, build);
  }

  /// The module without blocks, at MIR stage; itself when it is past HIR and holds none.
  GraphModule lower() const;

  // Conversions go down only: HIR to MIR to LIR.
  Hir into_hir() const { return as_hir(); }
  Mir into_mir() const;
  Lir into_lir() const;
  Graph into_graph() const { return into_mir().graph; }
  const Hir& as_hir() const;
  const Mir& as_mir() const;
  const Lir& as_lir() const;
  /// The graph of a module at MIR or LIR stage.
  const Graph& as_graph() const;
  /// All builders of rlx::Graph, at HIR and MIR stage.
  Graph& builders();

  /// The annotated dump of its graph, with its stage and plan.
  std::string inspect() const;
  /// The text of rlx/ir/text.h: `module hir fusable`, the graph and at LIR the plan; reads back to an equal
  /// module. At LIR a text without a plan is planned. `ops` are the operators it may name.
  std::string to_text() const;
  /// Reads that text, or the text of a graph.
  static GraphModule parse(std::string_view text, const ir::OpTable& ops = ops::table());
  /// A file that `load` and `Program::open` read; `weights` are values of params.
  void save(const std::string& path, const NamedLiterals& weights = {}) const;
  /// A module from its file.
  static GraphModule load(const std::string& path, const ir::OpTable& ops = ops::table());

 private:
  static GraphModule from_module(ir::Module m);
  ir::Module module() const;
  GraphModule(Hir h) : state_(std::move(h)) {}  // NOLINT: used by the named constructors
  GraphModule(Mir m) : state_(std::move(m)) {}  // NOLINT
  GraphModule(Lir l) : state_(std::move(l)) {}  // NOLINT
  const Graph& graph() const;
  Graph& hir_graph(std::string_view what);
  [[noreturn]] void wrong_stage(std::string_view what, std::string_view needs) const;
  Value block_node(std::string_view op, ir::AttrsRef attrs, const Values& inputs, const Declared& shape,
                   const Loc& loc);

  std::variant<Hir, Mir, Lir> state_;
};

std::ostream& operator<<(std::ostream&, const GraphModule&);

}  // namespace rlx
