// SentencePiece .model files: a protocol buffer, of which a dozen fields matter here. Numbers of fields as in
// sentencepiece_model.proto:
//   ModelProto      1 pieces, 2 trainer_spec, 3 normalizer_spec
//   SentencePiece   1 piece, 2 score (float), 3 type
//   TrainerSpec     3 model_type (1 unigram, 2 bpe), 24 treat_whitespace_as_suffix, 35 byte_fallback,
//                   40..43 ids of unknown, bos, eos, padding
//   NormalizerSpec  2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5
//   escape_whitespaces
#include <cstring>

#include "rlx/base/error.h"
#include "rlx/text/vocab_spec.h"

namespace rlx::text {

namespace {

/// Reads the fields of one message; every length is checked against the bytes that are there.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, size_t offset) : bytes_(bytes), base_(offset) {}

  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // varint and fixed-size fields
    std::string_view bytes;  // length-delimited fields
    bool delimited = false;
    size_t offset = 0;  // in the file
  };

  bool next(Field& field) {
    if (at_ >= bytes_.size()) return false;
    field = {};
    field.offset = base_ + at_;
    const uint64_t key = varint();
    field.number = uint32_t(key >> 3);
    switch (key & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2: {
        const uint64_t length = varint();
        if (length > bytes_.size() - at_)
          throw invalid("field ", field.number, " at byte ", field.offset, " says it has ", length,
                        " bytes, ", bytes_.size() - at_, " are left");
        field.offset = base_ + at_;
        field.bytes = bytes_.substr(at_, size_t(length));
        field.delimited = true;
        at_ += size_t(length);
        break;
      }
      case 5:
        field.value = fixed(4);
        break;
      default:
        throw invalid("byte ", field.offset, " has wire type ", key & 7, "; not a SentencePiece model");
    }
    return true;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) throw invalid("the file ends inside a number at byte ", base_ + at_);
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t(byte & 0x7F) << shift;
      if (!(byte & 0x80)) return value;
    }
    throw invalid("the number before byte ", base_ + at_, " is too long");
  }
  uint64_t fixed(size_t size) {
    if (bytes_.size() - at_ < size) throw invalid("the file ends inside a number at byte ", base_ + at_);
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, size);
    at_ += size;
    return value;
  }

  std::string_view bytes_;
  size_t base_, at_ = 0;
};

void read_piece(ProtoReader reader, VocabSpec& spec) {
  std::string piece;
  float score = 0;
  uint64_t type = 1;
  for (ProtoReader::Field f; reader.next(f);) {
    if (f.number == 1 && f.delimited) piece = f.bytes;
    if (f.number == 2) {
      const auto bits = uint32_t(f.value);
      std::memcpy(&score, &bits, 4);
    }
    if (f.number == 3) type = f.value;
  }
  if (type < 1 || type > 6) throw invalid("piece ", spec.tokens.size(), " '", piece, "' has type ", type);
  spec.tokens.push_back(std::move(piece));
  spec.scores.push_back(score);
  spec.types.push_back(TokenType(int32_t(type)));
}

void read_trainer(ProtoReader reader, VocabSpec& spec, uint64_t& model_type) {
  const auto id = [](uint64_t value) -> std::optional<TokenId> {
    const auto v = int32_t(uint32_t(value));  // -1 when the model has no such token
    return v < 0 ? std::nullopt : std::optional<TokenId>(v);
  };
  for (ProtoReader::Field f; reader.next(f);) {
    switch (f.number) {
      case 3:
        model_type = f.value;
        break;
      case 24:
        if (f.value) throw invalid("treat_whitespace_as_suffix is set, which is not supported");
        break;
      case 35:
        spec.byte_fallback = f.value != 0;
        break;
      case 40:
        spec.unknown = id(f.value);
        break;
      case 41:
        spec.bos = id(f.value);
        break;
      case 42:
        spec.eos = id(f.value);
        break;
      case 43:
        spec.padding = id(f.value);
        break;
      default:
        break;
    }
  }
}

void read_normalizer(ProtoReader reader, VocabSpec& spec) {
  for (ProtoReader::Field f; reader.next(f);) {
    switch (f.number) {
      case 2:
        spec.charsmap = f.bytes;
        break;
      case 3:
        spec.add_space_prefix = f.value != 0;
        break;
      case 4:
        spec.remove_extra_spaces = f.value != 0;
        break;
      case 5:
        if (!f.value) throw invalid("escape_whitespaces is off, which is not supported");
        break;
      default:
        break;
    }
  }
}

VocabSpec read_model(std::string_view bytes) {
  VocabSpec spec;
  // What the format says when a field is absent.
  spec.byte_fallback = false;
  spec.remove_extra_spaces = true;
  spec.prefix_every_part = false;
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_bos = spec.add_eos = false;  // the library itself adds neither
  uint64_t model_type = 1;
  ProtoReader reader(bytes, 0);
  for (ProtoReader::Field f; reader.next(f);) {
    if (!f.delimited) continue;
    if (f.number == 1) read_piece(ProtoReader(f.bytes, f.offset), spec);
    if (f.number == 2) read_trainer(ProtoReader(f.bytes, f.offset), spec, model_type);
    if (f.number == 3) read_normalizer(ProtoReader(f.bytes, f.offset), spec);
  }
  if (model_type != 1 && model_type != 2)
    throw invalid("model type ", model_type, " is not supported; known: 1 (unigram), 2 (bpe)");
  spec.model = model_type == 1 ? "t5" : "llama";
  return spec;
}

}  // namespace

Tokenizer Tokenizer::from_sentencepiece(std::string_view bytes, std::string_view where) {
  VocabSpec spec;
  try {
    spec = read_model(bytes);
  } catch (Error& e) {
    e.set_message(cat(where, ": ", e.message()));
    throw;
  }
  return make_tokenizer(spec, where);
}

}  // namespace rlx::text
