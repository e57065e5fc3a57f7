// GGUF metadata as JSON, for people (plain) and for files that must bring it back exactly (typed).
#pragma once

#include "rlx/base/json_write.h"
#include "rlx/io/gguf.h"

namespace rlx::io {

/// The value alone; arrays longer than `max_array` as {"array": type, "size": n}.
void write_plain_json(JsonWriter&, const GgufValue&, size_t max_array);

/// {key: [type, value], ...}: types are u32, string, ... and u32[] for arrays; elements of array[] are pairs
/// again. Reals that JSON lacks are the strings nan, inf, -inf. Strings that are not UTF-8 are user errors.
std::string typed_json(std::span<const GgufEntry>);
/// Adds what typed_json wrote to a writer. Anything else is a user error that begins with `source`.
void add_typed_json(GgufWriter&, std::string_view text, const std::string& source);

}  // namespace rlx::io
