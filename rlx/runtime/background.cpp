// Runs in the background: with a stop, queued, many in a row.
#include "rlx/runtime/background.h"

#include "rlx/backend/executable.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

void runtime::Background::wait() const noexcept {
  if (!running_) return;
  for (int n; (n = running_->load(std::memory_order_acquire)) > 0;)
    running_->wait(n, std::memory_order_acquire);
}

std::shared_ptr<void> runtime::Background::begin() {
  if (!running_) running_ = std::make_shared<std::atomic<int>>(0);
  running_->fetch_add(1, std::memory_order_relaxed);
  return {nullptr, [running = running_](void*) {
            running->fetch_sub(1, std::memory_order_release);
            running->notify_all();
          }};
}

// Nobody else works on this object, or is about to.
void CompiledGraph::check_alone(std::string_view where) const {
  if (pending_.valid())
    throw invalid(where, ": runs were queued; take their results with sync_pending first");
  if (background_.is_busy())
    throw invalid(where, ": a run is on its way in the background; wait for its results first");
}

void CompiledGraph::check_idle(std::string_view where) const {
  check_alone(where);
  if (starts_ != ends_)
    throw invalid(where, ": ", starts_ - ends_, " runs were started and not finished; finish them first");
}

// The ticket is let go by the run itself, as the last of all, so that the object is free once the future has its value.
std::future<NamedLiterals> CompiledGraph::run_async(NamedLiterals inputs, std::stop_token stop) {
  check_idle("run_async");
  return std::async(std::launch::async, [this, ticket = background_.begin(), inputs = std::move(inputs),
                                         stop = std::move(stop)]() mutable {
    const std::shared_ptr<void> until_the_end = std::move(ticket);
    backend::Observer each_step;  // a device that is looked at does not repeat all its steps as one
    const struct Restore {
      CompiledGraph& f;
      backend::Observer* before;
      ~Restore() { f.observer_ = before, f.stop_ = nullptr; }
    } restore{*this, observer_};
    if (stop.stop_possible()) {
      stop_ = &stop;
      if (observer_ == nullptr) observer_ = &each_step;
    }
    return run_now(inputs);
  });
}

void CompiledGraph::commit_no_wait(NamedLiterals inputs) {
  if (!pending_.valid()) check_idle("commit_no_wait");
  pending_ = std::async(std::launch::async, [this, ticket = background_.begin(), before = pending_,
                                             inputs = std::move(inputs)]() mutable {
               const std::shared_ptr<void> until_the_end = std::move(ticket);
               if (before.valid()) before.get();
               return run_now(inputs);
             }).share();
}

NamedLiterals CompiledGraph::sync_pending() {
  if (!pending_.valid()) throw invalid("sync_pending: nothing was queued; commit_no_wait queues a run");
  const std::shared_future<NamedLiterals> last = std::exchange(pending_, {});
  return last.get();
}

std::vector<NamedLiterals> CompiledGraph::run_pipelined(std::span<const NamedLiterals> sets) {
  std::vector<NamedLiterals> out;
  out.reserve(sets.size());
  for (const NamedLiterals& inputs : sets) out.push_back(run(inputs));
  return out;
}

}  // namespace rlx
