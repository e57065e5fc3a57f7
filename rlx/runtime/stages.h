// A compilation with everything on the way kept, for people who look at it.
#pragma once

#include <optional>

#include "rlx/runtime/core.h"
#include "rlx/runtime/report.h"

namespace rlx::runtime {

/// A graph on its way through the compiler.
struct StageGraph {
  std::string name;  // "input", a pass, "prologue" or "main"
  ir::Graph graph;
};

/// The graph as it came and behind every pass. What depends on weights alone is cut off (`prologue`, and `main` as the rest) between the
/// passes on any sizes and those on known ones. With symbolic sizes it ends there, and there is no report.
struct Stages {
  std::vector<StageGraph> stages;
  std::optional<Report> report;
};

/// Needs no weights.
Stages compile_in_stages(const ir::Graph&, const CompileOptions&);

/// The report of a program that the core built; `remarks`: of the passes for its sizes.
Report make_report(const Core&, const backend::Executable&, const std::vector<passes::Remark>& remarks);

}  // namespace rlx::runtime
