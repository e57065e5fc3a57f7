// A device with the way graphs are compiled for it.
//
//   const Session session("cpu", Precision::f32);
//   CompiledGraph f = session.compile(program);
#pragma once

#include "rlx/lang/module.h"
#include "rlx/lang/program.h"
#include "rlx/runtime/attempt.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// How f32 values are stored between operators; every operator computes in f32 or better.
enum class Precision : uint8_t { f32, f16, bf16 };

/// The policy that stores everything so.
PrecisionPolicy policy_of(Precision);

class Session {
 public:
  /// A device that is not there is a user error that lists those that are. "auto" takes the best: see pick_device.
  explicit Session(std::string_view device = "auto", Precision precision = Precision::f32);

  /// Replaces what the precision says.
  Session& with_policy(PrecisionPolicy policy);

  /// The name of the device; of "auto" that which was picked.
  const std::string& device() const { return device_; }
  /// As given to the constructor.
  Precision precision() const { return precision_; }
  /// What the precision or with_policy says.
  const PrecisionPolicy& policy() const { return policy_; }

  /// Blocks are lowered first.
  CompiledGraph compile(const ir::Graph& graph, const NamedLiterals& weights = {}) const;
  CompiledGraph compile(const Program& program) const;
  /// The device is the session's; so is the policy unless the options have one.
  CompiledGraph compile_with(const ir::Graph& graph, const NamedLiterals& weights,
                             CompileOptions options) const;
  /// Lowered under the policy of the module.
  CompiledGraph compile_hir(const Hir& hir, const NamedLiterals& weights = {}) const;
  /// At any stage.
  CompiledGraph compile_module(const GraphModule& module, const NamedLiterals& weights = {}) const;

  /// Options of a plain `compile`.
  CompileOptions options() const;

 private:
  std::string device_;
  Precision precision_;
  PrecisionPolicy policy_;
};

/// A graph with the weights of its file.
CompiledGraph compile(const Program& program, const CompileOptions& options = {});

/// The error instead of an exception.
Attempt<CompiledGraph> try_compile(const ir::Graph& graph, const NamedLiterals& weights = {},
                                   const CompileOptions& options = {});

/// Devices of this machine, the best first; "ref" is the last.
std::vector<std::string> available_devices();
/// The first of those that runs every operator of the graph by kernels of its own; the first of all when none does.
std::string pick_device(const ir::Graph& graph);

}  // namespace rlx
