// adapter_config.json of PEFT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/json.h"

namespace rlx::llm {

/// A kind other than plain LoRA, or a setting that would change the result and is not understood, is a user error.
void check_peft(const Json& config);
/// A number of a module: that of the first pattern that is its name or ends it, else that of the adapter.
double pattern_value(const Json& config, const char* patterns, std::string_view module, double otherwise);
/// The strings of a list; none where it is not there.
std::vector<std::string> words_of(const Json& config, const char* key);

}  // namespace rlx::llm
