// The JSON reader: a text that is read is written to a text that reads the same, and every value has a place.
#include "rlx/base/json.h"

#include "tests/fuzz/only_errors.h"

using namespace rlx;

namespace {

void look_at(JsonView value, size_t& budget) {
  if (budget == 0) return;
  --budget;
  if (value.kind() == JsonKind::array) {
    for (const JsonView item : value.items()) look_at(item, budget);
  } else if (value.kind() == JsonKind::object) {
    for (const auto [key, member] : value.members()) {
      const auto found = value.find(key);
      fuzz::require(member.is_null() ? !found : found->kind() == member.kind());
      look_at(member, budget);
    }
  }
  fuzz::require(value.place().starts_with("fuzz"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const Json json = Json::parse_in_place(text, "fuzz", {.python_numbers = true});
    size_t budget = 200;
    look_at(json, budget);
    const std::string once = json.text();
    for (const int indent : {-1, 2}) {
      const Json again = Json::parse(json.text(indent), "fuzz", {.python_numbers = true});
      fuzz::require(again.text() == once);
    }
  });
}
