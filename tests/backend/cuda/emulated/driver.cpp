// libcuda: one device whose memory is the host's and whose kernels are functions of shared libraries, made by compiler.cpp. All work is done
// when it is queued, or when what was recorded is repeated.
//   EMULATED_CAPABILITY (90: 9.0)   EMULATED_PROCESSORS   EMULATED_MEMORY (bytes)   EMULATED_SEED: the order of warps   EMULATED_TRACE=1: launches to stderr
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "grid.h"
#include "memory.h"
#include "rlx/backend/cuda/driver/driver.h"
#include "stream.h"

namespace {

using emulated::Graph;
using emulated::Stream;
using rlx::cuda::EdgeData;
using rlx::cuda::LaunchConfig;
using rlx::cuda::NodeParams;
using Pointer = unsigned long long;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoImage = 200, kNotFound = 500, kIllegalAddress = 700,
              kLaunchFailed = 719, kTooLargeTogether = 720;
constexpr int kCooperative = 2;         // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
constexpr unsigned kMostTogether = 16;  // blocks, whose threads all have stacks

long setting(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

thread_local std::string said;  // about the last error of this thread
int error(int number, std::string text) { return said = std::move(text), number; }

struct Function {
  std::string name;
  emulated::Kernel kernel;
  unsigned shared_most = 48 << 10;
};
struct Exec {
  std::shared_ptr<Graph> graph;
};
struct Event {
  std::chrono::steady_clock::time_point at;
};
Stream default_stream;
Stream& of(void* stream) { return stream ? *static_cast<Stream*>(stream) : default_stream; }
void* pointer(Pointer p) { return reinterpret_cast<void*>(p); }
int copy(void* to, const void* from, size_t bytes) {
  const emulated::AtWork at_work;
  return std::memcpy(to, from, bytes), 0;
}
int fill(void* at, unsigned char value, size_t bytes) {
  const emulated::AtWork at_work;
  return std::memset(at, value, bytes), 0;
}

// EMULATED_FAIL: the name of a kernel that ends the context, which the process learns when it next waits, as of a GPU.
std::string ended_by;
bool ends_context(const std::string& kernel) {
  static const char* const given = std::getenv("EMULATED_FAIL");
  return given && kernel == given;
}
int ended() {
  return ended_by.empty() ? 0 : error(kIllegalAddress, "kernel " + ended_by + " was told to fail");
}

/// Parameters of a recorded launch, kept where any of them may lie.
struct Parameters {
  std::vector<std::vector<char>> memory;
  std::vector<void*> at;
  Parameters(const emulated::Kernel& k, void** given) {
    constexpr size_t kAlignment = 64;
    memory.resize(k.count);
    for (unsigned i = 0; i < k.count; ++i) {
      memory[i].resize(k.sizes[i] + kAlignment);
      char* const p = memory[i].data() + kAlignment - reinterpret_cast<size_t>(memory[i].data()) % kAlignment;
      std::memcpy(p, given[i], k.sizes[i]);
      at.push_back(p);
    }
  }
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* v) { return *v = int(setting("EMULATED_DRIVER", 13000)), 0; }
int cuGetErrorName(int, const char** text) { return *text = "EMULATED_ERROR", 0; }
int cuGetErrorString(int, const char** text) { return *text = said.c_str(), 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int length, int) {
  return std::snprintf(name, size_t(length), "an emulated GPU"), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = int(setting("EMULATED_CAPABILITY", 90));
  *value = attribute == 75   ? capability / 10
           : attribute == 76 ? capability % 10
                             : int(setting("EMULATED_PROCESSORS", 132));
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &default_stream, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return 0; }

int cuMemGetInfo_v2(size_t* free, size_t* all) {
  *all = emulated::memory_total(), *free = *all - emulated::memory_used();
  return 0;
}
int cuMemAlloc_v2(Pointer* p, size_t bytes) {
  char* const at = emulated::allocate(bytes, emulated::Side::device);
  *p = reinterpret_cast<Pointer>(at);
  return at ? 0 : error(kOutOfMemory, "out of memory");
}
int cuMemFree_v2(Pointer p) {
  return p == 0 || emulated::release(static_cast<char*>(pointer(p)))
             ? 0
             : error(kInvalidValue, "memory that is none is released");
}
int cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  *p = emulated::allocate(bytes, emulated::Side::host);
  return *p ? 0 : error(kOutOfMemory, "out of memory");
}
int cuMemFreeHost(void* p) {
  return emulated::release(static_cast<char*>(p)) ? 0
                                                  : error(kInvalidValue, "memory that is none is released");
}
int cuMemcpyHtoD_v2(Pointer to, const void* from, size_t n) { return copy(pointer(to), from, n); }
int cuMemcpyDtoH_v2(void* to, Pointer from, size_t n) { return copy(to, pointer(from), n); }
int cuMemcpyDtoD_v2(Pointer to, Pointer from, size_t n) { return copy(pointer(to), pointer(from), n); }
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t n, void* stream) {
  return of(stream).queue([=] { return copy(pointer(to), from, n); });
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t n, void* stream) {
  return of(stream).queue([=] { return copy(to, pointer(from), n); });
}
int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t n, void* stream) {
  return of(stream).queue([=] { return copy(pointer(to), pointer(from), n); });
}
int cuMemsetD8_v2(Pointer to, unsigned char v, size_t n) { return fill(pointer(to), v, n); }
int cuMemsetD8Async(Pointer to, unsigned char v, size_t n, void* stream) {
  return of(stream).queue([=] { return fill(pointer(to), v, n); });
}

int cuStreamCreate(void** stream, unsigned) { return *stream = new Stream, 0; }
int cuStreamDestroy_v2(void* stream) { return delete static_cast<Stream*>(stream), 0; }
int cuStreamSynchronize(void*) { return ended(); }
int cuEventCreate(void** event, unsigned) { return *event = new Event, 0; }
int cuEventDestroy_v2(void* event) { return delete static_cast<Event*>(event), 0; }
int cuEventRecord(void* event, void*) {
  return static_cast<Event*>(event)->at = std::chrono::steady_clock::now(), 0;
}
int cuEventElapsedTime(float* ms, void* from, void* to) {
  *ms = std::chrono::duration<float, std::milli>(static_cast<Event*>(to)->at - static_cast<Event*>(from)->at)
            .count();
  return 0;
}

// ---- recording ----
int cuStreamBeginCapture_v2(void* stream, int) {
  if (of(stream).records) return error(kInvalidValue, "the stream records already");
  return of(stream).records = new Graph, 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  *graph = of(stream).records;
  of(stream).records = nullptr;
  return *graph ? 0 : error(kInvalidValue, "the stream records nothing");
}
// What was recorded passes to the executable graph; the caller destroys the empty one.
int cuGraphInstantiateWithFlags(void** out, void* graph, unsigned long long) {
  auto made = std::make_shared<Graph>(std::move(*static_cast<Graph*>(graph)));
  return *out = new Exec{std::move(made)}, 0;
}
int cuGraphLaunch(void* exec, void* stream) {
  return of(stream).queue([graph = static_cast<Exec*>(exec)->graph] { return graph->run(); });
}
int cuGraphExecDestroy(void* exec) { return delete static_cast<Exec*>(exec), 0; }
int cuGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), 0; }
int cuStreamGetCaptureInfo_v3(void* stream, int* status, uint64_t*, void** graph, void* const** last,
                              const EdgeData** edges, size_t* count) {
  *status = of(stream).records ? 1 : 0;
  if (graph) *graph = of(stream).records;
  if (last) *last = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return 0;
}
int cuStreamUpdateCaptureDependencies_v2(void*, void**, const EdgeData*, size_t, unsigned) { return 0; }
int cuStreamBeginCaptureToGraph(void* stream, void* graph, void* const*, const EdgeData*, size_t, int) {
  return of(stream).records = static_cast<Graph*>(graph), 0;
}
int cuGraphConditionalHandleCreate(uint64_t* word, void* graph, void*, unsigned, unsigned) {
  auto& conditions = static_cast<Graph*>(graph)->conditions;
  conditions.push_back(std::make_unique<unsigned>(0));
  *word = reinterpret_cast<uint64_t>(conditions.back().get());
  return 0;
}
int cuGraphAddNode_v2(void** node, void* graph, void* const*, const EdgeData*, size_t, NodeParams* p) {
  constexpr int kConditional = 13;
  if (p->type != kConditional || p->size != 1)
    return error(kInvalidValue, "only conditional nodes with one body are emulated");
  Graph& into = *static_cast<Graph*>(graph);
  into.bodies.push_back(std::make_unique<Graph>());
  Graph* const body = into.bodies.back().get();
  static thread_local rlx::cuda::Graph_* one[1];
  one[0] = reinterpret_cast<rlx::cuda::Graph_*>(body);
  p->bodies = one;
  *node = body;
  const unsigned* const word = reinterpret_cast<const unsigned*>(p->condition);
  const bool repeats = p->kind == 1;
  into.work.push_back([=] {
    while (*word != 0) {
      if (const int r = body->run(); r != 0 || !repeats) return r;
    }
    return 0;
  });
  return 0;
}

// ---- kernels ----
int cuModuleLoadData(void** module, const void* image) {
  const char* const bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, "EMULATED", 8) != 0)
    return error(kNoImage, "a kernel that was not compiled for the emulated GPU");
  unsigned long long size = 0;
  std::memcpy(&size, bytes + 8, sizeof size);
  std::string path = (std::filesystem::temp_directory_path() / "emulated-kernel-XXXXXX").string();
  const int file = mkstemp(path.data());
  const bool written = file >= 0 && write(file, bytes + 16, size) == ssize_t(size);
  if (file >= 0) close(file);
  *module = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const char* const why = written && !*module ? dlerror() : nullptr;
  unlink(path.c_str());  // the loader has it
  return *module ? 0 : error(kNoImage, why ? why : "no file for a kernel");
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  using Get = emulated::Kernel (*)();
  const auto get = reinterpret_cast<Get>(dlsym(module, (std::string("emulated_kernel_") + name).c_str()));
  if (!get) return error(kNotFound, std::string("the module has no kernel ") + name);
  return *function = new Function{name, get()}, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  constexpr int kMaxDynamicShared = 8;
  Function& f = *static_cast<Function*>(function);
  if (attribute != kMaxDynamicShared) return 0;
  if (value + (f.kernel.shared_end - f.kernel.shared_begin) > (227 << 10))
    return error(kInvalidValue, "more shared memory than a block can have");
  return f.shared_most = unsigned(value), 0;
}
int cuLaunchKernelEx(const LaunchConfig* c, void* function, void** parameters, void**) {
  const Function& f = *static_cast<const Function*>(function);
  if (c->shared_bytes > f.shared_most)
    return error(kInvalidValue, "more shared memory than the function was allowed");
  if (c->grid_x == 0 || c->grid_y == 0 || c->grid_z == 0 || c->grid_y > 65535 || c->grid_z > 65535)
    return error(kInvalidValue, "a grid that no device has");
  emulated::Kernel kernel = f.kernel;
  for (unsigned i = 0; i < c->count; ++i) {
    if (c->attributes[i].id != kCooperative) continue;
    // Its blocks wait for each other: all of them are there at the same time, as those of a cluster are.
    if (c->grid_x * c->grid_y * c->grid_z > kMostTogether)
      return error(kTooLargeTogether, "a cooperative launch of too many blocks");
    kernel.cluster = {c->grid_x, c->grid_y, c->grid_z};
  }
  // Blocks that do not need each other but hand something over may be looked at together too.
  static const bool together = setting("EMULATED_TOGETHER", 0) != 0;
  const auto cluster = kernel.cluster;
  if (together && cluster.x * cluster.y * cluster.z == 1 &&
      c->grid_x * c->grid_y * c->grid_z <= kMostTogether)
    kernel.cluster = {c->grid_x, c->grid_y, c->grid_z};
  auto kept = std::make_shared<Parameters>(f.kernel, parameters);
  const LaunchConfig config = *c;
  return of(config.stream).queue([=, &f] {
    static const bool trace = setting("EMULATED_TRACE", 0) != 0;
    if (ends_context(f.name)) return ended_by = f.name, 0;
    const emulated::AtWork at_work;
    const auto from = std::chrono::steady_clock::now();
    const std::string problem = emulated::run({f.name,
                                               kernel,
                                               {config.grid_x, config.grid_y, config.grid_z},
                                               {config.block_x, config.block_y, config.block_z},
                                               config.shared_bytes,
                                               kept->at.data()});
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
    if (trace)
      std::fprintf(stderr, "emulated: %s %ux%ux%u blocks of %ux%ux%u, %u bytes: %.1f ms %s\n", f.name.c_str(),
                   config.grid_x, config.grid_y, config.grid_z, config.block_x, config.block_y,
                   config.block_z, config.shared_bytes, ms, problem.c_str());
    return problem.empty() ? 0 : error(kLaunchFailed, problem);
  });
}

int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* at, const uint64_t* extents,
                           const uint64_t* strides, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int, int) {
  static constexpr unsigned short kSizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  emulated::TensorMap out{};
  if (rank < 1 || rank > 5 || type < 0 || type >= int(std::size(kSizes)) || interleave != 0 ||
      reinterpret_cast<size_t>(at) % 16 != 0)
    return error(kInvalidValue, "a tensor that the copy engine does not know");
  out.base = static_cast<char*>(at);
  out.element = kSizes[type], out.rank = static_cast<unsigned short>(rank),
  out.swizzle = static_cast<unsigned short>(swizzle);
  for (unsigned i = 0; i < rank; ++i) {
    if (box[i] < 1 || box[i] > 256 || steps[i] != 1 || extents[i] < 1 || extents[i] > (1ull << 32) - 1 ||
        (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= 1ull << 40)))
      return error(kInvalidValue, "extents or strides that the copy engine does not take");
    out.extents[i] = unsigned(extents[i]), out.box[i] = static_cast<unsigned short>(box[i]);
    if (i > 0) out.strides[i - 1] = strides[i - 1];
  }
  if (swizzle > 0 && box[0] * out.element > (16u << swizzle))
    return error(kInvalidValue, "a box that is wider than its swizzle");
  out.magic = emulated::kTensorMagic;
  std::memset(map, 0, 128);
  std::memcpy(map, &out, sizeof out);
  return 0;
}
}
