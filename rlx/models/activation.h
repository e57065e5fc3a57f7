// The function between the products of a feed-forward net, by the words that config.json has for it.
#pragma once

#include <string>
#include <string_view>

#include "rlx/lang/tensor.h"

namespace rlx::models {

/// Element by element.
using Activation = Tensor (*)(const Tensor&);

/// Those that architectures have where nothing is said.
namespace activations {
Tensor silu(const Tensor&);
Tensor gelu(const Tensor&);
Tensor gelu_tanh(const Tensor&);
}  // namespace activations

/// None for a word that is not known.
Activation find_activation(std::string_view word);
/// All words, for messages.
std::string activation_words();

}  // namespace rlx::models
