#include "rlx/backend/cuda/fault.h"

#include <compare>
#include <map>
#include <mutex>
#include <vector>

#include "rlx/base/text.h"

namespace rlx::cuda {
namespace {

constexpr int kElementBits = 40;

struct Fault {
  std::string text;
  uint64_t per = 0;  // 0: the element is no pair
  auto operator<=>(const Fault&) const = default;
};

struct Registry {
  std::mutex mutex;
  std::vector<Fault> faults;
  std::map<Fault, uint64_t> numbers;
};
Registry& registry() {
  static Registry r;
  return r;
}

}  // namespace

uint64_t new_fault(const std::string& text) { return new_fault(text, 0); }

uint64_t new_fault(const std::string& text, uint64_t per) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  uint64_t& number = r.numbers[{text, per}];
  if (number == 0) {
    r.faults.push_back({text, per});
    number = r.faults.size();
  }
  return number;
}

std::string fault_text(uint64_t word) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const uint64_t number = word >> kElementBits, element = word & ((uint64_t(1) << kElementBits) - 1);
  if (number == 0 || number > r.faults.size())
    return cat("cuda: a kernel found a wrong operand (", word, ")");
  const auto& [text, per] = r.faults[number - 1];
  std::string out;
  bool first = true;
  for (const char c : text) {
    if (c != '%') {
      out += c;
      continue;
    }
    out += cat(per == 0 ? element : first ? element / per : element % per);
    first = false;
  }
  return out;
}

}  // namespace rlx::cuda
