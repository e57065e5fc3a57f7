// The passes, in order: the table of contents of the compiler.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"
#include "rlx/passes/fuse.h"
#include "rlx/runtime/options.h"

namespace rlx::runtime {

/// An equal graph with less to do; sizes may be symbolic. Leaves and outputs keep names, types and order.
ir::Graph optimise(const ir::Graph&, const CompileOptions&);

/// The graph for one set of sizes in operators that the target runs, joined where it runs them as one. What was tried is
/// added to the remarks.
ir::Graph specialise(const ir::Graph&, const ir::Target&, const CompileOptions&,
                     std::vector<passes::Remark>& remarks);

}  // namespace rlx::runtime
