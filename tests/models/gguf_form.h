// A checkpoint of a folder as a GGUF file: the names, metadata and orders of rows that files of its architecture have.
#pragma once

#include <string>

#include "rlx/models/model.h"

namespace rlx::test {

/// Whether GGUF has a form for models of that architecture.
bool has_gguf_form(const models::Config&);
/// Writes the model of an open folder; where files have come in two forms, `older` takes the former.
void write_gguf_form(const models::Model&, const std::string& path, bool older = false);

}  // namespace rlx::test
