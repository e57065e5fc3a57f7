// How far long work is, on standard error: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rlx::cli {

enum class ProgressStyle { none, bar, lines };

class Progress {
 public:
  /// `style`: auto, bar, lines or none. With auto, work of less than a second shows nothing, a bar moves ten
  /// times a second and lines come every five seconds; a style that was asked for shows every step.
  Progress(std::string what, const std::string& style);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Of bytes.
  void show(int64_t done, int64_t total);
  /// Of anything; `amount` says it in words.
  void show(int64_t done, int64_t total, const std::string& amount);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressStyle style_;
  bool every_step_;
  Clock::time_point next_;
  bool bar_shown_ = false;
};

}  // namespace rlx::cli
