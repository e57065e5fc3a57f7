// What a model is: the numbers of config.json or of GGUF's metadata under one set of names.
//
// Only what some architecture here computes with is held. A field of a file that would change the result and is not
// understood is refused when the model is opened (config_source.h).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rlx/models/activation.h"

namespace rlx::models {

/// How a layer mixes tokens.
enum class Mixer : uint8_t {
  attention,  // over all tokens before
  window,     // over the last `window` tokens
  linear,     // a gated delta rule
  recurrent,  // a state-space layer
  both,       // attention and a state-space layer side by side
};

/// Rotary positions: angle = position * frequency, pair by pair.
struct Rope {
  /// How frequencies follow from theta and the length of the text.
  enum class Kind : uint8_t { none, plain, linear, dynamic, yarn, llama3, longrope };
  Kind kind = Kind::none;
  double theta = 10000;
  int64_t lanes = 0;  // of a head that turn
  int64_t spread =
      0;  // lanes that frequencies are spread over, where that is an odd number; 0: all that turn
  bool interleaved = false;  // pairs are neighbours, not halves
  bool reordered = false;    // GGUF: rows of q and k were put in order for that
  double factor = 1;
  int64_t original_positions = 0;
  // yarn
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  // llama3
  double low_frequency_factor = 1, high_frequency_factor = 4;
  // longrope: frequencies are divided by these, by length of the text
  std::vector<double> short_factors = {}, long_factors = {};
  double magnitude = 1;  // cosines and sines are multiplied by it
};

/// Experts of a feed-forward layer; none when `experts` is 0.
struct Experts {
  int64_t experts = 0, chosen = 0, width = 0, shared_width = 0;
  bool sigmoid = false;     // scores are sigmoids, else a softmax over all experts
  bool normalised = false;  // weights of the chosen add up to 1
  bool shared_gate = false;
  int64_t groups = 1, groups_chosen = 1;  // experts come from the best groups alone
  int64_t group_top = 1;                  // a group counts as the sum of its best so many
  double scale = 1;
  std::vector<bool> layers = {};  // which layers have experts
};

/// Latent attention: keys and values come from a short vector for each token.
struct Latent {
  int64_t q_rank = 0, kv_rank = 0;  // q_rank 0: full
  int64_t plain_lanes = 0, rope_lanes = 0, value_lanes = 0;
};

/// State-space layers.
struct StateSpace {
  int64_t inner = 0, state = 0, conv = 0, dt_rank = 0;
  int64_t heads = 0, groups = 0;                                         // Mamba 2
  double dt_low = 0, dt_high = std::numeric_limits<double>::infinity();  // limits of the step
  bool gated_norm = true, norm_before_gate = false;
  int64_t norm_groups = 1;  // parts of a token that are normed by themselves
};

/// Layers of the gated delta rule.
struct DeltaNet {
  int64_t key_heads = 0, value_heads = 0, key_lanes = 0, value_lanes = 0, conv = 0;
  bool tiled = false;  // value head j has key head j mod key_heads, not the one of its share
};

struct Config {
  std::string architecture;  // a name of architecture_names()
  bool text_part = false;    // of a model that reads pictures too, whose tensors are let be
  bool encoder = false;      // gives hidden states of all tokens, each seeing all
  int64_t vocab = 0, hidden = 0, layers = 0, max_positions = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  double norm_eps = 1e-5;
  Activation activation = activations::silu;
  bool tied = false;          // logits by the table of embeddings
  std::vector<Mixer> mixers;  // by layer
  int64_t window = 0;         // tokens a window layer sees, itself among them
  Rope rope, window_rope;
  double attention_scale = 0;   // 0: 1 / sqrt(head_dim)
  bool scale_by_layer = false;  // and divided by the number of the layer, the first being 1
  double attention_softcap = 0, logit_softcap = 0;
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  bool norm_plus_one = false;  // norms multiply by 1 + weight
  bool parallel_residual = false;
  Experts moe;
  Latent latent;
  StateSpace ssm;
  DeltaNet delta;
  // Falcon-H1: multipliers of parts of a layer.
  double attention_in = 1, attention_out = 1, key_scale = 1, ssm_in = 1, ssm_out = 1, gate_scale = 1,
         down_scale = 1;
  std::vector<double> ssm_scales;  // of z, x, b, c, dt
  // Encoders.
  int64_t token_types = 0, padding_id = 0;
  Activation head_activation = activations::gelu;  // of the head for masked words
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;  // any of them ends a text
  int64_t draft_layers = 0;  // of a head that predicts a further token
};

}  // namespace rlx::models
