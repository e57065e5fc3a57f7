#include "rlx/backend/cpu/isa.h"

#include <atomic>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/base/options.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rlx::cpu {

namespace {

struct Level {
  Isa isa;
  std::string_view name;
};

const Level kLevels[] = {
    {Isa::baseline, "baseline"},
#if defined(__x86_64__)
    {Isa::avx2, "avx2"},
    {Isa::avx512, "avx512"},
    {Isa::avx512vnni, "avx512vnni"},
#endif
};

bool binary_has([[maybe_unused]] Isa isa) {
#if defined(RLX_ISA_ONLY)
  return isa == Isa::RLX_ISA_ONLY;
#else
  return true;
#endif
}

#if defined(__x86_64__)
// __builtin_cpu_supports of clang 16 does not know this one.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

bool machine_has(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::baseline:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::avx512vnni:
      return avx512 && __builtin_cpu_supports("avx512vnni");
  }
#endif
  return isa == Isa::baseline;
}

const std::vector<Isa>& found_isas() {
  static const std::vector<Isa> found = [] {
    std::vector<Isa> list;
    for (const Level& level : kLevels) {
      if (binary_has(level.isa) && machine_has(level.isa)) list.push_back(level.isa);
    }
    if (list.empty())
      throw environment_error(
          "options: this program was built for one instruction set, which this machine lacks");
    return list;
  }();
  return found;
}

const Level& chosen_at_start() {
  const auto wanted = option("RLX_ISA");
  if (!wanted) return kLevels[size_t(found_isas().back())];
  for (const Level& level : kLevels) {
    if (level.name != *wanted) continue;
    if (!binary_has(level.isa)) {
      throw environment_error("options: RLX_ISA is ", *wanted,
                              ", which this program was built without; it has ",
                              isa_name(found_isas().back()));
    }
    if (!machine_has(level.isa)) {
      throw environment_error("options: RLX_ISA is ", *wanted, ", which this machine lacks; it has up to ",
                              isa_name(found_isas().back()));
    }
    return level;
  }
  std::vector<std::string_view> names;
  for (const Level& level : kLevels) names.push_back(level.name);
  throw invalid("options: RLX_ISA is '", *wanted, "'; it must be one of ", join(names));
}

std::atomic<Isa>& choice() {
  static std::atomic<Isa> isa = chosen_at_start().isa;
  return isa;
}

}  // namespace

std::string_view isa_name(Isa isa) { return kLevels[size_t(isa)].name; }

std::span<const Isa> available_isas() { return found_isas(); }

Isa current_isa() { return choice().load(std::memory_order_relaxed); }

void use_isa(Isa isa) {
  RLX_CHECK(machine_has(isa), "level ", isa_name(isa), " is not available");
  choice() = isa;
}

}  // namespace rlx::cpu
