// A driver that is none, for tests of what is said where something is wrong: it knows one device with memory in the heap and
// runs no kernel. FAKE_DEVICES, FAKE_CAPABILITY (75: 7.5), FAKE_MEMORY (bytes) and FAKE_INIT (an error) say what it is.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

long setting(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

constexpr int kOutOfMemory = 2;
size_t used = 0;
std::map<void*, size_t>& sizes() {
  static std::map<void*, size_t> held;
  return held;
}
size_t total() { return size_t(setting("FAKE_MEMORY", 1 << 20)); }

int take(void** p, size_t bytes) {
  if (used + bytes > total()) return kOutOfMemory;
  *p = std::malloc(bytes);
  sizes()[*p] = bytes;
  used += bytes;
  return 0;
}
int give(void* p) {
  used -= sizes()[p];
  sizes().erase(p);
  std::free(p);
  return 0;
}
void* pointer(unsigned long long p) { return reinterpret_cast<void*>(p); }

}  // namespace

extern "C" {

int cuInit(unsigned) { return int(setting("FAKE_INIT", 0)); }
int cuDriverGetVersion(int* v) { return *v = 13000, 0; }
int cuGetErrorName(int, const char** text) { return *text = "FAKE_ERROR", 0; }
int cuGetErrorString(int, const char** text) { return *text = "what the driver says", 0; }
int cuDeviceGetCount(int* count) { return *count = int(setting("FAKE_DEVICES", 1)), 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int length, int) {
  return std::strncpy(name, "a card of paper", size_t(length)), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = int(setting("FAKE_CAPABILITY", 90));
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 4;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &used, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* all) { return *free = total() - used, *all = total(), 0; }
int cuMemAlloc_v2(unsigned long long* p, size_t bytes) {
  void* at = nullptr;
  const int result = take(&at, bytes);
  *p = reinterpret_cast<unsigned long long>(at);
  return result;
}
int cuMemFree_v2(unsigned long long p) { return give(pointer(p)); }
int cuMemHostAlloc(void** p, size_t bytes, unsigned) { return *p = std::calloc(bytes, 1), 0; }
int cuMemFreeHost(void* p) { return std::free(p), 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t n) {
  return std::memcpy(pointer(to), from, n), 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t n) {
  return std::memcpy(to, pointer(from), n), 0;
}
int cuMemcpyDtoD_v2(unsigned long long to, unsigned long long from, size_t n) {
  return std::memcpy(pointer(to), pointer(from), n), 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t n, void*) {
  return cuMemcpyHtoD_v2(to, from, n);
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void*) {
  return cuMemcpyDtoH_v2(to, from, n);
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, void*) {
  return cuMemcpyDtoD_v2(to, from, n);
}
int cuMemsetD8_v2(unsigned long long to, unsigned char v, size_t n) {
  return std::memset(pointer(to), v, n), 0;
}
int cuMemsetD8Async(unsigned long long to, unsigned char v, size_t n, void*) {
  return cuMemsetD8_v2(to, v, n);
}
int cuStreamCreate(void** stream, unsigned) { return *stream = &used, 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamBeginCapture_v2(void*, int) { return 0; }
int cuStreamEndCapture(void*, void** graph) { return *graph = &used, 0; }
int cuGraphInstantiateWithFlags(void** out, void*, unsigned long long) { return *out = &used, 0; }
int cuGraphLaunch(void*, void*) { return 0; }
int cuGraphExecDestroy(void*) { return 0; }
int cuGraphDestroy(void*) { return 0; }
int cuModuleLoadData(void** module, const void*) { return *module = &used, 0; }
int cuModuleGetFunction(void** function, void*, const char*) { return *function = &used, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuLaunchKernelEx(const void*, void*, void**, void**) { return 0; }
int cuTensorMapEncodeTiled(void*, int, unsigned, void*, const void*, const void*, const void*, const void*,
                           int, int, int, int) {
  return 0;
}
#ifndef FAKE_OLD
int cuEventCreate(void** event, unsigned) { return *event = &used, 0; }
#endif
int cuEventDestroy_v2(void*) { return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventElapsedTime(float* ms, void*, void*) { return *ms = 0, 0; }
}
