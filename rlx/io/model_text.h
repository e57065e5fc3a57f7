// The tokenizer and the chat template of a model on disk: a GGUF file, a Hugging Face folder, or a file of
// any kind in rlx/text/tokenizer_file.h.
#pragma once

#include <string>

#include "rlx/io/gguf.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/tokenizer.h"
#include "rlx/text/vocab_spec.h"

namespace rlx::io {

/// A file of tensors without a tokenizer is a user error that says so; what is no model file goes to
/// text::Tokenizer::from_file, which knows the files of tokenizers.
text::Tokenizer load_tokenizer(const std::string& path);

/// A chat template, and the texts that it puts at both ends.
struct ModelTemplate {
  std::string source;
  std::string bos_token, eos_token;
};

/// `name` picks one of several templates; empty is the default one. A file that is no model is the template
/// itself, when it is text.
ModelTemplate load_chat_template(const std::string& path, const std::string& name = {});

/// The `tokenizer.ggml.*` fields of a file that is open already; text::make_tokenizer takes them.
text::VocabSpec vocabulary(const GgufFile& file);

}  // namespace rlx::io
