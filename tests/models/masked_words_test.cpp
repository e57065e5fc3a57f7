// Heads of encoders for masked words, and the words that early checkpoints of BERT have for norms.
#include <cmath>

#include "rlx/ir/sample.h"
#include "tests/models/folder.h"

namespace rlx::test {
namespace {

NamedLiterals results_of(const std::string& path, const Literal& ids) {
  const models::ModelGraph g = models::open_model(path).graph();
  return compile(g.graph, g.weights, options_of(g)).run({{"input_ids", ids}});
}

struct Head {
  const char *checkpoint, *embed, *transform, *norm, *bias;
};

class MaskedWords : public testing::TestWithParam<Head> {};

// gelu(W x + b) normed, by the table of embeddings, and a bias.
std::vector<double> by_hand(const Folder& f, const Head& h, std::span<const float> x, double eps) {
  const auto values = [&](const std::string& name) { return f.tensors.at(name).data<float>(); };
  const size_t width = x.size();
  const auto w = values(cat(h.transform, ".weight")), b = values(cat(h.transform, ".bias")),
             gamma = values(cat(h.norm, ".weight")), table = values(h.embed), bias = values(h.bias);
  std::vector<double> y(width), out(bias.begin(), bias.end());
  double mean = 0, square = 0;
  for (size_t i = 0; i < width; ++i) {
    double sum = b[i];
    for (size_t j = 0; j < width; ++j) sum += double(w[i * width + j]) * x[j];
    y[i] = 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)));
    mean += y[i] / double(width);
  }
  for (const double v : y) square += (v - mean) * (v - mean) / double(width);
  for (size_t i = 0; i < width; ++i) y[i] = (y[i] - mean) / std::sqrt(square + eps) * gamma[i];
  for (size_t v = 0; v < out.size(); ++v)
    for (size_t i = 0; i < width; ++i) out[v] += y[i] * table[v * width + i];
  return out;
}

TEST_P(MaskedWords, AreTheLogits) {
  const Head h = GetParam();
  RLX_REQUIRE_DATA(std::string("checkpoints/") + h.checkpoint);
  const Scratch scratch;
  Folder f(h.checkpoint);
  const models::Config c = models::open_model(f.path).config();
  const auto add = [&](const std::string& name, Dims dims) {
    f.tensors.insert_or_assign(name, ir::sample_literal(cat(Shape(DType::f32, dims)), name.size()));
  };
  add(cat(h.transform, ".weight"), {c.hidden, c.hidden});
  add(cat(h.transform, ".bias"), {c.hidden});
  add(cat(h.norm, ".weight"), {c.hidden});
  add(h.bias, {c.vocab});
  const Literal ids = Literal::of<int32_t>({1, 4}, {5, 9, 11, 6});
  const NamedLiterals got = results_of(f.write(scratch), ids);
  const auto hidden = got.at("last_hidden_state").data<float>(), logits = got.at("logits").data<float>();
  ASSERT_EQ(int64_t(logits.size()), 4 * c.vocab);
  for (int64_t token = 0; token < 4; ++token) {
    const auto want = by_hand(f, h, hidden.subspan(size_t(token * c.hidden), size_t(c.hidden)), c.norm_eps);
    for (int64_t v = 0; v < c.vocab; ++v)
      ASSERT_NEAR(logits[size_t(token * c.vocab + v)], want[size_t(v)], 1e-3) << token << " " << v;
  }
}

// Of all tasks the encoder is the same.
TEST(HeadsOfOtherTasks, ArePassedOver) {
  for (const char* checkpoint : {"bert", "roberta"}) {
    RLX_REQUIRE_DATA(std::string("checkpoints/") + checkpoint);
    const Scratch scratch;
    Folder f(checkpoint);
    const Literal ids = Literal::of<int32_t>({1, 4}, {5, 9, 11, 6});
    const Literal want = results_of(f.path, ids).at("last_hidden_state");
    f.tensors.emplace("qa_outputs.weight",
                      Literal::zeros(Shape(DType::f32, {2, want.shape().dim(2).value()})));
    f.tensors.emplace("qa_outputs.bias", Literal::zeros(Shape(DType::f32, {2})));
    expect_close(results_of(f.write(scratch), ids).at("last_hidden_state"), want, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MaskedWords,
                         testing::Values(Head{"bert", "embeddings.word_embeddings.weight",
                                              "cls.predictions.transform.dense",
                                              "cls.predictions.transform.LayerNorm", "cls.predictions.bias"},
                                         Head{"roberta", "embeddings.word_embeddings.weight", "lm_head.dense",
                                              "lm_head.layer_norm", "lm_head.bias"},
                                         Head{"modernbert", "embeddings.tok_embeddings.weight", "head.dense",
                                              "head.norm", "decoder.bias"}),
                         [](const auto& info) { return std::string(info.param.checkpoint); });

TEST(OldNames, OfNormsAreThoseOfTensorFlow) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const Scratch scratch;
  Folder f("bert");
  std::map<std::string, Literal> renamed;
  for (const auto& [name, value] : f.tensors) {
    const size_t at = name.find("LayerNorm.");
    if (at == name.npos) {
      renamed.emplace(name, value);
    } else {
      renamed.emplace(name.substr(0, at + 10) + (name.ends_with("weight") ? "gamma" : "beta"), value);
    }
  }
  const Literal ids = Literal::of<int32_t>({1, 4}, {5, 9, 11, 6});
  const Literal want = results_of(f.path, ids).at("last_hidden_state");
  f.tensors = renamed;
  const Literal got = results_of(f.write(scratch), ids).at("last_hidden_state");
  EXPECT_EQ(largest_difference(got, 0, want, 0, 4), 0);
}

}  // namespace
}  // namespace rlx::test
