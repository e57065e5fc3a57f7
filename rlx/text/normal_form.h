// Unicode normal forms.
#pragma once

#include "rlx/text/tracked_text.h"

namespace rlx::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Rewrites the text in the given form; nothing is copied when it is in that form already. Linear in the
/// length of the text, also for long runs of combining marks.
void normalize(TrackedText& text, NormalForm form);
std::string normalized(std::string_view text, NormalForm form);

}  // namespace rlx::text
