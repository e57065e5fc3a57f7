// The next token as a graph: penalties, filters and the draw, row by row.
//
// Every setting is an input with a value for each row, so one compiled graph serves rows of different requests. A draw is a
// function of (seed, step) alone: the same run for the same seed, alone or in any batch.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/text/vocab.h"

namespace rlx::llm {

using text::TokenId;

/// How the tokens of one text are chosen. In this order: logit bias, repetition, frequency and presence penalty, mask, temperature, top-k,
/// top-p, min-p, draw.
struct Sampling {
  double temperature = 1;  // divides the logits; 0: the most likely token
  int64_t top_k = 0;       // keeps the k most likely; 0: all
  double top_p = 1;        // then the fewest whose probabilities reach this
  double min_p = 0;        // then those with at least this part of the highest probability
  double repetition_penalty =
      1;  // of tokens in the text: positive logits are divided, negative ones multiplied
  double frequency_penalty = 0;  // times the number in the generated text, taken off
  double presence_penalty = 0;   // taken off once when it is in the generated text
  std::map<TokenId, double> logit_bias;
  uint64_t seed = 0;

  /// Whether the most likely token is taken, without a draw.
  bool greedy() const { return temperature == 0 || top_k == 1; }
  /// Whether the text so far counts.
  bool penalised() const {
    return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0;
  }
};

/// A value out of its range is a user error.
void check_sampling(const Sampling&, int64_t vocab);

/// Which parts a sampler graph has; fewer parts are faster.
struct SamplerParts {
  bool penalties = false;
  bool bias = false;     // logits are added to
  bool mask = false;     // only some tokens are allowed
  bool draw = true;      // else the largest
  bool filters = false;  // top-k, top-p, min-p
  int64_t shortlist =
      0;  // with filters: how many tokens are looked at; top_k of every row is at most that; 0: all
  auto operator<=>(const SamplerParts&) const = default;
};

/// Inputs: logits f32 [batch, vocab]; settings [batch]: temperature, top_p, min_p, repetition, frequency, presence f32, top_k i32, seed, step
/// i64; tables [batch, vocab]: bias f32, mask bool, in_text bool, generated f32 (how often). Only those that the parts
/// need. Outputs: token i32 [batch], log_probability f32 [batch] (of the logits as they came); with filters or a draw ids i32 and
/// probabilities f32 [batch, n]: what is drawn from, 0 where a filter took a token out.
Graph sampler_graph(int64_t vocab, const SamplerParts&);

/// Chooses tokens for rows of logits.
class Sampler {
 public:
  explicit Sampler(int64_t vocab, CompileOptions options = {});
  ~Sampler();
  Sampler(Sampler&&) noexcept;

  /// What is known of one text.
  struct Row {
    const Sampling* sampling = nullptr;
    std::span<const TokenId> prompt, generated;
    std::span<const uint32_t> mask;  // a bit for each token; empty: all
  };
  /// A token, and how likely it was.
  struct Choice {
    TokenId token = 0;
    float log_probability = 0;  // in the model's own distribution
  };
  /// Of one row, so that a choice does not depend on what else is in a batch.
  Choice choose(std::span<const float> logits, const Row& row);

  /// The distribution that the last draw was from: ids and probabilities above 0. Empty after a greedy choice.
  std::vector<std::pair<TokenId, float>> distribution() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx::llm
