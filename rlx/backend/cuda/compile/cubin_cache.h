// Compiled kernels on disk.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlx::cuda {

/// Where a cubin with this key is kept; empty when nothing is kept.
std::string cubin_path(std::string_view key);
/// Its contents, when they are there and whole.
std::optional<std::string> read_cubin(const std::string& path);
/// Keeps it; a disk that refuses is no error.
void write_cubin(const std::string& path, std::string_view cubin);

}  // namespace rlx::cuda
