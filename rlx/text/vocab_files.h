// Model folders from before tokenizer.json: the vocabulary in one file, merges in another, and the rest in
// tokenizer_config.json, special_tokens_map.json and added_tokens.json.
#pragma once

#include <vector>

#include "rlx/text/added_tokens.h"
#include "rlx/text/tokenizer_file.h"

namespace rlx::text {

/// The tokens that tokenizer_config.json lists with their ids; none when it lists none.
std::vector<AddedToken> read_added_tokens(const Siblings& siblings);

}  // namespace rlx::text
