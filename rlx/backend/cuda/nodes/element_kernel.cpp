#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {

Source element_kernel(const std::string& name, const std::vector<int64_t>& dims,
                      const std::string& parameters, const std::string& body) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  std::string text =
      cat("extern \"C\" __global__ void __launch_bounds__(256) ", name, "(", parameters, ") {\n");
  text += cat("  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;\n  if (e >= ", count, ") return;\n");
  // Divisions of 32 bits where they suffice: they are several times cheaper.
  const char* index = count < (int64_t(1) << 31) ? "u32" : "i64";
  std::string rest = cat(index, "(e)");
  for (size_t d = dims.size(); d-- > 0;) {
    const int64_t size = std::max<int64_t>(dims[d], 1);
    if (d == 0) {
      text += cat("  const i64 i0 = ", rest, ";\n");
      break;
    }
    text += cat("  const i64 i", d, " = ", rest, " % ", size, "u;\n");
    text += cat("  const ", index, " rest", d, " = ", rest, " / ", size, "u;\n");
    rest = cat("rest", d);
  }
  return {name, text + body + "}\n"};
}

std::string offset_text(const std::vector<int64_t>& strides, std::string_view prefix) {
  std::string out;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] != 0) out += cat(out.empty() ? "" : " + ", prefix, d, " * i64(", strides[d], ")");
  }
  return out.empty() ? "i64(0)" : out;
}

std::unique_ptr<Step> element_step(const Device& device, const Source& source, size_t operands,
                                   size_t results, int64_t count, std::string note) {
  if (count == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const FunctionRef f = device.functions().get(source);
  return make_gpu_step(std::move(note), [f, operands, results, count](Stream& s, const Launch& l) {
    std::vector<void*> parameters;
    for (size_t i = 0; i < operands; ++i) parameters.push_back(const_cast<std::byte**>(l.in + i));
    for (size_t i = 0; i < results; ++i) parameters.push_back(const_cast<std::byte**>(l.out + i));
    f->launch(s.handle, blocks_for(count), {256}, 0, parameters.data());
  });
}

}  // namespace rlx::cuda
