// What kernels say of wrong operands. They cannot throw: they set one word, and the queue throws when it is
// waited for.
#pragma once

#include <cstdint>
#include <string>

namespace rlx::cuda {

/// Registers a kind of fault of one step; `text` is the message, with one "%" where the number of the
/// element belongs. Kernels get the number and set the word to (number << 40) + element: one store, so that
/// a message never mixes two faults.
uint64_t new_fault(const std::string& text);
/// The same for an element that is a pair, first * per + second: the first "%" is `first`, all others are `second`.
uint64_t new_fault(const std::string& text, uint64_t per);
std::string fault_text(uint64_t word);

}  // namespace rlx::cuda
