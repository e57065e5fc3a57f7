// Long runs that Ctrl-C ends.
//
// Python notes a signal and acts on it when its own code runs next. A run of the main thread that may take long therefore
// goes to a thread of its own, and the main thread looks for signals while it waits. A signal asks the run to stop before its
// next step; one that does not within a second (a loop without end is a single step) is left behind with all that it uses.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "python/src/array.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::python {

/// All that a run uses.
struct Run {
  CompiledGraph program;
  std::vector<std::string> names;
  std::vector<Array> arguments, results;
  std::vector<TensorView> places;  // of the results
  bool step_by_step = true;        // may be stopped between steps; a GPU would wait for each of them
};

/// Whether a graph or a body of it has a loop whose count is not known.
bool has_open_loop(const ir::Graph&);

/// How long runs of one program take, and the wait for those that take long.
class Patience {
 public:
  explicit Patience(bool always) : always_(always) {}

  /// For the main thread: the first run, runs after a long one, and all runs with open loops. Needs the lock of Python.
  bool is_needed() const;
  /// Runs it while others may use Python; an exception of a signal's handler is thrown here. Returns the program.
  CompiledGraph wait_for(Run);

  /// Takes the time of a run in this thread.
  class Watch {
   public:
    explicit Watch(Patience& p) : patience_(p), begin_(std::chrono::steady_clock::now()) {}
    ~Watch() { patience_.note(std::chrono::steady_clock::now() - begin_); }

   private:
    Patience& patience_;
    std::chrono::steady_clock::time_point begin_;
  };

 private:
  void note(std::chrono::steady_clock::duration time) {
    const bool is_long = time > std::chrono::milliseconds(20);
    if (is_long != long_.load(std::memory_order_relaxed)) long_.store(is_long, std::memory_order_relaxed);
  }

  bool always_;
  std::atomic<bool> long_ = true;
};

}  // namespace rlx::python
