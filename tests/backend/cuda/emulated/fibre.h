// A thread of a kernel: a stack of its own that is left and taken up again (x86-64).
#pragma once

#include <cstddef>

namespace emulated {

class Fibre {
 public:
  Fibre();
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// `run` begins at the next `resume`.
  void start(void (*run)());
  /// Runs it until it leaves; called by the scheduler.
  void resume();
  /// Back to the scheduler; called by what runs on this stack. The last thing that `run` does.
  void leave();
  bool holds(const void* address) const;  // the page below its stack

 private:
  static constexpr size_t kBytes = 192 << 10, kGuard = 4096;
  char* stack_;
  void* own_ = nullptr;     // where it stands
  void* others_ = nullptr;  // where the scheduler stands
};

}  // namespace emulated
