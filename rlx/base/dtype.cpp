#include "rlx/base/dtype.h"

#include "rlx/base/error.h"

namespace rlx {
namespace {

struct Row {
  std::string_view name;
  size_t size;
};

constexpr Row kRows[kDTypeCount] = {
    {"bool", 1}, {"u8", 1},   {"i8", 1},  {"i16", 2}, {"i32", 4}, {"i64", 8},    {"u32", 4},
    {"f16", 2},  {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"c64", 8}, {"f8e4m3", 1}, {"f8e5m2", 1},
};

}  // namespace

std::string_view dtype_name(DType t) { return kRows[size_t(t)].name; }
size_t dtype_size(DType t) { return kRows[size_t(t)].size; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kRows[i].name == name) return DType(i);
  }
  return std::nullopt;
}

void append_text(std::string& out, DType t) { out.append(dtype_name(t)); }

}  // namespace rlx
