// Standard output of the commands. Everything printed goes through here: a disk that is full or an output that
// is closed ends in an error, not in silence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::cli {

void print(std::string_view text);
/// Brings what was printed to its destination; a failure is an environment error.
void flush_output();

/// Standard input to its end; a failure is an environment error.
std::string read_input();

/// "12 B", "3.40 MiB"
std::string readable_bytes(int64_t bytes);

}  // namespace rlx::cli
