// Checkpoints written again under the names of GGUF: architectures of which the test data has no such file.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "rlx/io/gguf.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"

namespace rlx::test {
namespace {

using io::TensorView;

constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.", "blk."},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
};

std::string gguf_name(std::string name) {
  for (const auto& [from, to] : kWords) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

// Rows (half, pair) of each head as (pair, half): the order of GGUF's Llama.
Literal interleaved_rows(const TensorView& t, int64_t lanes) {
  const std::vector<float> x = io::to_f32(t);
  const int64_t width = t.dims[1], half = lanes / 2;
  std::vector<float> y(x.size());
  for (int64_t r = 0; r < t.dims[0]; ++r) {
    const int64_t head = r / lanes, pair = r % lanes % half, side = r % lanes / half;
    std::memcpy(&y[size_t((head * lanes + 2 * pair + side) * width)], &x[size_t(r * width)],
                size_t(width) * 4);
  }
  return Literal::of<float>({t.dims[0], width}, y);
}

void add_numbers(io::GgufWriter& out, const models::Config& c, const std::string& name) {
  out.add_string("general.architecture", name);
  const std::pair<const char*, int64_t> numbers[] = {{"block_count", c.layers},
                                                     {"context_length", c.max_positions},
                                                     {"embedding_length", c.hidden},
                                                     {"feed_forward_length", c.intermediate},
                                                     {"attention.head_count", c.heads},
                                                     {"attention.head_count_kv", c.kv_heads},
                                                     {"attention.key_length", c.head_dim},
                                                     {"attention.value_length", c.head_dim}};
  for (const auto& [key, value] : numbers) out.add_u32(name + "." + key, uint32_t(value));
  out.add_f32(name + ".attention.layer_norm_rms_epsilon", float(c.norm_eps));
  out.add_f32(name + ".rope.freq_base", float(c.rope.theta));
}

void expect_same_logits(const std::string& path, const NamedLiterals& want) {
  const models::Model model = models::open_model(path);
  const models::ModelGraph g = model.graph();
  const Literal got = compile(g.graph, g.weights).run({{"input_ids", want.at("input_ids")}}).at("logits");
  EXPECT_LT(largest_difference(got, 0, want.at("logits"), 0, want.at("input_ids").elements()), 2e-4);
}

TEST(GgufNames, qwen3) {
  RLX_REQUIRE_DATA("checkpoints/qwen3");
  const std::string folder = data_path("checkpoints/qwen3");
  const models::Model model = models::open_model(folder);
  const Scratch scratch;
  io::GgufWriter out;
  add_numbers(out, model.config(), "qwen3");
  std::vector<TensorView> tensors = model.file().tensors;
  for (TensorView& t : tensors) {
    t.name = gguf_name(t.name);
    out.add_tensor(t);
  }
  out.write(scratch.path("qwen3.gguf"));
  expect_same_logits(scratch.path("qwen3.gguf"), expected_values(folder + "/expected.safetensors"));
}

TEST(GgufNames, mixtral_is_llama_with_experts) {
  RLX_REQUIRE_DATA("checkpoints/mixtral");
  const std::string folder = data_path("checkpoints/mixtral");
  const models::Model model = models::open_model(folder);
  const models::Config& c = model.config();
  const Scratch scratch;
  io::GgufWriter out;
  add_numbers(out, c, "llama");
  out.add_u32("llama.expert_count", uint32_t(c.moe.experts));
  out.add_u32("llama.expert_used_count", uint32_t(c.moe.chosen));
  out.add_u32("llama.rope.dimension_count", uint32_t(c.head_dim));
  std::map<std::string, Literal> tensors;
  for (const TensorView& t : model.file().tensors) {
    const std::string name = gguf_name(t.name);
    if (name.find(".experts.") != std::string::npos) continue;
    const bool turned = name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight");
    tensors.emplace(name, turned ? interleaved_rows(t, c.head_dim) : io::to_literal(t));
  }
  const std::pair<const char*, const char*> kinds[] = {{"w1", "gate"}, {"w2", "down"}, {"w3", "up"}};
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (const auto& [hf, kind] : kinds) {
      std::vector<float> all;
      std::vector<int64_t> dims;
      for (int64_t e = 0; e < c.moe.experts; ++e) {
        const std::string name =
            cat("model.layers.", layer, ".block_sparse_moe.experts.", e, ".", hf, ".weight");
        for (const TensorView& t : model.file().tensors) {
          if (t.name != name) continue;
          const std::vector<float> x = io::to_f32(t);
          all.insert(all.end(), x.begin(), x.end());
          dims = t.dims;
        }
      }
      tensors.emplace(cat("blk.", layer, ".ffn_", kind, "_exps.weight"),
                      Literal::of<float>({c.moe.experts, dims[0], dims[1]}, all));
    }
  }
  std::vector<TensorView> views;
  for (const auto& [name, value] : tensors) views.push_back(io::to_view(name, value));
  for (const TensorView& v : views) out.add_tensor(v);
  out.write(scratch.path("mixtral.gguf"));
  EXPECT_EQ(models::open_model(scratch.path("mixtral.gguf")).config().architecture, "mixtral");
  expect_same_logits(scratch.path("mixtral.gguf"), expected_values(folder + "/expected.safetensors"));
}

}  // namespace
}  // namespace rlx::test
