// Runs in the background: with a stop, queued, many in a row.
#include "rlx/backend/executable.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {
namespace {

// Ends a run between two steps.
class StopBetweenSteps final : public backend::Observer {
 public:
  StopBetweenSteps(std::stop_token stop, backend::Observer* next) : stop_(std::move(stop)), next_(next) {}

  void before(const backend::Plan::Step& step, const backend::Launch& launch) override {
    if (stop_.stop_requested()) throw invalid("run_async: stopped before ", step.op);
    if (next_) next_->before(step, launch);
  }
  void after(const backend::Plan::Step& step, const backend::Launch& launch) override {
    if (next_) next_->after(step, launch);
  }

 private:
  std::stop_token stop_;
  backend::Observer* next_;
};

}  // namespace

std::future<NamedLiterals> CompiledGraph::run_async(NamedLiterals inputs, std::stop_token stop) {
  return std::async(std::launch::async, [this, inputs = std::move(inputs), stop = std::move(stop)] {
    StopBetweenSteps check(stop, observer_);
    backend::Observer* const before = observer_;
    const struct Restore {
      CompiledGraph& f;
      backend::Observer* before;
      ~Restore() { f.observe(before); }
    } restore{*this, before};
    if (stop.stop_possible()) observe(&check);
    return run(inputs);
  });
}

void CompiledGraph::commit_no_wait(NamedLiterals inputs) {
  pending_ = std::async(std::launch::async, [this, before = pending_, inputs = std::move(inputs)] {
               if (before.valid()) before.get();
               return run(inputs);
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
