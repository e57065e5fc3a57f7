// Two devices side by side inside of a loop or branch whose results differ.
#pragma once

#include "rlx/runtime/lockstep.h"

namespace rlx::runtime {

/// The first node of a graph that parts, each on the same operands; a graph and values for all of its leaves.
using WalkNodes = std::function<std::optional<Parting>(const ir::Graph&, const NamedLiterals&)>;

/// Where a node with bodies parts: both devices run each step of the loop on the same operands, those that the first made, and the nodes
/// of the first step that differs are walked. Nothing where no step differs alone, or where the node has no such bodies.
/// `fixed`: operands that are the same in every run, which kernels are chosen by.
std::optional<Parting> part_inside(const ir::Node&, const Literals& operands, const std::vector<bool>& fixed,
                                   const LockstepOptions&, int threads, const WalkNodes&);

/// What is wrong with results of the second device; empty when all of it is near enough. `worst` becomes at least the largest error.
std::string difference(const Literals& a, const Literals& b, const std::vector<double>& allowed,
                       double& worst);

}  // namespace rlx::runtime
