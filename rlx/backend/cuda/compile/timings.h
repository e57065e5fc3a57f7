// What the making of programs took: compiling, loading and measuring kernels, opening libraries. For benchmarks that tell where a cold start stays.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace rlx::cuda {

struct Timing {
  std::string what;
  double begin = 0, seconds = 0;  // since the first one
};

/// Those noted since the last call, in the order of their ends. Nothing is kept before the first call.
std::vector<Timing> take_timings();

/// Notes the time between its beginning and its end.
class Timed {
 public:
  explicit Timed(std::string what) : what_(std::move(what)), begin_(std::chrono::steady_clock::now()) {}
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  /// What is known when it has begun.
  void add(const std::string& more) { what_ += more; }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rlx::cuda
