// Numbers that GGUF files hold beside a weight and that its product is multiplied by.
#include <gtest/gtest.h>

#include <map>

#include "rlx/io/gguf.h"
#include "rlx/io/literal.h"
#include "rlx/ir/sample.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::test {
namespace {

constexpr int64_t kExperts = 4;

// A layer of Llama; with experts, of Mixtral.
struct TinyGguf {
  bool experts = false;
  std::map<std::string, Literal> tensors = {};

  explicit TinyGguf(bool experts) : experts(experts) {
    const auto add = [&](const std::string& name, Dims dims) {
      tensors.emplace(name, ir::sample_literal(cat(Shape(DType::f32, dims)), tensors.size() + 1));
    };
    add("token_embd.weight", {16, 8});
    for (const char* name : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"})
      add(cat(name, ".weight"), {8});
    for (const char* name : {"q", "k", "v", "output"}) add(cat("blk.0.attn_", name, ".weight"), {8, 8});
    if (experts) add("blk.0.ffn_gate_inp.weight", {kExperts, 8});
    for (const char* name : {"gate", "up", "down"}) {
      const bool down = std::string_view(name) == "down";
      Dims dims{down ? 8 : 12, down ? 12 : 8};
      if (experts) dims.insert(dims.begin(), Dim(kExperts));
      add(cat("blk.0.ffn_", name, experts ? "_exps" : "", ".weight"), dims);
    }
  }

  Literal logits() const {
    const Scratch scratch;
    io::GgufWriter out;
    out.add_string("general.architecture", "llama");
    const std::pair<const char*, uint32_t> numbers[] = {{"context_length", 8},
                                                        {"embedding_length", 8},
                                                        {"block_count", 1},
                                                        {"attention.head_count", 2},
                                                        {"feed_forward_length", 12}};
    for (const auto& [key, value] : numbers) out.add_u32(cat("llama.", key), value);
    if (experts) out.add_u32("llama.expert_count", kExperts), out.add_u32("llama.expert_used_count", 2);
    for (const auto& [name, value] : tensors) out.add_tensor(io::to_view(name, value));
    out.write(scratch.path("a.gguf"));
    const models::ModelGraph g = models::open_model(scratch.path("a.gguf")).graph();
    CompiledGraph run = compile(g.graph, g.weights);
    return run.run({{"input_ids", Literal::of<int32_t>({1, 5}, {3, 1, 4, 1, 5})}}).at("logits");
  }
};

// The weight itself multiplied, each of its matrices by one of the scales.
void multiply(Literal& weight, const std::vector<float>& scales) {
  const int64_t size = weight.elements() / int64_t(scales.size());
  std::vector<double> values;
  for (int64_t i = 0; i < weight.elements(); ++i)
    values.push_back(weight.real_at(i) * double(scales[size_t(i / size)]));
  weight = Literal::reals(weight.shape(), values);
}

void expect_scaled(bool experts, const std::string& name, const std::vector<float>& scales) {
  TinyGguf by_hand(experts), told(experts);
  const Literal before = told.logits();
  multiply(by_hand.tensors.at(name + ".weight"), scales);
  told.tensors.emplace(name + ".scale", Literal::of<float>({int64_t(scales.size())}, scales));
  const Literal want = by_hand.logits(), got = told.logits();
  EXPECT_GT(largest_difference(before, 0, want, 0, 5), 1e-3) << name;
  EXPECT_LT(largest_difference(got, 0, want, 0, 5), 1e-5) << name;
}

TEST(GgufScales, products_are_multiplied) {
  for (const char* name : {"attn_q", "attn_v", "attn_output", "ffn_gate", "ffn_down"})
    expect_scaled(false, cat("blk.0.", name), {2});
}

TEST(GgufScales, experts_have_one_each) {
  for (const char* name : {"gate", "up", "down"})
    expect_scaled(true, cat("blk.0.ffn_", name, "_exps"), {0.5, 2, 4, 0.25});
}

TEST(GgufScales, those_of_inputs_change_nothing) {
  TinyGguf plain(false), told(false);
  told.tensors.emplace("blk.0.attn_q.input_scale", Literal::of<float>({1}, {2}));
  EXPECT_EQ(largest_difference(plain.logits(), 0, told.logits(), 0, 5), 0);
}

TEST(GgufScales, without_a_product_or_of_another_number_are_refused) {
  for (const std::string name : {"blk.0.attn_norm.scale", "token_embd.scale"}) {
    TinyGguf stray(false);
    stray.tensors.emplace(name, Literal::of<float>({1}, {2}));
    const std::string message = message_of([&] { stray.logits(); });
    EXPECT_NE(message.find("no place in architecture 'llama': " + name), std::string::npos) << message;
  }
  TinyGguf many(false);
  many.tensors.emplace("blk.0.attn_q.scale", Literal::of<float>({2}, {2, 2}));
  EXPECT_NE(message_of([&] { many.logits(); }).find("tensor 'blk.0.attn_q.scale' is [2]"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
