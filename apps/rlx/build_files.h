// What `rlx build` writes into its folder.
#pragma once

#include <string>
#include <vector>

#include "rlx/runtime/compiled_graph.h"

namespace rlx::cli {

/// NAME.h, NAME.cpp, NAME.weights and CMakeLists.txt for a compiled graph of known sizes with all its weights. `opened`: inputs that were params
/// without a value.
void write_program(CompiledGraph&, const std::string& name, const std::string& folder,
                   const std::vector<std::string>& opened);

}  // namespace rlx::cli
