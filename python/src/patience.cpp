#include "python/src/patience.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "rlx/backend/executable.h"
#include "rlx/ir/bodies.h"
#include "rlx/ops/control/while.h"

namespace rlx::python {
namespace {

using namespace std::chrono_literals;

/// A run in a thread of its own. What it uses may belong to Python, which threads of others must not enter while it ends:
/// the one that waits takes it back, and what was left behind is never freed.
struct Job {
  class StopBetweenSteps final : public backend::Observer {
   public:
    explicit StopBetweenSteps(const std::atomic<bool>& stop) : stop_(stop) {}
    void before(const backend::Plan::Step& step, const backend::Launch&) override {
      if (stop_.load(std::memory_order_relaxed)) throw invalid("run: stopped before ", step.op);
    }

   private:
    const std::atomic<bool>& stop_;
  };

  explicit Job(Run r) : run(std::move(r)) {}

  void work() {
    std::exception_ptr error;
    try {
      std::vector<Input> inputs;
      for (size_t i = 0; i < run.arguments.size(); ++i)
        inputs.push_back({run.names[i], view(run.arguments[i].value)});
      if (run.step_by_step) run.program.observe(&observer);
      run.program.run_into(inputs, run.places);
    } catch (...) {
      error = std::current_exception();
    }
    run.program.observe(nullptr);
    const std::lock_guard lock(mutex);
    raised = error;
    done = true;
    if (left_behind) static_cast<void>(new Run(std::move(run)));
    changed.notify_all();
  }

  /// False when it has ended by now.
  bool leave_behind() {
    const std::lock_guard lock(mutex);
    return left_behind = !done;
  }

  bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return done; });
  }

  Run run;
  std::atomic<bool> stop = false;
  StopBetweenSteps observer{stop};
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, left_behind = false;
  std::exception_ptr raised;
};

bool signal_came() {
  nb::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

unsigned long main_thread() {
  static const unsigned long id = PyThread_get_thread_ident();  // of the import
  return id;
}
[[maybe_unused]] const unsigned long kAtImport = main_thread();

}  // namespace

bool has_open_loop(const ir::Graph& g) {
  return ir::any_node(g, [](const ir::Node& n) { return n.is<ops::While>(); });
}

bool Patience::is_needed() const {
  return (always_ || long_.load(std::memory_order_relaxed)) && PyThread_get_thread_ident() == main_thread();
}

CompiledGraph Patience::wait_for(Run run) {
  const auto job = std::make_shared<Job>(std::move(run));
  bool interrupted = false;
  {
    nb::gil_scoped_release unlocked;
    const Watch watch(*this);
    std::thread([job] { job->work(); }).detach();
    while (!interrupted && !job->wait(50ms)) interrupted = signal_came();
    if (interrupted) {
      job->stop = true;
      job->wait(1s);
    }
  }
  if (interrupted && job->leave_behind()) throw nb::python_error();
  const std::exception_ptr raised = std::exchange(job->raised, nullptr);
  Run ended = std::move(job->run);
  if (interrupted) throw nb::python_error();
  if (raised) std::rethrow_exception(raised);
  return std::move(ended.program);
}

}  // namespace rlx::python
