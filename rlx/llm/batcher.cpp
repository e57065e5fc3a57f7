#include "rlx/llm/batcher.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/llm/batcher_state.h"

namespace rlx::llm {

namespace {

BatcherOptions checked(const models::Model& model, BatcherOptions o) {
  const models::Config& c = model.config();
  if (c.encoder)
    throw invalid("model '", model.file().path, "': ", c.architecture,
                  " is an encoder and generates no text");
  if (c.max_positions > 0) o.context = std::min(o.context, c.max_positions);
  if (o.rows < 1 || o.context < 1 || o.page < 1 || o.pages < 0 || o.prompt_tokens < 1)
    throw invalid("batcher: ", o.rows, " rows of ", o.context, " tokens, ", o.pages, " pages of ", o.page,
                  ", ", o.prompt_tokens, " tokens of prompts a step; each must be 1 or more");
  if ((o.page & (o.page - 1)) != 0)
    throw invalid("batcher: pages of ", o.page, " tokens; a power of two expected");
  const int64_t of_text = (o.context + o.page - 1) / o.page;
  if (o.pages == 0) o.pages = o.rows * of_text;
  return o;
}

bool has_layer(const models::Config& c, std::initializer_list<models::Mixer> kinds) {
  return std::any_of(c.mixers.begin(), c.mixers.end(), [&](models::Mixer m) {
    return std::find(kinds.begin(), kinds.end(), m) != kinds.end();
  });
}

}  // namespace

Batcher::State::State(LanguageModel& m, BatcherOptions o)
    : model(m),
      options(checked(m.model(), std::move(o))),
      has_attention(has_layer(m.config(), {models::Mixer::attention, models::Mixer::both})),
      has_window(has_layer(m.config(), {models::Mixer::window})),
      runs_on(has_layer(m.config(), {models::Mixer::linear, models::Mixer::recurrent, models::Mixer::both})),
      window(has_window ? m.config().window : 0),
      pages_of_text((options.context + options.page - 1) / options.page),
      pool(options.pages + 1),
      window_pool(std::min(options.pages, options.rows * window_pages_needed(options.context)) + 1),
      prefixes(pool, window_pool, options.page, window) {
  models::GraphOptions g{
      .cache_type = options.cache_type, .last_only = true, .round_activations = options.round_activations};
  g.pages = {.page = options.page,
             .count = options.pages + 1,
             .window_count = has_window ? window_pool.size() + 1 : 0,
             .rows = options.rows};
  if (options.adapter) {
    options.adapter->check_fits(m.model());
    g.linear = options.adapter->hook();
  }
  models::ModelGraph made = m.model().graph(g);
  if (options.adapter)
    for (const auto& [name, value] : options.adapter->weights()) made.weights.insert_or_assign(name, value);
  for (const models::State& s : made.states) options.compile.states.push_back({s.input, s.output});
  graph = std::make_unique<CompiledGraph>(made.graph, made.weights, options.compile);
  for (const Port& p : graph->inputs()) by_length |= p.name == "context_length";
  if (runs_on || by_length) options.share_prefixes = false;
  for (int64_t row = options.rows; row-- > 0;) free_rows.push_back(row);
}

Batcher::Batcher(LanguageModel& model, BatcherOptions options)
    : state_(std::make_unique<State>(model, std::move(options))) {}
Batcher::~Batcher() = default;

CompiledGraph& Batcher::compiled() { return *state_->graph; }

Batcher::RequestId Batcher::submit(std::vector<TokenId> prompt, GenerateOptions options, OnToken on_token) {
  State& s = *state_;
  if (prompt.empty()) throw invalid("batcher: the prompt is empty; at least one token expected");
  if (int64_t(prompt.size()) > s.options.context)
    throw invalid("batcher: the prompt has ", prompt.size(), " tokens, and the context is ",
                  s.options.context);
  const int64_t vocab = s.model.config().vocab;
  for (const TokenId id : prompt)
    if (id < 0 || id >= vocab) throw invalid("batcher: token ", id, " is not below ", vocab);
  check_sampling(options.sampling, vocab);
  if (options.lookup > 0 || options.guesser || options.mtp > 0)
    throw invalid("batcher: decoding with guesses is for one text at a time");
  if (options.adapter != s.options.adapter)
    throw invalid("batcher: a request has the adapter of its batcher, or none as that");
  const int64_t longest =
      std::min(s.options.context, int64_t(prompt.size()) + std::max<int64_t>(0, options.max_tokens));
  if (s.pages_needed(longest) > s.pool.size())
    throw invalid("batcher: ", longest, " tokens need ", s.pages_needed(longest), " pages, and there are ",
                  s.pool.size(), "; fewer tokens, or more pages");
  auto q = std::make_unique<Sequence>();
  q->prompt = std::move(prompt);
  q->options = std::move(options);
  q->on_token = std::move(on_token);
  q->longest = longest;
  const std::lock_guard guard(s.lock);
  q->id = s.next_id++;
  s.requests.emplace(q->id, std::nullopt);
  s.waiting.push_back(std::move(q));
  return s.next_id - 1;
}

void Batcher::cancel(RequestId id) {
  const std::lock_guard guard(state_->lock);
  const auto it = state_->requests.find(id);
  if (it != state_->requests.end() && !it->second) state_->cancelled.push_back(id);
}

std::optional<Generation> Batcher::take(RequestId id) {
  std::optional<Ended> ended;
  {
    const std::lock_guard guard(state_->lock);
    const auto it = state_->requests.find(id);
    if (it == state_->requests.end())
      throw invalid("batcher: there is no request ", id, ", or its answer has been taken");
    if (!it->second) return std::nullopt;
    ended = std::move(it->second);
    state_->requests.erase(it);
  }
  if (ended->error) std::rethrow_exception(ended->error);
  return std::move(ended->generation);
}

Batcher::Usage Batcher::usage() const {
  const State& s = *state_;
  const std::lock_guard guard(s.lock);
  return {.waiting = int64_t(s.waiting.size()),
          .running = int64_t(s.running.size()),
          .pages = s.pool.size(),
          .free_pages = s.pool.free(),
          .prefix_pages = s.prefixes.unused(),
          .window_pages = s.has_window ? s.window_pool.size() : 0,
          .free_window_pages = s.has_window ? s.window_pool.free() : 0,
          .runs = s.runs,
          .shared_tokens = s.shared_tokens};
}

void Batcher::forget_prefixes() { state_->prefixes.clear(); }

}  // namespace rlx::llm
