// What families ask of requests.
#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

Support all_row_major(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

Support all_of(const Request& r, DType dtype) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (r.in[i].dtype() != dtype) return Support::no("operand ", i, " is ", r.in[i].dtype(), ", not ", dtype);
  }
  for (size_t i = 0; i < r.out.size(); ++i) {
    if (r.out[i].dtype() != dtype)
      return Support::no("result ", i, " is ", r.out[i].dtype(), ", not ", dtype);
  }
  return Support::yes();
}

Support plain_f32(const Request& r) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

Support none_empty(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (r.in[i].shape.elements() == 0) return Support::no("operand ", i, " is empty");
  }
  for (size_t i = 0; i < r.out.size(); ++i) {
    if (r.out[i].shape.elements() == 0) return Support::no("result ", i, " is empty");
  }
  return Support::yes();
}

}  // namespace rlx::cpu
