// Runs ahead: the next one is queued while a device works on the last.
#include <cstring>

#include "rlx/backend/marks.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/core.h"

namespace rlx {
namespace {

backend::Block& with_room(backend::Block& b, const backend::Memory& memory, size_t bytes) {
  if (!b || b.size() < bytes) b = backend::Block(memory, bytes);
  return b;
}

}  // namespace

// A device copies from memory that is never moved, so that the call need not wait for it; such memory is used again when its run is finished.
void CompiledGraph::start(std::span<const Input> inputs) {
  check_alone("start");
  if (!handles_.empty() || active_rows_)
    throw invalid("start: values that stay and active extents are for runs that are waited for");
  if (starts_ - ends_ == kAhead) throw invalid("start: ", kAhead, " runs are on their way; finish one first");
  started_.resize(kAhead);
  Started& place = started_[starts_ % kAhead];
  const backend::Memory& staging = memory().staging();
  check_borrowed(inputs, place.views);
  std::vector<Input> sent(inputs.begin(), inputs.end());
  place.inputs.resize(std::max(place.inputs.size(), sent.size()));
  for (size_t i = 0; !memory().on_host() && i < sent.size(); ++i) {
    TensorView& value = sent[i].value;
    if (value.data == nullptr) continue;  // an error, told by all that is wrong
    std::byte* const kept = with_room(place.inputs[i], staging, value.bytes()).get();
    std::memcpy(kept, value.data, value.bytes());
    value.data = kept;
  }
  prepare(sent);
  place.results.resize(views_.size());
  place.views.assign(views_.begin(), views_.end());
  for (size_t i = 0; i < place.views.size(); ++i)
    place.views[i].data = with_room(place.results[i], staging, place.views[i].bytes()).get();
  queue_run(place.views);
  if (auto* const marks = dynamic_cast<backend::Marks*>(queue_.get())) place.mark = marks->mark();
  ++starts_;
}

Outputs CompiledGraph::finish() {
  if (starts_ == ends_) throw invalid("finish: no run was started");
  const Started& place = started_[ends_++ % kAhead];
  if (auto* const marks = dynamic_cast<backend::Marks*>(queue_.get())) {
    marks->wait_for(place.mark);
  } else {
    queue_->wait();
  }
  return {core_->results, place.views};
}

}  // namespace rlx
