#include "rlx/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "rlx/base/error.h"
#include "rlx/base/pool.h"
#include "rlx/text/decode_table.h"
#include "rlx/text/tokenizer_parts.h"

namespace rlx::text {

namespace {

// Buffers of one encode call.
struct Scratch {
  ModelScratch model;
  std::vector<AddedTokens::Part> parts, inner_parts;
  Pieces pieces;
};

}  // namespace

struct Tokenizer::State {
  TokenizerParts parts;
  AddedTokens added;
  DecodeTable table;
  // Scratches not in use. Each carries a word cache, so they are kept for the life of the tokenizer.
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> idle;

  explicit State(TokenizerParts p)
      : parts(std::move(p)),
        added(std::move(parts.added), parts.normalizer.get()),
        table(parts.model->vocab(), added, std::move(parts.decoder)) {}

  std::unique_ptr<Scratch> take_scratch() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(idle.back());
    idle.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }

  // Text without added tokens that are looked for before normalisation.
  void encode_plain(std::string_view text, uint32_t offset, const EncodeOptions& options, Scratch& scratch,
                    TokenSink& sink) const {
    Pieces& pieces = scratch.pieces;
    pieces.reset(text, offset, options.offsets);
    if (parts.normalizer) parts.normalizer->apply(pieces.text);
    if (!added.any(true)) return encode_pieces(pieces, scratch, sink);
    added.split(pieces.text.view(), true, options.parse_special, scratch.inner_parts);
    const auto& inner = scratch.inner_parts;
    if (inner.size() == 1 && inner[0].id < 0) return encode_pieces(pieces, scratch, sink);
    for (const AddedTokens::Part& part : inner) {
      if (part.id >= 0) {
        sink.base = 0;
        sink.add(part.id, options.offsets ? pieces.text.origin(part.range) : part.range);
      } else {
        Pieces slice{pieces.text.slice(part.range), {}};
        encode_pieces(slice, scratch, sink);
      }
    }
  }

  void encode_pieces(Pieces& pieces, Scratch& scratch, TokenSink& sink) const {
    pieces.start();
    if (parts.pretokenizer) parts.pretokenizer->apply(pieces);
    const std::string_view view = pieces.text.view();
    const size_t first = sink.ranges.size();
    for (const Range word : pieces.words) {
      sink.base = word.begin;
      parts.model->encode(view.substr(word.begin, word.size()), scratch.model, sink);
    }
    for (size_t i = first; i < sink.ranges.size(); ++i) sink.ranges[i] = pieces.text.origin(sink.ranges[i]);
  }

  void truncate(std::vector<Encoding>& texts, size_t room) const;
};

Tokenizer::Tokenizer(TokenizerParts parts) : state_(std::make_unique<State>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Encoding Tokenizer::encode_one(std::string_view text, const EncodeOptions& options, uint8_t type_id) const {
  constexpr size_t kMaxText = size_t(1) << 31;
  if (text.size() >= kMaxText)
    throw invalid("encode: the text has ", text.size(), " bytes; at most ", kMaxText - 1, " at a time");
  State& s = *state_;
  std::unique_ptr<Scratch> scratch = s.take_scratch();
  TokenSink sink;
  sink.want_ranges = options.offsets;
  sink.ids.reserve(text.size() / 4 + 8);
  s.added.split(text, false, options.parse_special, scratch->parts);
  for (const AddedTokens::Part& part : scratch->parts) {
    if (part.id >= 0) {
      sink.base = 0;
      sink.add(part.id, part.range);
    } else {
      const std::string_view plain = text.substr(part.range.begin, part.range.size());
      s.encode_plain(plain, part.range.begin, options, *scratch, sink);
    }
  }
  s.give_back(std::move(scratch));
  Encoding e;
  e.ids = std::move(sink.ids);
  e.offsets = std::move(sink.ranges);
  e.type_ids.assign(e.ids.size(), type_id);
  e.special_mask.assign(e.ids.size(), 0);
  e.attention_mask.assign(e.ids.size(), 1);
  return e;
}

void Tokenizer::State::truncate(std::vector<Encoding>& texts, size_t room) const {
  const Truncation& t = *parts.truncation;
  size_t total = 0;
  for (const Encoding& e : texts) total += e.size();
  if (total <= room) return;
  const size_t remove = total - room;
  if (t.strategy == Truncation::Strategy::longest_first) {
    if (texts.size() == 1) return texts[0].truncate(room, t.keep_right);
    // The longer text gives first; when both are longer than half of the room they share it.
    size_t shorter = std::min(texts[0].size(), texts[1].size()), longer = 0;
    const bool swapped = texts[0].size() > texts[1].size();
    longer = shorter > room ? shorter : std::max(shorter, room - shorter);
    if (shorter + longer > room) {
      shorter = room / 2;
      longer = shorter + room % 2;
    }
    texts[0].truncate(swapped ? longer : shorter, t.keep_right);
    texts[1].truncate(swapped ? shorter : longer, t.keep_right);
    return;
  }
  const bool second = t.strategy == Truncation::Strategy::only_second;
  if (second && texts.size() < 2)
    throw invalid("encode: truncation is set to the second text only, and there is one text");
  Encoding& target = texts[second ? 1 : 0];
  if (target.size() <= remove)
    throw invalid("encode: ", remove, " tokens must go to fit ", t.max_length, ", and the ",
                  second ? "second" : "first", " text has only ", target.size());
  target.truncate(target.size() - remove, t.keep_right);
}

Encoding Tokenizer::finish(std::vector<Encoding> texts, std::span<const std::string_view> sources,
                           const EncodeOptions& options) const {
  const State& s = *state_;
  const PostProcessor* post = s.parts.post_processor.get();
  if (s.parts.truncation) {
    const size_t added = post && options.add_special ? post->added(texts.size() > 1) : 0;
    const size_t length = s.parts.truncation->max_length;
    s.truncate(texts, length > added ? length - added : 0);
  }
  if (post) {
    const Spelling spelling = [&s](TokenId id, std::string_view in_text) {
      return s.added.find(id) ? in_text : s.table.token(id);
    };
    if (options.offsets) post->trim(texts, sources, spelling);
    post->process(texts, options.add_special);
  }
  Encoding out = std::move(texts[0]);
  for (size_t i = 1; i < texts.size(); ++i) out.append(texts[i]);
  return out;
}

void Tokenizer::pad(std::vector<Encoding>& encodings) const {
  if (!state_->parts.padding) return;
  const Padding& p = *state_->parts.padding;
  size_t length = p.length.value_or(0);
  if (!p.length)
    for (const Encoding& e : encodings) length = std::max(length, e.size());
  if (p.multiple_of > 1) length = (length + p.multiple_of - 1) / p.multiple_of * p.multiple_of;
  for (Encoding& e : encodings) e.pad(length, p.id, p.type_id, p.on_left);
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<Encoding> texts;
  texts.push_back(encode_one(text, options, 0));
  std::vector<Encoding> out;
  out.push_back(finish(std::move(texts), std::array{text}, options));
  pad(out);
  return std::move(out[0]);
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  std::vector<Encoding> texts;
  texts.push_back(encode_one(first, options, 0));
  texts.push_back(encode_one(second, options, 1));
  std::vector<Encoding> out;
  out.push_back(finish(std::move(texts), std::array{first, second}, options));
  pad(out);
  return std::move(out[0]);
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts,
                                              const EncodeOptions& options, int threads) const {
  if (threads < 1) throw invalid("encode_batch: ", threads, " threads; at least 1");
  std::vector<Encoding> out(texts.size());
  Team(default_pool(), threads).parallel_chunks(int64_t(texts.size()), 1, [&](int64_t begin, int64_t end) {
    for (size_t i = size_t(begin); i < size_t(end); ++i) {
      std::vector<Encoding> one;
      one.push_back(encode_one(texts[i], options, 0));
      out[i] = finish(std::move(one), std::array{std::string_view(texts[i])}, options);
    }
  });
  pad(out);
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  std::string text = state_->table.decode(ids, options);
  if (options.clean_spaces && state_->parts.clean_spaces) clean_spaces(text);
  return text;
}

size_t Tokenizer::vocab_size() const { return state_->table.size(); }
std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  if (const AddedToken* t = state_->added.find(token)) return t->id;
  return state_->parts.model->vocab().find(token);
}
std::string_view Tokenizer::id_to_token(TokenId id) const { return state_->table.token(id); }
bool Tokenizer::is_special(TokenId id) const { return state_->table.is_special(id); }
int Tokenizer::fallback_byte(TokenId id) const { return state_->table.fallback_byte(id); }
void Tokenizer::set_truncation(std::optional<Truncation> t) { state_->parts.truncation = t; }
void Tokenizer::set_padding(std::optional<Padding> p) { state_->parts.padding = p; }

}  // namespace rlx::text
