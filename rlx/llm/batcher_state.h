// What a Batcher holds; for the files that implement it.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <mutex>

#include "rlx/llm/batcher.h"
#include "rlx/llm/prefix_cache.h"
#include "rlx/llm/writer.h"

namespace rlx::llm {

/// One request from its arrival to its answer.
struct Sequence {
  using Clock = std::chrono::steady_clock;

  Batcher::RequestId id = 0;
  std::vector<TokenId> prompt;
  GenerateOptions options;
  OnToken on_token;
  Clock::time_point start = Clock::now();
  // From admission on.
  std::unique_ptr<Writer> writer;
  std::vector<TokenId> text;  // prompt and answer
  int64_t length = 0;         // tokens of it whose keys and values are kept
  int64_t longest = 0;        // tokens it may get, in the store
  int64_t row = -1;           // of running states
  std::vector<PagePair> pages;
  int64_t reserved = 0, reserved_window = 0;  // pages it may still ask for
  int64_t released_window = 0;                // pages before this have none in the store of windows
  int64_t context_length = 0;
  bool reads = true;  // the text up to here is not read yet
  int64_t reused = 0, runs = 0;
  double first_token_seconds = 0;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
};

/// The end of a request.
struct Ended {
  Generation generation;
  std::exception_ptr error;
};

struct Batcher::State {
  State(LanguageModel& m, BatcherOptions o);

  LanguageModel& model;
  BatcherOptions options;
  bool has_attention = true, has_window = false, runs_on = false, by_length = false;  // what the layers need
  int64_t window = 0, pages_of_text = 0;
  std::unique_ptr<CompiledGraph> graph;
  PagePool pool, window_pool;
  PrefixCache prefixes;
  std::vector<int64_t> free_rows;
  int64_t reserved = 0, reserved_window = 0;  // pages that running texts may still ask for
  int64_t runs = 0, shared_tokens = 0;
  std::vector<std::unique_ptr<Sequence>> running;  // by arrival

  // Under the lock: what other threads touch.
  mutable std::mutex lock;
  RequestId next_id = 1;
  std::deque<std::unique_ptr<Sequence>> waiting;
  std::vector<RequestId> cancelled;
  std::map<RequestId, std::optional<Ended>> requests;  // empty: not ended

  // Admission (batcher_pages.cpp).
  int64_t pages_needed(int64_t tokens) const;
  int64_t window_pages_needed(int64_t tokens) const;
  bool admit(Sequence&);
  void leave(Sequence&);
  void hold_pages(Sequence&, int64_t tokens);
  void release_behind_window(Sequence&);
  void keep_prefix(Sequence&, int64_t before);

  // A step (batcher_run.cpp).
  void take_requests();
  void end_cancelled();
  void read_prompts();
  int64_t read_piece(Sequence&);
  void write_tokens();
  void choose(Sequence&, std::span<const float> logits);
  void fail(Sequence&, std::exception_ptr error);
  TensorView run(std::span<Sequence* const> texts, int64_t n);
  void finish_ended();

  std::vector<TokenId> ids;
  std::vector<int32_t> positions, page_table, window_table, row_table, lengths;
};

}  // namespace rlx::llm
