// Mapped files that become shorter. Reading a page behind the new end raises SIGBUS; the handler kept here puts
// zeros in place of the lost pages and marks the mapping, so that the reader goes on and check_mapped
// (rlx/base/file.h) can tell. Signals from elsewhere go to the handler that was there before.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace rlx::detail {

void watch_mapping(std::span<const std::byte> mapping, const std::string& path);
void unwatch_mapping(std::span<const std::byte> mapping) noexcept;

}  // namespace rlx::detail
