// The draft heads of Qwen3-Next, Qwen3.5 and DeepSeek V3. The stored checkpoints have none: one is added.
#include "rlx/llm/draft_head.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "rlx/llm/language_model.h"
#include "tests/models/gguf_form.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::llm {
namespace {

using Ids = std::vector<TokenId>;
using Tensors = std::map<std::string, Literal>;

// The model with a head whose layer is that of its last layer, which has attention in each of these models.
struct WithHead {
  explicit WithHead(const std::string& name)
      : folder(test::data_path("checkpoints/" + name)), deepseek(name.starts_with("deepseek")) {
    for (const io::TensorView& t : io::ModelFile::open(folder).tensors)
      tensors.emplace(t.name, io::to_literal(t));
    const int64_t layers = Json::read(folder + "/config.json").at("num_hidden_layers").integer();
    const std::string last = cat("model.layers.", layers - 1, ".");
    front = deepseek ? cat("model.layers.", layers, ".") : "mtp.layers.0.";
    Tensors more;
    for (const auto& [key, value] : tensors)
      if (key.starts_with(last)) more.emplace(front + key.substr(last.size()), value);
    tensors.merge(more);
    hidden = tensors.at("model.norm.weight").shape().dim(0).value();
    tensors[named("norm")] = tensors.at("model.norm.weight");
    // Norms of Qwen multiply by 1 + weight.
    tensors[named("embed_norm")] = tensors[named("hidden_norm")] =
        Literal::full(Shape(DType::f32, {hidden}), deepseek ? 1 : 0);
    tensors[named("in")] = ir::sample_literal(cat("f32[", hidden, ",", 2 * hidden, "]"), 5);
  }

  std::string named(std::string_view part) const {
    const std::map<std::string_view, std::string> qwen{{"in", "mtp.fc"},
                                                       {"embed_norm", "mtp.pre_fc_norm_embedding"},
                                                       {"hidden_norm", "mtp.pre_fc_norm_hidden"},
                                                       {"norm", "mtp.norm"}},
        other{{"in", "eh_proj"},         {"embed_norm", "enorm"},
              {"hidden_norm", "hnorm"},  {"norm", "shared_head.norm"},
              {"embed", "embed_tokens"}, {"head", "shared_head.head"}};
    return (deepseek ? front + other.at(part) : qwen.at(part)) + ".weight";
  }

  // fc picks the embedding, or what the model made of the token before; the layer adds nothing.
  void pass_on(bool embedding) {
    std::vector<double> fc(size_t(2 * hidden * hidden), 0);
    for (int64_t i = 0; i < hidden; ++i) fc[size_t(i * 2 * hidden + i + (embedding ? 0 : hidden))] = 1;
    tensors[named("in")] = Literal::reals(Shape(DType::f32, {hidden, 2 * hidden}), fc);
    tensors[named("norm")] = tensors.at(named("embed_norm"));  // multiplies by 1
    // The model's own norm stretches some lanes, so that the hidden state in front of it would make other guesses.
    std::vector<double> norm;
    for (int64_t i = 0; i < hidden; ++i) norm.push_back((i % 3 == 0 ? 4.0 : 0.25) - (deepseek ? 0 : 1));
    tensors["model.norm.weight"] = Literal::reals(Shape(DType::f32, {hidden}), norm);
    for (auto& [key, value] : tensors)
      if (key.starts_with(front) && (key.ends_with("o_proj.weight") || key.ends_with("down_proj.weight")))
        value = Literal::zeros(value.shape());
  }

  std::string write(const test::Scratch& scratch) const {
    const std::string path = scratch.path("model");
    std::filesystem::create_directories(path);
    std::string config = read_file(folder + "/config.json");
    if (const size_t at = config.find("\"num_nextn_predict_layers\": 0"); at != config.npos)
      config[at + 28] = '1';
    write_file(path + "/config.json", config);
    std::vector<io::TensorView> views;
    for (const auto& [key, value] : tensors) views.push_back(io::to_view(key, value));
    io::write_safetensors(path + "/model.safetensors", views);
    return path;
  }

  std::string write_gguf(const test::Scratch& scratch) const {
    const std::string path = scratch.path("model.gguf");
    test::write_gguf_form(models::open_model(write(scratch)), path);
    return path;
  }

  std::string folder;
  bool deepseek;
  std::string front;  // of the names of its layer
  Tensors tensors;
  int64_t hidden = 0;
};

GenerateOptions greedy(int64_t tokens, int64_t mtp = 0) {
  return {.max_tokens = tokens, .sampling = {.temperature = 0}, .ignore_end = true, .mtp = mtp};
}

class DraftHeads : public testing::TestWithParam<const char*> {};

TEST_P(DraftHeads, ChangeNoToken) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  LanguageModel model = LanguageModel::open(WithHead(GetParam()).write(scratch), {.context = 96});
  EXPECT_TRUE(model.model().has_draft());
  Ids prompt{5, 9, 100, 7, 30, 31, 8};
  for (const int64_t guesses : {1, 2, 5}) {
    const Generation plain = model.generate_ids(prompt, greedy(24)),
                     drafted = model.generate_ids(prompt, greedy(24, guesses));
    EXPECT_EQ(drafted.tokens, plain.tokens) << guesses << " guesses";
    EXPECT_LE(drafted.runs, plain.runs);
    GenerateOptions drawn = greedy(24), both = greedy(24, guesses);
    drawn.sampling = both.sampling = {.temperature = 0.8, .seed = uint64_t(guesses)};
    EXPECT_EQ(model.generate_ids(prompt, both).tokens, model.generate_ids(prompt, drawn).tokens);
    // On with the text, part of which is remembered.
    prompt.insert(prompt.end(), plain.tokens.begin(), plain.tokens.begin() + 5);
    prompt.push_back(TokenId(40 + guesses));
  }
}

Ids guesses_behind(const models::Model& model, const Ids& text) {
  Decoder d(model, {.capacity = 64, .draft_hidden = true});
  DraftHead head(model, 3, 64, {});
  d.feed(std::span(text).first(text.size() - 1));
  head.follow(0, d.draft_hidden());
  return head.guess(text, 3);
}

// The same guesses from the names of GGUF, and the same texts with and without them.
TEST_P(DraftHeads, ComeFromGgufFilesToo) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  const WithHead files(GetParam());
  const std::string path = files.write_gguf(scratch);
  const models::Model folder = models::open_model(files.write(scratch)), gguf = models::open_model(path);
  ASSERT_TRUE(gguf.has_draft());
  EXPECT_EQ(gguf.config().layers, folder.config().layers);
  for (const Ids& text : {Ids{5, 9, 77}, Ids{100, 3, 8, 41, 2}, Ids{1, 2, 3, 4, 5, 6, 7, 8}})
    EXPECT_EQ(guesses_behind(gguf, text), guesses_behind(folder, text));
  LanguageModel plain = LanguageModel::open(files.write(scratch), {.context = 96}),
                drafted = LanguageModel::open(path, {.context = 96});
  const Ids prompt{5, 9, 100, 7, 30, 31, 8};
  EXPECT_EQ(drafted.generate_ids(prompt, greedy(24, 3)).tokens,
            plain.generate_ids(prompt, greedy(24)).tokens);
}

// Embeddings and a head of its own are read where a file has them: rows in another order make other guesses.
TEST(DraftHead, ItsOwnTablesCount) {
  RLX_REQUIRE_DATA("checkpoints/deepseek_v3");
  const test::Scratch scratch;
  WithHead files("deepseek_v3");
  const Ids text{5, 9, 77};
  const Ids shared = guesses_behind(models::open_model(files.write(scratch)), text);
  const auto turned = [](const Literal& table) {
    const int64_t rows = table.shape().dim(0).value(), width = table.shape().dim(1).value();
    std::vector<double> v;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < width; ++i) v.push_back(table.real_at((rows - 1 - r) * width + i));
    return Literal::reals(table.shape(), v);
  };
  for (const auto& [own, main] :
       {std::pair("embed", "model.embed_tokens.weight"), {"head", "lm_head.weight"}}) {
    files.tensors[files.named(own)] = files.tensors.at(main);
    EXPECT_EQ(guesses_behind(models::open_model(files.write(scratch)), text), shared) << own;
    files.tensors[files.named(own)] = turned(files.tensors.at(main));
    EXPECT_NE(guesses_behind(models::open_model(files.write(scratch)), text), shared) << own;
    EXPECT_EQ(guesses_behind(models::open_model(files.write_gguf(scratch)), text),
              guesses_behind(models::open_model(files.write(scratch)), text));
    files.tensors.erase(files.named(own));
  }
}

// With nothing but what the model made of the token before, behind its last norm, the head repeats the model's choice.
TEST_P(DraftHeads, ReadWhatTheModelMadeOfTheTokenBefore) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  WithHead files(GetParam());
  files.pass_on(false);
  const models::Model model = models::open_model(files.write(scratch));
  Decoder d(model, {.capacity = 64, .draft_hidden = true});
  DraftHead head(model, 1, 64, {});
  Ids text{5, 9, 100, 7};
  for (int64_t step = 0; step < 6; ++step) {
    const int64_t before = d.length();
    const TensorView logits = d.feed(std::span(text).subspan(size_t(before)));
    head.follow(before, d.draft_hidden());
    const auto row = logits.as<const float>();
    text.push_back(TokenId(std::max_element(row.begin(), row.end()) - row.begin()));
    EXPECT_EQ(head.guess(text, 4), Ids{text.back()}) << "step " << step;
  }
}

// With the embedding alone the guess depends on the last token and nothing else.
TEST_P(DraftHeads, ReadTheLastToken) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  WithHead files(GetParam());
  files.pass_on(true);
  const models::Model model = models::open_model(files.write(scratch));
  const auto guess_behind = [&](const Ids& text) {
    Decoder d(model, {.capacity = 64, .draft_hidden = true});
    DraftHead head(model, 2, 64, {});
    d.feed(std::span(text).first(text.size() - 1));
    head.follow(0, d.draft_hidden());
    return head.guess(text, 2);
  };
  EXPECT_EQ(guess_behind({5, 9, 77}), guess_behind({100, 3, 8, 77}));
  EXPECT_NE(guess_behind({5, 9, 77}), guess_behind({5, 9, 78}));
}

INSTANTIATE_TEST_SUITE_P(Models, DraftHeads, testing::Values("qwen3next", "qwen3_5", "deepseek_v3"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DraftHead, AModelWithoutOneIsRefused) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = LanguageModel::open(test::data_path("checkpoints/llama"));
  EXPECT_NE(test::message_of([&] { model.generate_ids(Ids{1, 2}, greedy(4, 2)); }).find("has no draft head"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::llm
