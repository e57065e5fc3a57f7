#include "rlx/backend/cuda/fault.h"

#include <map>
#include <mutex>
#include <vector>

#include "rlx/base/text.h"

namespace rlx::cuda {
namespace {

constexpr int kElementBits = 40;

struct Registry {
  std::mutex mutex;
  std::vector<std::string> texts;
  std::map<std::string, uint64_t> numbers;
};
Registry& registry() {
  static Registry r;
  return r;
}

}  // namespace

uint64_t new_fault(const std::string& text) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  uint64_t& number = r.numbers[text];
  if (number == 0) {
    r.texts.push_back(text);
    number = r.texts.size();
  }
  return number;
}

std::string fault_text(uint64_t word) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const uint64_t number = word >> kElementBits, element = word & ((uint64_t(1) << kElementBits) - 1);
  if (number == 0 || number > r.texts.size()) return cat("cuda: a kernel found a wrong operand (", word, ")");
  std::string text = r.texts[number - 1];
  const size_t at = text.find('%');
  return at == std::string::npos ? text : text.replace(at, 1, cat(element));
}

}  // namespace rlx::cuda
