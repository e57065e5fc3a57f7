#include "rlx/llm/stop_text.h"

#include <algorithm>

#include "rlx/base/error.h"

namespace rlx::llm {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    if (stop.empty()) throw invalid("generate: a stop text is empty");
}

std::string StopText::push(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  size_t first = held_.npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != held_.npos) {
    stopped_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  // The longest end of the text that a stop text starts with.
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) keep = n;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopText::finish() {
  std::string out;
  out.swap(held_);
  return out;
}

}  // namespace rlx::llm
