#include "apps/rlx/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/rlx/output.h"
#include "rlx/base/error.h"

namespace rlx::cli {
namespace {

ProgressStyle style_of(const std::string& name) {
  if (name == "none") return ProgressStyle::none;
  if (name == "bar") return ProgressStyle::bar;
  if (name == "lines") return ProgressStyle::lines;
  if (name == "auto") return ::isatty(STDERR_FILENO) ? ProgressStyle::bar : ProgressStyle::lines;
  throw invalid("--progress '", name, "' is unknown; auto, bar, lines or none expected");
}

}  // namespace

Progress::Progress(std::string what, const std::string& style)
    : what_(std::move(what)),
      style_(style_of(style)),
      every_step_(style != "auto"),
      next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (bar_shown_) std::fputs("\r\033[K", stderr);  // back to the start of the line, and clear it
}

void Progress::show(int64_t done, int64_t total) {
  if (style_ == ProgressStyle::none) return;
  show(done, total, cat(readable_bytes(done), " of ", readable_bytes(total)));
}

void Progress::show(int64_t done, int64_t total, const std::string& amount) {
  if (style_ == ProgressStyle::none) return;
  const Clock::time_point now = Clock::now();
  if (!every_step_ && now < next_) return;
  const double part = total > 0 ? std::clamp(double(done) / double(total), 0.0, 1.0) : 1.0;
  if (style_ == ProgressStyle::bar) {
    constexpr int kWidth = 30;
    std::string bar(kWidth, '.');
    std::fill_n(bar.begin(), size_t(part * kWidth), '#');
    std::fprintf(stderr, "\r%s [%s] %3.0f %%  %s\033[K", what_.c_str(), bar.c_str(), 100 * part,
                 amount.c_str());
    std::fflush(stderr);
    bar_shown_ = true;
    next_ = now + std::chrono::milliseconds(100);
  } else {
    std::fprintf(stderr, "rlx: %s: %.0f %%, %s\n", what_.c_str(), 100 * part, amount.c_str());
    next_ = now + std::chrono::seconds(5);
  }
}

}  // namespace rlx::cli
