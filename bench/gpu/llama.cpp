// Language models as rlx/models builds them, with weights of no meaning: one token for one text or many, and a prompt.
#include <numeric>

#include "bench/gpu/program.h"
#include "rlx/models/model.h"

namespace rlx::bench {
namespace {

struct Size {
  std::string name;
  int64_t hidden, inner, layers, heads, kv_heads, lanes, vocab;
  bool tied;
};
constexpr int64_t kContext = 1024, kPrompt = 2048;

// A folder that is not on disk. All tensors are the same zeros, which nobody reads: the program gets values of its own.
models::Model model_of(const Size& s, const io::StorageType& weights) {
  io::ModelFile file;
  file.path = s.name;
  file.folder.emplace();
  file.folder->config = io::read_model_config(Json::parse(
      cat("{\"model_type\": \"llama\", \"hidden_size\": ", s.hidden, ", \"intermediate_size\": ", s.inner,
          ", \"num_hidden_layers\": ", s.layers, ", \"num_attention_heads\": ", s.heads,
          ", \"num_key_value_heads\": ", s.kv_heads, ", \"head_dim\": ", s.lanes,
          ", \"vocab_size\": ", s.vocab, ", \"rms_norm_eps\": 1e-5, ",
          "\"max_position_embeddings\": 8192, \"rope_theta\": 500000.0, \"hidden_act\": \"silu\", ",
          "\"tie_word_embeddings\": ", s.tied ? "true" : "false", "}"),
      s.name));
  const auto zeros = std::make_shared<std::vector<std::byte>>();
  const auto add = [&](const std::string& name, std::vector<int64_t> dims) {
    io::TensorView t{
        .name = name, .type = dims.size() == 2 ? weights : io::StorageType::of(DType::bf16), .dims = dims};
    if (t.type.elements > 1 && dims.back() % t.type.elements != 0)
      t.type = io::StorageType::of(*quant::find_format("q4_0"));
    const auto bytes = size_t(*io::checked_bytes(t.type, t.dims));
    if (zeros->size() < bytes) zeros->resize(bytes);
    t.owner = zeros;
    file.tensors.push_back(std::move(t));
  };
  add("model.embed_tokens.weight", {s.vocab, s.hidden});
  if (!s.tied) add("lm_head.weight", {s.vocab, s.hidden});
  add("model.norm.weight", {s.hidden});
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string at = cat("model.layers.", i, ".");
    add(at + "input_layernorm.weight", {s.hidden});
    add(at + "post_attention_layernorm.weight", {s.hidden});
    add(at + "self_attn.q_proj.weight", {s.heads * s.lanes, s.hidden});
    add(at + "self_attn.k_proj.weight", {s.kv_heads * s.lanes, s.hidden});
    add(at + "self_attn.v_proj.weight", {s.kv_heads * s.lanes, s.hidden});
    add(at + "self_attn.o_proj.weight", {s.hidden, s.heads * s.lanes});
    add(at + "mlp.gate_proj.weight", {s.inner, s.hidden});
    add(at + "mlp.up_proj.weight", {s.inner, s.hidden});
    add(at + "mlp.down_proj.weight", {s.hidden, s.inner});
  }
  for (io::TensorView& t : file.tensors)
    t.bytes = std::span(zeros->data(), size_t(*io::checked_bytes(t.type, t.dims)));
  return models::Model(std::move(file));
}

Literal counting(int64_t rows, int64_t first, int64_t count) {
  std::vector<int32_t> out;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < count; ++i) out.push_back(int32_t(first + i));
  }
  return Literal::of<int32_t>({rows, count}, out);
}

// `count` tokens for each of `batch` texts, the last of `keys`. Values are stored in 16 bits, products are summed in f32.
void language_model(const Size& s, const std::string& weights, int64_t batch, int64_t count, int64_t keys) {
  const quant::BlockFormat* const format = quant::find_format(weights);
  const models::Model model =
      model_of(s, weights == "bf16" ? io::StorageType::of(DType::bf16) : io::StorageType::of(*format));
  const models::ModelGraph g =
      model.graph({.capacity = keys, .batch = batch, .cache_type = DType::bf16, .last_only = true});
  ProgramOptions options;
  options.compile.precision = PrecisionPolicy::auto_mixed_bf16();
  for (const models::State& state : g.states) options.compile.states.push_back({state.input, state.output});
  options.sizes = {{"seq", count}, {"keys", keys}};
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < batch * count; ++i) ids.push_back(int32_t((i * 7919 + 13) % s.vocab));
  options.inputs = {{"input_ids", Literal::of<int32_t>({batch, count}, ids)},
                    {"positions", counting(batch, keys - count, count)},
                    {"start", Literal::of<int32_t>({1}, {int32_t(keys - count)})},
                    {"key_positions", counting(batch, 0, keys)}};
  Program p(g.graph, options);
  const double seconds = seconds_of(p);
  const std::string what = count == 1 ? cat("decode_b", batch) : cat("prompt_", count);
  report(cat(what, "_", s.name, "_", weights), rounded(double(batch * count) / seconds, "tokens/s"), p);
  std::printf("    %.3f ms a run, %.2f GB of weights: %.2f TB/s\n", seconds * 1e3, p.weight_bytes() / 1e9,
              p.weight_bytes() / seconds / 1e12);
  if (const std::string chain = p.chain(); !chain.empty()) std::printf("    %s\n", chain.c_str());
  if (show_steps) p.print_steps();
}

}  // namespace

std::vector<Case> llama_cases() {
  const Size sizes[] = {{"135m", 576, 1536, 30, 9, 3, 64, 49152, true},
                        {"1b", 2048, 8192, 16, 32, 8, 64, 128256, true},
                        {"8b", 4096, 14336, 32, 32, 8, 128, 128256, false}};
  std::vector<Case> out;
  for (const Size& s : sizes) {
    out.push_back({"decode_" + s.name, [=] { language_model(s, "bf16", 1, 1, kContext); }});
    out.push_back({"decode_q4_" + s.name, [=] { language_model(s, "q4_k", 1, 1, kContext); }});
    out.push_back({"decode_many_" + s.name, [=] { language_model(s, "bf16", 32, 1, kContext); }});
    out.push_back({"prompt_" + s.name, [=] { language_model(s, "bf16", 1, kPrompt, kPrompt); }});
    out.push_back({"prompt_q4_" + s.name, [=] { language_model(s, "q4_k", 1, kPrompt, kPrompt); }});
  }
  return out;
}

}  // namespace rlx::bench
