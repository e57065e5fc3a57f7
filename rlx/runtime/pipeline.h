// The passes, in order: the table of contents of the compiler.
#pragma once

#include <functional>

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"
#include "rlx/passes/fuse.h"
#include "rlx/runtime/options.h"

namespace rlx::runtime {

/// Called after every pass with its name and the graph that it left: for dumps.
using PassListener = std::function<void(std::string_view pass, const ir::Graph&)>;

/// An equal graph with less to do; sizes may be symbolic. Leaves and outputs keep names, types and order. Remarks are added where
/// somebody asks for them.
ir::Graph optimise(const ir::Graph&, const CompileOptions&, const PassListener& = {},
                   std::vector<passes::Remark>* remarks = nullptr);

/// The graph for one set of sizes in operators that the target runs, joined where it runs them as one. What was tried is
/// added to the remarks.
ir::Graph specialise(ir::Graph, const ir::Target&, const CompileOptions&,
                     std::vector<passes::Remark>& remarks, const PassListener& = {});

/// Every pass once, in the order of their first run, then those that only run when asked for.
std::vector<std::string> pass_names();

/// One pass alone. An unknown name is a user error that lists the known ones.
ir::Graph run_pass(std::string_view name, const ir::Graph&, const ir::Target&);

}  // namespace rlx::runtime
