#include "rlx/llm/model_memory.h"

#include <algorithm>
#include <set>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/ir/leaves.h"
#include "rlx/llm/decoder.h"
#include "rlx/llm/sampler.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/report.h"

namespace rlx::llm {
namespace {

// A model without its weights, and the sampler behind it.
struct Plans {
  CompiledGraph graph;
  std::optional<Sampler> sampler;
};

// Inputs of the graph with the sizes of a run; states are not among them.
std::map<std::string, Shape> sized(const CompiledGraph& graph, const DimBinding& sizes) {
  std::map<std::string, Shape> out;
  for (const Port& p : graph.inputs()) out.emplace(p.name, p.shape.with_dims(bind(p.shape.dims(), sizes)));
  return out;
}

int64_t workspace_of(const MemoryUse& m) { return m.arena + m.inputs + m.outputs; }

// Bytes of weights that steps read in forms of their own alone: their pages go back to the system once these are made.
int64_t given_back(const models::ModelGraph& g, const backend::Plan& plan) {
  std::set<std::string> packed, in_place;
  for (const backend::Plan::Step& s : plan.steps) {
    for (size_t i = 0; i < s.in.size(); ++i) {
      const backend::Plan::Buffer& b = plan.buffers[size_t(s.in[i].buffer)];
      if (b.kind == backend::BufferKind::leaf)
        (i < s.packed.size() && s.packed[i] ? packed : in_place).insert(b.name);
    }
  }
  int64_t bytes = 0;
  for (const auto& [name, value] : g.weights)
    if (packed.contains(name) && !in_place.contains(name)) bytes += int64_t(value.bytes().size());
  return bytes;
}

// Bytes of the file that the graph reads, and of weights that were made of them.
void add_weights(ModelMemory& out, const models::ModelGraph& g, const CompiledGraph& graph,
                 const Report& report) {
  const MemoryUse& m = report.memory;
  out.given_back = given_back(g, report.plan);
  for (const auto& [name, value] : g.weights) out.file += int64_t(value.bytes().size());
  int64_t in_place = 0;
  for (const ir::NodeId id : graph.graph().params())
    if (const auto it = g.weights.find(ir::leaf_name(graph.graph().node(id))); it != g.weights.end())
      in_place += int64_t(it->second.bytes().size());
  out.derived = std::max<int64_t>(m.weights - in_place, 0) + m.constants;
  out.packed = m.packed;
}

ModelMemory of_encoder(const models::Model& model, const MemoryQuestion& q, int64_t length) {
  const models::ModelGraph g = model.graph({.mask = true});
  const auto plans = std::make_shared<Plans>(Plans{compile(g.graph, {}, q.compile), {}});
  const Report report = plans->graph.report(sized(plans->graph, {{"batch", q.batch}, {"seq", length}}));
  ModelMemory out{.context = length, .batch = q.batch, .chunk = length};
  add_weights(out, g, plans->graph, report);
  out.prompt_workspace = out.token_workspace = workspace_of(report.memory);
  out.plans = plans;
  return out;
}

}  // namespace

ModelMemory memory_of(const models::Model& model, const MemoryQuestion& q) {
  const models::Config& c = model.config();
  const int64_t context = c.max_positions > 0 ? std::min(q.context, c.max_positions) : q.context;
  if (context < 1 || q.batch < 1)
    throw invalid("memory: a context of ", q.context, " tokens and ", q.batch,
                  " texts; both must be positive");
  if (c.encoder) return of_encoder(model, q, context);
  CompileOptions options = q.compile;
  ModelMemory out{.context = context, .batch = q.batch, .chunk = std::min(q.chunk, context)};
  const MemoryLayout layout(c, context, out.chunk);  // as a decoder lays it out
  const models::PageStore store = layout.store(q.batch);
  const models::ModelGraph g = model.graph({.pages = store, .cache_type = q.cache_type, .last_only = true});
  for (const models::State& s : g.states) {
    options.states.push_back({s.input, s.output});
    // Pages of layers with a window, and running states, do not grow with the text.
    const bool grows = s.in_pages && s.shape.dim(0) == Dim(store.count * store.page);
    if (grows) out.cache_per_token += double(s.shape.size_bytes()) / double(store.count * store.page);
  }
  const auto plans =
      std::make_shared<Plans>(Plans{compile(g.graph, {}, options), Sampler(c.vocab, q.compile)});
  const std::vector<float> logits(size_t(c.vocab), 0);
  const Sampling greedy{.temperature = 0};
  plans->sampler->choose(logits, {.sampling = &greedy});
  const auto measure = [&](int64_t seq) {
    return plans->graph.report(
        sized(plans->graph, {{"batch", q.batch}, {"seq", seq}, {"pages", layout.pages}}));
  };
  const Report prompt = measure(out.chunk), token = measure(1);
  add_weights(out, g, plans->graph, prompt);
  out.caches = prompt.memory.states;
  out.prompt_workspace = workspace_of(prompt.memory);
  out.token_workspace = workspace_of(token.memory);
  out.plans = plans;
  return out;
}

}  // namespace rlx::llm
