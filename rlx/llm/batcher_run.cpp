// A step: some of the prompts, then one token of every text.
#include <algorithm>
#include <bit>

#include "rlx/base/error.h"
#include "rlx/llm/batcher_state.h"

namespace rlx::llm {

bool Batcher::step() {
  State& s = *state_;
  s.end_cancelled();
  s.take_requests();
  s.read_prompts();
  s.write_tokens();
  s.finish_ended();
  const std::lock_guard guard(s.lock);
  return !s.running.empty() || !s.waiting.empty();
}

void Batcher::State::take_requests() {
  for (;;) {
    std::unique_ptr<Sequence> q;
    {
      const std::lock_guard guard(lock);
      if (waiting.empty()) return;
      if (!admit(*waiting.front())) return;
      q = std::move(waiting.front());
      waiting.pop_front();
    }
    q->text = q->prompt;
    q->context_length = int64_t(q->prompt.size());
    running.push_back(std::move(q));
    Sequence& now = *running.back();
    try {
      now.writer = std::make_unique<Writer>(model, now.prompt, now.options, now.on_token);
    } catch (...) {
      leave(now);
      const std::lock_guard guard(lock);
      requests[now.id] = Ended{.error = std::current_exception()};
      running.pop_back();
    }
  }
}

void Batcher::State::end_cancelled() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard guard(lock);
    ids.swap(cancelled);
    for (const RequestId id : ids) {
      const auto it =
          std::find_if(waiting.begin(), waiting.end(), [&](const auto& q) { return q->id == id; });
      if (it == waiting.end()) continue;
      Generation g;
      g.finish = Finish::cancelled;
      g.prompt_tokens = int64_t((*it)->prompt.size());
      requests[id] = Ended{.generation = std::move(g)};
      waiting.erase(it);
    }
  }
  for (const RequestId id : ids)
    for (const auto& q : running)
      if (q->id == id) {
        try {
          q->writer->end(Finish::cancelled);
        } catch (...) {
          fail(*q, std::current_exception());
        }
      }
}

// ---- prompts ----

void Batcher::State::read_prompts() {
  int64_t left = options.prompt_tokens;
  for (const auto& q : running) {
    while (q->reads && !q->writer->ended() && left > 0) left -= read_piece(*q);
    if (left <= 0) return;
  }
}

// A page, or the largest power of two that the rest of the text has; pieces depend on the length of the text alone, so that
// pages of prefixes hold what this text would have put there.
int64_t Batcher::State::read_piece(Sequence& q) {
  const int64_t rest = int64_t(q.text.size()) - q.length;
  const int64_t n = rest >= options.page ? options.page : int64_t(std::bit_floor(uint64_t(rest)));
  const int64_t before = q.length;
  hold_pages(q, before + n);
  Sequence* const row[] = {&q};
  const TensorView logits = run(row, n);
  q.length += n;
  if (n == options.page && before + n <= int64_t(q.prompt.size())) keep_prefix(q, before);
  release_behind_window(q);
  if (q.length == int64_t(q.text.size())) {
    q.reads = false;
    choose(q, logits.as<const float>());
    if (q.first_token_seconds == 0) q.first_token_seconds = q.seconds();
  }
  return n;
}

// ---- texts ----

void Batcher::State::write_tokens() {
  std::vector<Sequence*> rows;
  for (const auto& q : running) {
    if (q->reads || q->writer->ended()) continue;
    if (q->length == options.context) {
      q->writer->end(Finish::context_full);
      continue;
    }
    q->context_length = std::max(q->context_length, q->length + 1);
    hold_pages(*q, q->length + 1);
    rows.push_back(q.get());
  }
  if (rows.empty()) return;
  const TensorView logits = run(rows, 1);
  const auto vocab = size_t(model.config().vocab);
  for (size_t i = 0; i < rows.size(); ++i) {
    Sequence& q = *rows[i];
    ++q.length;
    ++q.runs;
    release_behind_window(q);
    choose(q, logits.as<const float>().subspan(i * vocab, vocab));
  }
}

void Batcher::State::choose(Sequence& q, std::span<const float> logits) {
  try {
    const auto token = q.writer->write(logits);
    if (!token || q.writer->ended()) return;
    q.text.push_back(*token);
  } catch (...) {
    return fail(q, std::current_exception());
  }
  // A model whose frequencies depend on the length of the text reads the text again when it has become long.
  const int64_t limit = model.config().rope.original_positions;
  if (by_length && q.context_length <= limit && int64_t(q.text.size()) > limit) {
    q.context_length = limit + 1;
    q.length = 0;
    q.reads = true;
  }
}

void Batcher::State::fail(Sequence& q, std::exception_ptr error) {
  {
    const std::lock_guard guard(lock);
    requests[q.id] = Ended{.error = std::move(error)};
  }
  try {
    q.writer->end(Finish::cancelled);
  } catch (...) {  // the first error counts
  }
}

void Batcher::State::finish_ended() {
  for (auto& q : running) {
    if (!q->writer->ended()) continue;
    leave(*q);
    const std::lock_guard guard(lock);
    auto& place = requests[q->id];
    if (!place) {
      Generation g = q->writer->take();
      g.reused_tokens = q->reused;
      g.runs = q->runs;
      g.first_token_seconds = q->first_token_seconds;
      g.seconds = q->seconds();
      place = Ended{.generation = std::move(g)};
    }
    q.reset();
  }
  std::erase(running, nullptr);
}

// ---- runs of the model ----

// The next n tokens of each text. Rows are rounded up to a power of two, so that few numbers of rows need plans; those without a
// text write to the page and the row that are nobody's.
TensorView Batcher::State::run(std::span<Sequence* const> texts, int64_t n) {
  const auto batch = int64_t(std::bit_ceil(texts.size()));
  const auto cells = size_t(batch * n), tables = size_t(batch * pages_of_text);
  ids.assign(cells, 0);
  positions.assign(cells, -1);
  page_table.assign(tables, 0);
  window_table.assign(tables, 0);
  row_table.assign(size_t(batch), int32_t(options.rows));
  lengths.assign(size_t(batch), 1);
  for (size_t r = 0; r < texts.size(); ++r) {
    const Sequence& q = *texts[r];
    for (int64_t i = 0; i < n; ++i) {
      ids[r * size_t(n) + size_t(i)] = q.text[size_t(q.length + i)];
      positions[r * size_t(n) + size_t(i)] = int32_t(q.length + i);
    }
    for (size_t i = 0; i < q.pages.size(); ++i) {
      page_table[r * size_t(pages_of_text) + i] = q.pages[i].all;
      window_table[r * size_t(pages_of_text) + i] = q.pages[i].window;
    }
    row_table[r] = int32_t(q.row);
    lengths[r] = int32_t(q.context_length);
  }
  Input inputs[6];
  size_t count = 0;
  inputs[count++] = {"input_ids", view(ids.data(), {batch, n})};
  inputs[count++] = {"positions", view(positions.data(), {batch, n})};
  if (has_attention) inputs[count++] = {"pages", view(page_table.data(), {batch, pages_of_text})};
  if (has_window) inputs[count++] = {"window_pages", view(window_table.data(), {batch, pages_of_text})};
  if (runs_on) inputs[count++] = {"rows", view(row_table.data(), {batch})};
  if (by_length) inputs[count++] = {"context_length", view(lengths.data(), {batch})};
  ++runs;
  return graph->run(std::span<const Input>(inputs, count)).view("logits");
}

}  // namespace rlx::llm
