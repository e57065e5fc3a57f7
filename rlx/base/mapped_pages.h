// Pages of mapped files that are not needed for now.
#pragma once

#include <cstddef>
#include <span>

namespace rlx {

/// Gives back the memory of pages that lie wholly in `bytes`, where these are part of a mapped file (MappedFile): they no longer count as
/// memory of this process and are read from the file again when they are touched. Other memory is left alone.
void release_mapped(std::span<const std::byte> bytes) noexcept;

}  // namespace rlx
