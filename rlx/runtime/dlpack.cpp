#include "rlx/runtime/dlpack.h"

#include <algorithm>
#include <optional>

#include "rlx/runtime/core.h"
#include "rlx/runtime/devices.h"

namespace rlx {
namespace {

using runtime::LeafRole;

constexpr int32_t kHost = 1, kCuda = 2;

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {{DType::bool_, 6, 8}, {DType::u8, 1, 8},   {DType::i8, 0, 8},
                              {DType::i16, 0, 16},  {DType::i32, 0, 32}, {DType::i64, 0, 64},
                              {DType::u32, 1, 32},  {DType::f16, 2, 16}, {DType::bf16, 4, 16},
                              {DType::f32, 2, 32},  {DType::f64, 2, 64}, {DType::c64, 5, 64}};

std::optional<DType> dtype_from(const DlType& t) {
  for (const TypeRow& row : kTypes) {
    if (row.code == t.code && row.bits == t.bits && t.lanes == 1) return row.dtype;
  }
  return std::nullopt;
}

DlType type_to(DType t) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == t) return {row.code, row.bits, 1};
  }
  throw invalid("dlpack: ", t, " has no type there");
}

std::byte* bytes_of(const DlTensor& t) { return static_cast<std::byte*>(t.data) + t.byte_offset; }

const backend::Memory& memory_of(const DlTensor& t) {
  if (t.device.id != 0 || (t.device.type != kHost && t.device.type != kCuda))
    throw invalid("dlpack: a tensor on device (", t.device.type, ", ", t.device.id, "); (", kHost,
                  ", 0), the host, or (", kCuda, ", 0), the first GPU, expected");
  return t.device.type == kHost ? backend::host_memory() : device_named("cuda").memory();
}

bool is_row_major(const DlTensor& t) {
  if (t.strides == nullptr) return true;
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    if (t.dims[i] != 1 && t.strides[i] != step) return false;
    step *= t.dims[i];
  }
  return true;
}

Shape shape_as(const DlTensor& t, DType dtype) {
  Dims dims;
  for (int i = 0; i < t.rank; ++i) dims.push_back(t.dims[i]);
  return {dtype, dims};
}

// What is wrong with a value for a leaf, or nothing.
std::string problem_of(const DlInput& in, const Shape& declared, int32_t device) {
  const DlTensor& t = in.value;
  if (t.device.type != device || t.device.id != 0)
    return cat("'", in.name, "' lies on device (", t.device.type, ", ", t.device.id, "), not on (", device,
               ", 0)");
  const auto dtype = dtype_from(t.type);
  if (!dtype)
    return cat("'", in.name, "' has a type that is not known: code ", int(t.type.code), ", ",
               int(t.type.bits), " bits, ", t.type.lanes, " lanes");
  if (!is_row_major(t)) return cat("'", in.name, "' is strided; it must be dense and row-major");
  const Shape given = shape_as(t, *dtype);
  bool fits = given.dtype() == declared.dtype() && given.rank() == declared.rank();
  for (int i = 0; fits && i < given.rank(); ++i)
    fits = declared.dim(i).is_symbolic() || declared.dim(i) == given.dim(i);
  return fits ? std::string() : cat("'", in.name, "' is ", declared, ", the value is ", given);
}

/// A result with its memory and its sizes.
struct Held {
  DlManagedTensor managed{};
  backend::Block block;
  std::vector<int64_t> dims;
};

DlTensorOwner held(backend::Block block, const Shape& shape, int32_t device) {
  auto* h = new Held;
  h->block = std::move(block);
  for (const Dim d : shape.dims()) h->dims.push_back(d.value());
  h->managed.tensor = {h->block.get(),
                       {device, 0},
                       int32_t(h->dims.size()),
                       type_to(shape.dtype()),
                       h->dims.data(),
                       nullptr,
                       0};
  h->managed.manager = h;
  h->managed.deleter = [](DlManagedTensor* t) { delete static_cast<Held*>(t->manager); };
  return DlTensorOwner(&h->managed);
}

}  // namespace

Shape shape_of(const DlTensor& t) {
  const auto dtype = dtype_from(t.type);
  if (!dtype)
    throw invalid("dlpack: no element type for code ", int(t.type.code), " of ", int(t.type.bits), " bits, ",
                  t.type.lanes, " lanes");
  return shape_as(t, *dtype);
}

DlTensorOwner on_device(const Literal& value, std::string_view device) {
  const backend::Memory& memory = device_named(device).memory();
  const size_t bytes = value.bytes().size();
  backend::Block block(memory, bytes);
  memory.upload(block.get(), value.bytes().data(), bytes);
  return held(std::move(block), value.shape(), memory.on_host() ? kHost : kCuda);
}

Literal on_host(const DlTensor& t) {
  if (!is_row_major(t)) throw invalid("dlpack: a tensor is strided; it must be dense and row-major");
  Literal out = Literal::zeros(shape_of(t));
  memory_of(t).download(out.mutable_bytes().data(), bytes_of(t), out.bytes().size());
  return out;
}

// A copy of the driver, which is one of that stream, ends behind what it was asked for before.
void wait_for(const DlTensor& t) {
  std::byte first;
  if (shape_of(t).elements() > 0) memory_of(t).download(&first, bytes_of(t), 1);
}

DeviceCall::DeviceCall(const ir::Graph& graph, const ir::NamedLiterals& weights,
                       const CompileOptions& options)
    : core_(std::make_shared<runtime::Core>(graph, weights, options)) {
  if (!options.states.empty())
    throw invalid("dlpack: '", options.states[0].input, "' is a state; a call on tensors of others has none");
  queue_ = core_->builder().backend().make_queue();
}
DeviceCall::~DeviceCall() = default;
DeviceCall::DeviceCall(DeviceCall&&) noexcept = default;

std::vector<DlTensorOwner> DeviceCall::run(std::span<const DlInput> inputs) {
  const backend::Memory& memory = core_->builder().backend().memory();
  const int32_t device = memory.on_host() ? kHost : kCuda;
  std::vector<Shape> shapes;
  std::vector<std::byte*> leaves(core_->leaves().size());
  std::vector<std::string> problems;
  for (const auto& leaf : core_->leaves()) shapes.push_back(leaf.shape);
  for (size_t i = 0; i < core_->leaves().size(); ++i) {
    const auto& leaf = core_->leaves()[i];
    if (leaf.role != LeafRole::input) continue;
    const auto count =
        std::count_if(inputs.begin(), inputs.end(), [&](const DlInput& in) { return in.name == leaf.name; });
    if (count != 1)
      problems.push_back(cat("input '", leaf.name, "' (", leaf.shape, ") is given ", count, " times"));
  }
  for (const DlInput& in : inputs) {
    const auto leaf = core_->find_leaf(in.name);
    if (!leaf || core_->leaves()[*leaf].role != LeafRole::input) {
      problems.push_back(cat("'", in.name, "' is no input"));
      continue;
    }
    if (std::string why = problem_of(in, core_->leaves()[*leaf].shape, device); !why.empty()) {
      problems.push_back(std::move(why));
      continue;
    }
    shapes[*leaf] = shape_as(in.value, *dtype_from(in.value.type));
    leaves[*leaf] = bytes_of(in.value);
  }
  if (!problems.empty()) throw invalid("dlpack: ", join(problems, "; "));
  const auto instance = core_->instance(shapes);
  for (size_t i = 0; i < leaves.size(); ++i) {
    // Steps do not write to their operands.
    if (core_->leaves()[i].role == LeafRole::param)
      leaves[i] = const_cast<std::byte*>(instance->weights[i].get());
  }
  if (const size_t bytes = instance->program->arena_bytes(); !arena_ || bytes > arena_->size())
    arena_ = std::make_unique<backend::Block>(memory, bytes);
  std::vector<DlTensorOwner> out;
  std::vector<std::byte*> places;
  for (const Shape& s : instance->outputs) {
    out.push_back(held(backend::Block(memory, size_t(s.size_bytes())), s, device));
    places.push_back(static_cast<std::byte*>(out.back()->tensor.data));
  }
  queue_->run(*instance->program, {.team = core_->team(),
                                   .leaves = leaves.data(),
                                   .outputs = places.data(),
                                   .arena = arena_->get(),
                                   .packed = instance->packed.data()});
  queue_->wait();
  return out;
}

}  // namespace rlx
