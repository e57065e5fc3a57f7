// CUDA C++ text to machine code, by NVIDIA's run-time compiler (libnvrtc), which needs neither a GPU nor a
// driver.
#pragma once

#include <string>

namespace rlx::cuda {

/// A kernel as text. The prelude (kernels/prelude.h) is put before it.
struct Source {
  std::string entry;  // the name of its extern "C" function
  std::string text;
  double work = 0;  // of compiling it, next to that of others; 0: as its length says

  double expected_work() const { return work > 0 ? work : double(text.size()) / kLettersOfWork; }

 private:
  static constexpr double kLettersOfWork = 100;  // short texts take about as many milliseconds
};

/// Why there is no compiler, or nothing when there is one.
std::string compiler_problem();
/// Its version, "13.0"; part of the cache's key.
std::string compiler_version();

/// What the driver thinks of a kept cubin: one that it refused is compiled and kept again.
enum class Kept : bool { is_good, is_refused };

/// The cubin for an architecture such as "sm_90a". What was compiled before comes from the cache on disk:
/// RLX_CACHE, else XDG_CACHE_HOME/rlx, else ~/.cache/rlx, in its folder "cuda"; RLX_CACHE=off keeps none.
/// Text that does not compile is an internal error with the compiler's words.
std::string compile(const Source&, const std::string& architecture, Kept = Kept::is_good);

/// What the compiler says about resources: registers, spills, shared memory (its verbose report). Not cached.
std::string resource_report(const Source&, const std::string& architecture);

}  // namespace rlx::cuda
