// CUDA C++ to C++ for the host, as text.
#pragma once

#include <stdexcept>
#include <string>

namespace emulated {

struct NotEmulated : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// asm statements become calls of the functions in device/ptx.h; a NotEmulated error names an instruction that has none.
/// The text has been through the preprocessor.
std::string without_asm(const std::string& text);

/// A whole kernel text, preprocessed, as a file that g++ compiles into a module.
std::string as_module(const std::string& text);

}  // namespace emulated
