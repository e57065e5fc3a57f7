// Adapters of experts: files have a pair of matrices for each expert, or one pair for all; here an adapter has one part for all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/llm/adapter.h"

namespace rlx::llm {

/// Parts "X.experts.3.Y" become one part "X.experts.{e}.Y", with zeros for experts that have none.
void join_experts(Adapter::Parts& parts, std::string_view path);

/// Whether a pair of PEFT is one for all experts of "X": the module "X.experts", or "X.experts.base_layer" inside of it.
bool is_joined_module(std::string_view module);
/// The parameter that such a pair is for, as PEFT names it: "X.experts.gate_up_proj" or "X.experts.down_proj". `targets` are the
/// parameters that the adapter is for: the outer pair is that of the last one the module declares, down_proj behind gate_up_proj.
std::string joined_parameter(std::string_view module, const std::vector<std::string>& targets,
                             std::string_view path);
/// The parts of the pair of a parameter, A [experts * rank, in] and B [out, rank * experts], by names of weights.
Adapter::Parts parts_of_joined(std::string_view parameter, const Literal& a, const Literal& b, int64_t rank,
                               double scale, std::string_view path);

/// The part of one expert as [rank, in], [out, rank].
Adapter::Part part_of_expert(const Adapter::Part&, int64_t expert);

}  // namespace rlx::llm
