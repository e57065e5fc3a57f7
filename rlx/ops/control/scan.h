// A loop of known length with carried values, constants, per-step inputs and per-step outputs.
#pragma once

#include <array>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// What reverse mode keeps from the forward loop.
enum class ScanSave { residuals, carries };
constexpr std::array<std::string_view, 2> choice_names(ScanSave) { return {"residuals", "carries"}; }

/// What decides whether a step runs.
enum class ScanGate { none, carry, sequence };
constexpr std::array<std::string_view, 3> choice_names(ScanGate) { return {"none", "carry", "sequence"}; }

struct Scan {
  static constexpr std::string_view name = "scan", summary = "Loop of known length over carries and slices.",
                                    operands = "operands...", results = "results...";
  static constexpr std::string_view doc =
      "operands are `carries` initial carries, `consts` constants, then sequences [length, ...]. Step t runs "
      "body(carries, constants, slices t) -> (new carries, per-step outputs). Results are the final carries, "
      "then the outputs stacked to [length, ...]. With reverse, steps run from the last slice to the first "
      "and outputs land at their slice. A gated step whose flag is false is skipped: the carries stay as they are and "
      "its outputs are zeros";
  struct Attrs {
    GraphRef body;
    Dim length = 0;
    int carries = 0;
    int consts = 0;
    bool reverse = false;
    ScanSave save = ScanSave::residuals;
    int64_t checkpoints = 0;
    ScanGate gate = ScanGate::none;
    static constexpr auto fields() {
      return std::tuple{
          field("body", &Attrs::body, "one step; its inputs are taken in order"),
          field("length", &Attrs::length, "number of steps"),
          field("carries", &Attrs::carries, "how many operands are carried"),
          field("consts", &Attrs::consts, "how many operands are the same in every step"),
          field("reverse", &Attrs::reverse, "run from the last slice to the first"),
          field("save", &Attrs::save,
                "what reverse mode keeps per step: residuals (nothing runs twice) or carries (the "
                "body runs again)"),
          field("checkpoints", &Attrs::checkpoints,
                "reverse mode cuts the loop into this many segments, keeps the carries at their starts and "
                "runs each segment again; 0 keeps every step. The numbers are the same"),
          field(
              "gate", &Attrs::gate,
              "the flag that lets a step run: none (every step runs), the first carry (a false one ends the loop) or "
              "the first sequence, bool each")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// Final carries, then stacked outputs.
Exprs scan_all(Graph& g, const Exprs& init, const Exprs& consts, const Exprs& xs, Graph body, Dim length,
               bool reverse = false, ScanSave save = ScanSave::residuals);

/// One carry, its final value. The body maps (carry, constants..., slices...) to the next carry.
Expr scan(Expr init, Graph body, Dim length);
Expr scan_with_xs(Expr init, const Exprs& xs, Graph body, Dim length);
Expr scan_with_bcasts_and_xs(Expr init, const Exprs& bcasts, const Exprs& xs, Graph body, Dim length);
/// All carries stacked: row t is the carry after step t + 1.
Expr scan_trajectory(Expr init, Graph body, Dim length);
/// As scan; reverse mode keeps `num_checkpoints` carries and recomputes between them. Values and gradients
/// are the same bits.
Expr scan_checkpointed(Expr init, Graph body, Dim length, int64_t num_checkpoints);
/// The general form of scan_checkpointed.
Exprs scan_all_checkpointed(Graph& g, const Exprs& init, const Exprs& consts, const Exprs& xs, Graph body,
                            int64_t length, int64_t num_checkpoints);

}  // namespace rlx::ops
