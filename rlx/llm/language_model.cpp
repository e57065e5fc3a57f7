#include "rlx/llm/language_model.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/llm/model_state.h"

namespace rlx::llm {

namespace {

// Tokens that end an answer: those of the configuration, and those that vocabularies of chat models end a turn with.
std::vector<TokenId> find_end_tokens(const models::Model& model,
                                     const std::optional<text::Tokenizer>& tokenizer) {
  std::vector<TokenId> ends;
  const auto add = [&](TokenId id) {
    if (id >= 0 && id < model.config().vocab && std::find(ends.begin(), ends.end(), id) == ends.end())
      ends.push_back(id);
  };
  for (const int64_t id : model.config().eos) add(TokenId(id));
  if (tokenizer)
    for (const char* name : {"<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                             "<|end_of_text|>", "<|eom_id|>"})
      if (const auto id = tokenizer->token_to_id(name); id && tokenizer->is_special(*id)) add(*id);
  return ends;
}

// A model may be one of ids alone; what is wrong with its tokenizer is told when somebody asks for text.
std::optional<text::Tokenizer> find_tokenizer(const models::Model& model, std::string& why_none) {
  try {
    return model.file().tokenizer();
  } catch (const Error& e) {
    why_none = e.message();
    return std::nullopt;
  }
}

}  // namespace

std::string_view finish_name(Finish f) {
  switch (f) {
    case Finish::end_token:
      return "end";
    case Finish::stop_text:
      return "stop";
    case Finish::max_tokens:
      return "length";
    case Finish::context_full:
      return "context";
    case Finish::grammar_done:
      return "grammar";
    case Finish::cancelled:
      return "cancelled";
  }
  return "";
}

double Generation::tokens_per_second() const {
  const double time = seconds - first_token_seconds;
  return tokens.size() > 1 && time > 0 ? double(tokens.size() - 1) / time : 0;
}

LanguageModel LanguageModel::open(const std::string& path, const ModelOptions& options) {
  return LanguageModel(std::make_shared<const models::Model>(models::open_model(path)), options);
}

LanguageModel::LanguageModel(std::shared_ptr<const models::Model> model, ModelOptions options)
    : state_(new State) {
  state_->model = std::move(model);
  state_->options = std::move(options);
  state_->tokenizer = find_tokenizer(*state_->model, state_->why_no_tokenizer);
  state_->end_tokens = find_end_tokens(*state_->model, state_->tokenizer);
}
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;

const models::Model& LanguageModel::model() const { return *state_->model; }

const text::Tokenizer& LanguageModel::tokenizer() const {
  if (!state_->tokenizer)
    throw invalid("model '", model().file().path, "' has no tokenizer for texts: ", state_->why_no_tokenizer,
                  "; give it ids");
  return *state_->tokenizer;
}

const std::vector<TokenId>& LanguageModel::end_tokens() const { return state_->end_tokens; }

std::shared_ptr<const TokenTrie> LanguageModel::token_trie() {
  if (!state_->trie) state_->trie = std::make_shared<const TokenTrie>(tokenizer(), state_->end_tokens);
  return state_->trie;
}

std::vector<TokenId> LanguageModel::encode(std::string_view text) const {
  return tokenizer().encode(text).ids;
}

std::string LanguageModel::chat_prompt(const text::Value& messages) const {
  if (!state_->chat) {
    const io::ModelTemplate t = model().file().chat_template();
    state_->chat = {text::ChatTemplate(t.source), t.bos_token, t.eos_token};
  }
  return state_->chat->tmpl.render(messages,
                                   {.bos_token = state_->chat->bos, .eos_token = state_->chat->eos});
}

Decoder& LanguageModel::decoder(bool all_logits, const std::shared_ptr<const Adapter>& adapter,
                                bool draft_hidden) {
  State& s = *state_;
  for (State::Held& held : s.decoders)
    if (held.all_logits == all_logits && held.adapter == adapter && held.draft_hidden == draft_hidden)
      return *held.decoder;
  DecoderOptions options{.capacity = s.options.context,
                         .cache_type = s.options.cache_type,
                         .round_activations = s.options.round_activations,
                         .all_logits = all_logits,
                         .draft_hidden = draft_hidden,
                         .chunk = s.options.chunk,
                         .compile = s.options.compile};
  if (adapter) {
    adapter->check_fits(model());
    options.linear = adapter->hook();
    options.adapter_weights = adapter->weights();
  }
  s.decoders.push_back(
      {all_logits, adapter, std::make_unique<Decoder>(model(), std::move(options)), draft_hidden});
  return *s.decoders.back().decoder;
}

DraftHead& LanguageModel::State::draft_head(const Decoder& decoder, int64_t tokens) {
  const auto held = std::find_if(decoders.begin(), decoders.end(),
                                 [&](const Held& h) { return h.decoder.get() == &decoder; });
  RLX_CHECK(held != decoders.end() && held->draft_hidden, "a draft head follows a decoder that feeds it");
  if (!held->head) held->head = std::make_unique<DraftHead>(*model, tokens, options.context, options.compile);
  held->head->set_tokens(tokens);
  return *held->head;
}

Sampler& LanguageModel::sampler() {
  if (!state_->sampler) {
    CompileOptions options = state_->options.compile;
    options.states.clear();
    state_->sampler = std::make_unique<Sampler>(config().vocab, std::move(options));
  }
  return *state_->sampler;
}

Generation LanguageModel::generate(std::string_view prompt, const GenerateOptions& options,
                                   const OnToken& on_token) {
  return generate_ids(encode(prompt), options, on_token);
}

}  // namespace rlx::llm
