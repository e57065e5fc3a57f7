// Tensors that a command is given as files. What kind a file is, is told by its contents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/named_literals.h"

namespace rlx::cli {

/// Of each text: FILE, whose tensors have names of their own (that of an .npy file is its name), or NAME=FILE with one tensor. A name
/// that is given twice is a user error; `command` and `option` say whose.
ir::NamedLiterals read_values(std::string_view command, std::string_view option,
                              const std::vector<std::string>& texts);

/// What an option of such files takes, for help.
std::string value_files_taken();

}  // namespace rlx::cli
