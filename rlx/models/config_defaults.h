// What config.json leaves out.
#pragma once

#include <string_view>

namespace rlx::models {

/// The fields of config.json that transformers assumes for a model_type where the file is silent, as a JSON object: a text_config is
/// written without what it shares with them. Fields that the reader of an architecture assumes itself are not repeated.
std::string_view default_config(std::string_view model_type);

}  // namespace rlx::models
