// Kernels that can be launched: compiled and loaded when one of them is first needed, all that wait at once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "rlx/backend/cuda/compile/compiler.h"
#include "rlx/backend/cuda/driver/gpu.h"

namespace rlx::cuda {

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

class Functions;

/// Whether all blocks of a launch must be on the processors at the same time, since they wait for each other.
enum class Together : bool { no, yes };

class Function {
 public:
  Function(Functions& owner, Source source) : owner_(owner), source_(std::move(source)) {}
  const Source& source() const { return source_; }

  /// Queues one run. Parameters are addresses of values, as the driver wants them. An empty grid is no work.
  void launch(Stream_*, Grid grid, Grid block, size_t shared_bytes, void** parameters,
              Together = Together::no) const;
  template <class... Values>
  void operator()(Stream_* stream, Grid grid, Grid block, size_t shared_bytes, Values... values) const {
    void* parameters[] = {static_cast<void*>(&values)..., nullptr};
    launch(stream, grid, block, shared_bytes, parameters);
  }

 private:
  friend class Functions;
  Functions& owner_;
  Source source_;
  mutable Function_* handle_ = nullptr;  // set under the owner's lock, then constant
  mutable size_t shared_bytes_ = 48 << 10;
};

using FunctionRef = std::shared_ptr<const Function>;

/// While one lives, it notes the texts of the kernels that this thread asks for; one inside of another notes them alone.
class AskedTexts {
 public:
  AskedTexts();
  ~AskedTexts();
  AskedTexts(const AskedTexts&) = delete;
  AskedTexts& operator=(const AskedTexts&) = delete;

  /// Each once, in the order they were asked for. They live as long as they are held.
  std::vector<std::shared_ptr<const std::string>> take() { return std::move(texts_); }

 private:
  friend class Functions;
  void add(const FunctionRef&);

  AskedTexts* outer_;
  std::vector<std::shared_ptr<const std::string>> texts_;
};

/// While it lives, kernels that this thread launches wait for the end of those before them: bodies of conditional nodes.
class Apart {
 public:
  Apart();
  ~Apart();
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

 private:
  bool before_;
};

/// The kernels of one architecture. Equal texts are one function.
class Functions {
 public:
  /// Without a GPU functions are compiled only.
  Functions(std::string architecture, const Gpu* gpu);

  FunctionRef get(Source);
  /// Compiles all that wait, on several threads; returns how many.
  size_t compile_waiting();
  /// The texts of all of them.
  std::vector<Source> sources();
  const std::string& architecture() const { return architecture_; }
  /// Whether a kernel may be put on the processors while the one before it ends. Its text waits for that end (`begin` in
  /// kernels/prelude.h) before it touches memory that others write. RLX_CUDA_OVERLAP=0 switches it off.
  bool overlaps() const { return overlaps_.load(std::memory_order_relaxed); }
  void set_overlaps(bool on) { overlaps_ = on; }

 private:
  friend class Function;
  void load(const Function&);
  size_t compile_locked();

  std::string architecture_;
  const Gpu* gpu_;
  std::atomic<bool> overlaps_{false};
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Function>> known_;
  std::vector<Function*> waiting_;
  std::unordered_map<const Function*, std::string> cubins_;  // compiled, not loaded yet
};

}  // namespace rlx::cuda
