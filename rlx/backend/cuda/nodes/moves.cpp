// Operators that move elements and change none: joins, borders, boxes at places given at run time, positions.
#include <cstring>

#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/dynamic_slice.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::cuda {
namespace {

Support accepts_always(const Request&) { return Support::yes(); }

std::vector<int64_t> row_major(const Shape& s) { return row_major_strides(s.dims()); }

std::string pointer(const Arg& x, std::string_view name, bool result = false) {
  return cat(result ? "" : "const ", word_type(dtype_size(x.dtype())), "* ", name);
}

// ---- concat, reshape ----

std::unique_ptr<Step> prepare_concat(const Request& r) {
  struct Part {
    size_t operand;
    std::unique_ptr<Step> copy;
    int64_t offset;  // bytes
  };
  const int axis = r.node.as<ops::Concat>().axis;
  const std::vector<int64_t> to = row_major(r.out[0].shape);
  auto parts = std::make_shared<std::vector<Part>>();
  int64_t at = 0;
  for (size_t i = 0; i < r.in.size(); ++i) {
    const Arg& x = r.in[i];
    const Arg place{.shape = x.shape, .layout = {to, 0}};
    parts->push_back({i, prepare_gpu_copy(device_of(r), x, place),
                      at * to[size_t(axis)] * int64_t(dtype_size(x.dtype()))});
    at += x.shape.dim(axis).value();
  }
  return make_gpu_step(cat(r.in.size(), " parts"), [parts](Stream&, const Launch& l) {
    for (const Part& p : *parts) {
      std::byte* const to = l.out[0] + p.offset;
      Launch one = l;
      one.in = l.in + p.operand;
      one.out = &to;
      p.copy->run(one);
    }
  });
}

std::unique_ptr<Step> prepare_reshape(const Request& r) {
  const Arg& x = r.in[0];
  return prepare_gpu_copy(device_of(r), x, {.shape = x.shape, .layout = {row_major(x.shape), 0}});
}

// ---- pad ----

std::unique_ptr<Step> prepare_pad(const Request& r) {
  const auto& a = r.node.as<ops::Pad>();
  const Arg &x = r.in[0], &y = r.out[0];
  const size_t bytes = dtype_size(y.dtype());
  const Literal value = Literal::scalar(y.dtype(), a.value);
  uint64_t bits = 0;
  std::memcpy(&bits, value.bytes().data(), bytes);
  std::string body = "  bool inside = true;\n", at;
  for (int d = 0; d < y.shape.rank(); ++d) {
    body += cat("  const i64 j", d, " = i", d, " - i64(", a.low[size_t(d)].value(),
                ");\n  inside = inside && j", d, " >= 0 && j", d, " < ", x.shape.dim(d).value(), ";\n");
  }
  body += cat("  y[e] = inside ? x[", offset_text(x.layout.strides, "j"), "] : ", word_type(bytes), "(", bits,
              "ull);\n");
  const Source source =
      element_kernel("pad", sizes_of(y.shape), pointer(x, "x") + ", " + pointer(y, "y", true), body);
  return element_step(device_of(r), source, 1, 1, y.shape.elements(), "element by element");
}

// ---- boxes at places given at run time ----

Support accepts_starts(const Arg& starts) {
  if (!is_integer(starts.dtype())) return Support::no("starts are ", starts.dtype());
  if (!starts.is_row_major()) return Support::no("starts are strided");
  return Support::yes();
}
Support accepts_dynamic_slice(const Request& r) { return accepts_starts(r.in[1]); }
Support accepts_dynamic_update_slice(const Request& r) { return accepts_starts(r.in[2]); }

// s0, s1, ..: where the box begins, moved inside.
std::string starts_text(const Shape& large, const Shape& box) {
  std::string out;
  for (int d = 0; d < large.rank(); ++d) {
    const int64_t most = large.dim(d).value() - box.dim(d).value();
    out += cat("  i64 s", d, " = i64(starts[", d, "]);\n  s", d, " = s", d, " < 0 ? 0 : s", d, " > ", most,
               " ? ", most, " : s", d, ";\n");
  }
  return out;
}

std::unique_ptr<Step> prepare_dynamic_slice(const Request& r) {
  const Arg &x = r.in[0], &y = r.out[0];
  std::string body = starts_text(x.shape, y.shape);
  body +=
      cat("  y[e] = x[", offset_text(x.layout.strides), " + ", offset_text(x.layout.strides, "s"), "];\n");
  const Source source = element_kernel(
      "dynamic_slice", sizes_of(y.shape),
      cat(pointer(x, "x"), ", const ", r.in[1].dtype(), "* starts, ", pointer(y, "y", true)), body);
  return element_step(device_of(r), source, 2, 1, y.shape.elements(), "element by element");
}

// Operand 0 is copied unless the result has taken its place.
std::unique_ptr<Step> prepare_dynamic_update_slice(const Request& r) {
  const Arg &x = r.in[0], &update = r.in[1], &y = r.out[0];
  const std::vector<int64_t> to = row_major(y.shape);
  std::string body = starts_text(y.shape, update.shape);
  body += cat("  y[", offset_text(to), " + ", offset_text(to, "s"), "] = update[",
              offset_text(update.layout.strides), "];\n");
  const int64_t count = update.shape.elements();
  const FunctionRef part = device_of(r).functions().get(element_kernel(
      "dynamic_update_slice", sizes_of(update.shape),
      cat(pointer(update, "update"), ", const ", r.in[2].dtype(), "* starts, ", pointer(y, "y", true)),
      body));
  const std::shared_ptr<Step> whole = prepare_gpu_copy(device_of(r), x, y);
  auto step = make_gpu_step("", [whole, part, count](Stream& s, const Launch& l) {
    if (l.in[0] != l.out[0]) whole->run(l);
    (*part)(s.handle, blocks_for(count), {256}, 0, l.in[1], l.in[2], l.out[0]);
  });
  step->in_place = {0};
  return step;
}

// ---- positions ----

Support accepts_iota(const Request& r) {
  const DType t = r.out[0].dtype();
  return is_storage_only(t) || t == DType::bool_ ? Support::no("positions of ", t) : Support::yes();
}

std::unique_ptr<Step> prepare_iota(const Request& r) {
  const Arg& y = r.out[0];
  const int axis = r.node.as<ops::Iota>().axis;
  const bool narrow = y.dtype() == DType::f16 || y.dtype() == DType::bf16;
  // A complex number is a real part and a zero behind it.
  const std::string body =
      is_complex(y.dtype())
          ? cat("  y[2 * e] = f32(i", axis, "), y[2 * e + 1] = 0;\n")
          : cat("  put(y[e], ", narrow ? "f32" : memory_type(y.dtype()), "(i", axis, "));\n");
  const std::string_view type = is_complex(y.dtype()) ? "f32" : memory_type(y.dtype());
  return element_step(device_of(r), element_kernel("iota", sizes_of(y.shape), cat(type, "* y"), body), 0, 1,
                      y.shape.elements(), "element by element");
}

}  // namespace

void add_moves(KernelTable& table) {
  table.add<ops::Concat>({"concat", accepts_always, prepare_concat});
  table.add<ops::Reshape>({"reshape_copy", accepts_always, prepare_reshape});
  table.add<ops::Pad>({"pad", accepts_always, prepare_pad});
  table.add<ops::DynamicSlice>({"dynamic_slice", accepts_dynamic_slice, prepare_dynamic_slice});
  table.add<ops::DynamicUpdateSlice>(
      {"dynamic_update_slice", accepts_dynamic_update_slice, prepare_dynamic_update_slice});
  table.add<ops::Iota>({"iota", accepts_iota, prepare_iota});
}

}  // namespace rlx::cuda
