#include "python/src/dtypes.h"

#include "rlx/base/error.h"
#include "rlx/base/text.h"

namespace rlx::python {

DType dtype_named(const std::string& name) {
  if (name == "bool") return DType::bool_;
  if (const auto found = dtype_from_name(name)) return *found;
  throw invalid("dtype: unknown type '", name,
                "'; known: bool, u8, i8, i16, i32, i64, u32, f16, bf16, f32, f64, c64, f8e4m3, f8e5m2");
}

Dim dim_named(const std::string& text) {
  size_t pos = 0;
  const Dim d = parse_dim(text, pos);
  if (pos != text.size())
    throw invalid("size: '", text, "' is no extent; give a number or names as in 2*seq");
  return d;
}

}  // namespace rlx::python
