#include "rlx/backend/cuda/driver/driver.h"

#include "rlx/backend/cuda/driver/library.h"
#include "rlx/base/error.h"

namespace rlx::cuda {
namespace {

struct Opened {
  Driver functions{};
  std::string problem;
};

std::string load(Driver& d) {
  const Library library({"libcuda.so.1"});
  if (!library.found()) return cat("no NVIDIA driver: ", library.reason());
  std::vector<std::string> missing;
  const auto get = [&](auto& f, const char* name) { library.load(f, name, missing); };
  get(d.Init, "cuInit");
  get(d.DriverGetVersion, "cuDriverGetVersion");
  get(d.GetErrorName, "cuGetErrorName");
  get(d.GetErrorString, "cuGetErrorString");
  get(d.DeviceGetCount, "cuDeviceGetCount");
  get(d.DeviceGet, "cuDeviceGet");
  get(d.DeviceGetName, "cuDeviceGetName");
  get(d.DeviceGetAttribute, "cuDeviceGetAttribute");
  get(d.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  get(d.CtxSetCurrent, "cuCtxSetCurrent");
  get(d.CtxSynchronize, "cuCtxSynchronize");
  get(d.MemGetInfo, "cuMemGetInfo_v2");
  get(d.MemAlloc, "cuMemAlloc_v2");
  get(d.MemFree, "cuMemFree_v2");
  get(d.MemHostAlloc, "cuMemHostAlloc");
  get(d.MemFreeHost, "cuMemFreeHost");
  get(d.MemcpyHtoD, "cuMemcpyHtoD_v2");
  get(d.MemcpyDtoH, "cuMemcpyDtoH_v2");
  get(d.MemcpyDtoD, "cuMemcpyDtoD_v2");
  get(d.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  get(d.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  get(d.MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  get(d.MemsetD8, "cuMemsetD8_v2");
  get(d.MemsetD8Async, "cuMemsetD8Async");
  get(d.StreamCreate, "cuStreamCreate");
  get(d.StreamDestroy, "cuStreamDestroy_v2");
  get(d.StreamSynchronize, "cuStreamSynchronize");
  get(d.StreamBeginCapture, "cuStreamBeginCapture_v2");
  get(d.StreamEndCapture, "cuStreamEndCapture");
  get(d.GraphInstantiate, "cuGraphInstantiateWithFlags");
  get(d.GraphLaunch, "cuGraphLaunch");
  get(d.GraphExecDestroy, "cuGraphExecDestroy");
  get(d.GraphDestroy, "cuGraphDestroy");
  get(d.ModuleLoadData, "cuModuleLoadData");
  get(d.ModuleGetFunction, "cuModuleGetFunction");
  get(d.FuncSetAttribute, "cuFuncSetAttribute");
  get(d.LaunchKernelEx, "cuLaunchKernelEx");
  get(d.TensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  get(d.EventCreate, "cuEventCreate");
  get(d.EventDestroy, "cuEventDestroy_v2");
  get(d.EventRecord, "cuEventRecord");
  get(d.EventElapsedTime, "cuEventElapsedTime");
  std::vector<std::string> newer;
  const auto try_get = [&](auto& f, const char* name) { library.load(f, name, newer); };
  try_get(d.EventSynchronize, "cuEventSynchronize");
  try_get(d.StreamGetCaptureInfo, "cuStreamGetCaptureInfo_v3");
  try_get(d.StreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies_v2");
  try_get(d.StreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph");
  try_get(d.GraphAddNode, "cuGraphAddNode_v2");
  try_get(d.GraphConditionalHandleCreate, "cuGraphConditionalHandleCreate");
  if (!missing.empty())
    return cat("the NVIDIA driver is too old: libcuda.so.1 has no ", join(missing),
               "; CUDA 12 or newer is needed");
  if (const Result r = d.Init(0); r != 0) {
    const char* text = nullptr;
    d.GetErrorString(r, &text);
    return cat("the NVIDIA driver does not start: ", text ? text : "unknown error", " (", r, ")");
  }
  return "";
}

const Opened& opened() {
  static const Opened o = [] {
    Opened made;
    made.problem = load(made.functions);
    return made;
  }();
  return o;
}

// Behind these the driver refuses everything: memory that cannot be corrected, a wrong address, a kernel that was stopped, an assertion, a wrong
// stack, instruction or alignment, a kernel that failed.
bool ends_context(Result r) {
  return r == 214 || r == 700 || r == 702 || r == 709 || r == 710 || (r >= 714 && r <= 719);
}

}  // namespace

const Driver& driver() {
  if (!opened().problem.empty()) throw environment_error("cuda: no CUDA device: ", opened().problem);
  return opened().functions;
}

void check(Result r, const char* what, const char* hint) {
  if (r == 0) return;
  const char *name = nullptr, *text = nullptr;
  opened().functions.GetErrorName(r, &name);
  opened().functions.GetErrorString(r, &text);
  throw environment_error("cuda: ", what, " failed: ", name ? name : "unknown", " (", r, "), ",
                          text ? text : "no description", *hint ? "; " : "", hint,
                          ends_context(r) ? "; no further work of this process reaches the GPU" : "");
}

}  // namespace rlx::cuda
