// Running a static graph on a backend, without sessions.
#pragma once

#include <algorithm>

#include "rlx/backend/builder.h"
#include "rlx/base/aligned.h"

namespace rlx::test {

struct RunOptions {
  int threads = 1;
  std::vector<bool> fixed;  // leaves that are weights
  std::vector<backend::Donation> donated;
};

/// Builds and runs; a donated leaf and its output share memory, as sessions do it.
inline Literals run_on(const backend::Backend& backend, const ir::Graph& g, const Literals& leaves,
                       const RunOptions& options = {}) {
  const auto program = backend::Builder(backend, options.threads)
                           .build(g, {.fixed = options.fixed, .donated = options.donated});
  for (const std::string& wrong : backend::verify_plan(program->plan())) throw invalid("plan: ", wrong);
  static Pool pool(3);
  const Team team(pool, options.threads);
  Literals in = leaves, out;
  std::vector<std::byte*> in_bytes, out_bytes;
  for (Literal& l : in) in_bytes.push_back(l.mutable_bytes().data());
  // Results must be written whole: what they and the arena held before is NaN.
  for (const ir::Value v : g.outputs()) {
    out.push_back(Literal::zeros(g.shape(v)));
    const auto bytes = out.back().mutable_bytes();
    std::fill(bytes.begin(), bytes.end(), std::byte(0xff));
  }
  for (Literal& l : out) out_bytes.push_back(l.mutable_bytes().data());
  for (const backend::Donation& d : options.donated) out_bytes[size_t(d.output)] = in_bytes[size_t(d.leaf)];
  std::vector<std::shared_ptr<const void>> forms;
  std::vector<const void*> packed;
  for (const auto& form : program->packings()) {
    forms.push_back(form.packing.make(team, in_bytes[size_t(form.leaf)]));
    packed.push_back(forms.back().get());
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (!program->reads_leaf(i)) in_bytes[i] = nullptr;  // what is only read packed needs no address
  }
  const AlignedBytes arena = allocate_aligned(program->arena_bytes());
  std::fill_n(arena.get(), program->arena_bytes(), std::byte(0xff));
  program->run({.team = team,
                .leaves = in_bytes.data(),
                .outputs = out_bytes.data(),
                .arena = arena.get(),
                .packed = packed.data()});
  for (const backend::Donation& d : options.donated) out[size_t(d.output)] = in[size_t(d.leaf)];
  return out;
}

}  // namespace rlx::test
