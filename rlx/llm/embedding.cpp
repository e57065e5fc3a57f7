#include "rlx/llm/embedding.h"

#include <algorithm>
#include <numeric>

#include "rlx/base/error.h"
#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/llm/sentence_files.h"
#include "rlx/text/unicode.h"

namespace rlx::llm {

namespace {

struct PoolingName {
  std::string_view name;
  Pooling pooling;
};
constexpr PoolingName kPoolings[] = {
    {"mean", Pooling::mean}, {"cls", Pooling::first}, {"last", Pooling::last}};

Pooling stored_pooling(const models::Model& model, const SentenceFiles& files) {
  const Pooling usual = model.config().encoder ? Pooling::mean : Pooling::last;
  const io::ModelFile& file = model.file();
  if (!file.gguf) return files.pooling ? pooling_of(*files.pooling) : usual;
  const io::GgufValue* type = file.gguf->find(file.architecture() + ".pooling_type");
  if (!type || type->integer() == 0) return usual;
  switch (type->integer()) {
    case 1:
      return Pooling::mean;
    case 2:
      return Pooling::first;
    case 3:
      return Pooling::last;
    default:
      throw invalid("embed: '", file.path, "' has pooling type ", type->integer(), "; 0 to 3 are known");
  }
}

// The longest text: as the files for sentences say, else what model and tokenizer take.
int64_t most_tokens(const models::Model& model, const SentenceFiles& files) {
  const models::Config& c = model.config();
  const bool counts_from_padding = c.architecture == "roberta";  // positions up to that are not used
  int64_t most = c.max_positions - (counts_from_padding ? c.padding_id + 1 : 0);
  const auto lower = [&](double limit) {
    if (limit > 0 && (most <= 0 || limit < double(most))) most = int64_t(limit);
  };
  if (files.max_tokens > 0) {
    lower(double(files.max_tokens));
  } else if (const auto& folder = model.file().folder; folder && folder->tokenizer) {
    lower(folder->tokenizer->model_max_length.value_or(0));
  }
  return most;
}

std::string lowercase(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const text::Decoded d = text::decode_utf8(text, i);
    if (d.code == text::kBadByte)
      out.append(text.substr(i, d.length));
    else
      text::append_lowercase(out, d.code);
    i += d.length;
  }
  return out;
}

}  // namespace

Pooling pooling_named(std::string_view name) {
  for (const PoolingName& p : kPoolings)
    if (p.name == name) return p.pooling;
  throw invalid("embed: unknown pooling '", name, "'; known: mean, cls, last");
}

std::string_view pooling_name(Pooling pooling) {
  for (const PoolingName& p : kPoolings)
    if (p.pooling == pooling) return p.name;
  return "";
}

namespace {

Tensor to_length_1(const Tensor& x) { return x * (x.square().sum({1}, true).max(1e-24)).rsqrt(); }

// Steps behind the pooling, with weights of their own.
Tensor after_steps(Tensor x, std::span<const VectorStep> steps, Tracer& t, ir::NamedLiterals& weights) {
  const auto param = [&](const std::string& name, const Literal& value) {
    weights.insert_or_assign(name, value);
    return t.param(name, value.shape().dims(), value.dtype());
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const VectorStep& step = steps[i];
    if (!step.weight) {
      x = to_length_1(x);
      continue;
    }
    const int64_t in = x.dim(-1).value(), wanted = step.weight->shape().dim(1).value();
    if (in != wanted)
      throw invalid("embed: dense layer ", i, " takes vectors of ", wanted, ", and those before it have ",
                    in);
    x = x.matmul(param(cat("embedding.", i, ".weight"), *step.weight).t());
    if (step.bias) x = x + param(cat("embedding.", i, ".bias"), *step.bias);
    if (step.activation) x = step.activation(x);
  }
  return x;
}

int64_t width_after(std::span<const VectorStep> steps, int64_t width) {
  for (const VectorStep& step : steps)
    if (step.weight) width = step.weight->shape().dim(0).value();
  return width;
}

}  // namespace

models::ModelGraph embedding_graph(const models::Model& model, Pooling pooling, bool normalise,
                                   int64_t dimensions, std::span<const VectorStep> steps) {
  const models::Config& c = model.config();
  models::ModelGraph g = model.graph({.mask = true, .hidden = !c.encoder});
  Tracer t(g.graph);
  const std::string wanted = c.encoder ? "last_hidden_state" : "hidden";
  Tensor hidden;
  for (size_t i = 0; i < g.graph.outputs().size(); ++i)
    if (g.graph.output_name(i) == wanted) hidden = t.wrap(g.graph.outputs()[i]);
  const auto leaf = g.graph.find_leaf("mask");
  RLX_CHECK(!hidden.is_empty() && leaf, "a model graph without '", wanted, "' or mask");
  const Tensor mask = t.wrap(g.graph.value(*leaf)).cast(DType::f32).unsqueeze(2);  // [batch, seq, 1]
  Tensor x;
  if (pooling == Pooling::first) {
    x = hidden.narrow(1, 0, 1).squeeze(1);
  } else {
    Tensor weight = mask;
    // The last token is the one behind which the mask counts no other: padding stands at the end.
    if (pooling == Pooling::last) weight = mask * (mask.cumsum(1).eq(mask.sum({1}, true))).cast(DType::f32);
    x = (hidden * weight).sum({1}) / weight.sum({1});
  }
  x = after_steps(x, steps, t, g.weights);
  if (dimensions > 0) x = x.narrow(1, 0, dimensions);
  if (normalise) x = to_length_1(x);
  g.graph.set_outputs({x}, {"embedding"});
  g.graph.erase_dead();
  return g;
}

struct Embedder::State {
  std::shared_ptr<const models::Model> model;
  EmbedOptions options;
  SentenceFiles files;
  int64_t width = 0;  // of a whole vector
  Pooling pooling;
  std::optional<text::Tokenizer> tokenizer;
  std::unique_ptr<CompiledGraph> graph;
};

Embedder Embedder::open(const std::string& path, const EmbedOptions& options) {
  return Embedder(std::make_shared<const models::Model>(models::open_model(path)), options);
}

Embedder::Embedder(std::shared_ptr<const models::Model> model, EmbedOptions options) : state_(new State) {
  State& s = *state_;
  s.model = std::move(model);
  s.options = std::move(options);
  const io::ModelFile& file = s.model->file();
  if (file.gguf)
    s.files.steps = stored_steps(file);
  else
    s.files = sentence_files(file.path);
  s.width = width_after(s.files.steps, s.model->config().hidden);
  if (s.options.dimensions < 0 || s.options.dimensions > s.width)
    throw invalid("embed: ", s.options.dimensions, " dimensions; 1 to ", s.width, " expected, or 0 for all");
  s.pooling = s.options.pooling ? *s.options.pooling : stored_pooling(*s.model, s.files);
  models::ModelGraph g =
      embedding_graph(*s.model, s.pooling, s.options.normalise, s.options.dimensions, s.files.steps);
  s.graph = std::make_unique<CompiledGraph>(g.graph, g.weights, s.options.compile);
}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;

int64_t Embedder::dimensions() const {
  return state_->options.dimensions > 0 ? state_->options.dimensions : state_->width;
}
Pooling Embedder::pooling() const { return state_->pooling; }

std::vector<std::vector<float>> Embedder::embed(std::span<const std::string> texts) {
  State& s = *state_;
  if (!s.tokenizer) {
    s.tokenizer = s.model->file().tokenizer();
    int64_t most = most_tokens(*s.model, s.files);
    if (s.options.max_tokens > 0)
      most = most > 0 ? std::min(most, s.options.max_tokens) : s.options.max_tokens;
    if (most > 0) s.tokenizer->set_truncation(text::Truncation{.max_length = size_t(most)});
    s.tokenizer->set_padding({});
  }
  std::vector<std::string> changed;
  if (s.files.lowercase || !s.files.prompt.empty()) {
    for (const std::string& text : texts)
      changed.push_back(s.files.lowercase ? lowercase(s.files.prompt + text) : s.files.prompt + text);
    texts = changed;
  }
  std::vector<std::vector<text::TokenId>> ids;
  for (text::Encoding& e :
       s.tokenizer->encode_batch(texts, {}, s.options.compile.threads > 0 ? s.options.compile.threads : 1))
    ids.push_back(std::move(e.ids));
  return embed_ids(ids);
}

std::vector<std::vector<float>> Embedder::embed_ids(std::span<const std::vector<text::TokenId>> ids) {
  State& s = *state_;
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ids[a].size() < ids[b].size(); });
  std::vector<std::vector<float>> out(ids.size());
  std::vector<int32_t> tokens, mask;
  for (size_t first = 0; first < order.size();) {
    // As many as fit when all are as long as the longest.
    size_t last = first + 1;
    while (last < order.size() &&
           int64_t(ids[order[last]].size() * (last + 1 - first)) <= s.options.batch_tokens)
      ++last;
    const auto rows = int64_t(last - first), length = int64_t(ids[order[last - 1]].size());
    if (ids[order[first]].empty()) throw invalid("embed: text ", order[first], " has no tokens");
    tokens.assign(size_t(rows * length), int32_t(s.model->config().padding_id));
    mask.assign(size_t(rows * length), 0);
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<text::TokenId>& text = ids[order[first + size_t(row)]];
      std::copy(text.begin(), text.end(), tokens.begin() + row * length);
      std::fill_n(mask.begin() + row * length, text.size(), 1);
    }
    const Outputs result = s.graph->run(
        {{"input_ids", view(tokens.data(), {rows, length})}, {"mask", view(mask.data(), {rows, length})}});
    const auto values = result.view("embedding").as<const float>();
    const auto n = size_t(dimensions());
    for (size_t row = 0; row < size_t(rows); ++row)
      out[order[first + row]].assign(values.begin() + long(row * n), values.begin() + long((row + 1) * n));
    first = last;
  }
  return out;
}

}  // namespace rlx::llm
