// The functions of NVIDIA's driver that we use, declared here and looked up in libcuda.so.1 at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rlx::cuda {

using Result = int;  // CUresult; 0 is success
using DevicePointer = unsigned long long;
using DeviceNumber = int;
struct Context_;
struct Module_;
struct Function_;
struct Stream_;
struct Event_;
struct Graph_;
struct GraphExec_;
struct Node_;

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id = 0, padding = 0;
  int value[16] = {};
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Stream_* stream;
  LaunchAttribute* attributes;
  unsigned count;
};

/// CUgraphEdgeData, and CUgraphNodeParams of a conditional node.
struct EdgeData {
  unsigned char bytes[8];
};
struct NodeParams {
  int type = 0, reserved[3] = {};
  uint64_t condition = 0;
  int kind = 0;  // 0: if, 1: while
  unsigned size = 0;
  Graph_** bodies = nullptr;  // filled in
  Context_* context = nullptr;
  long long rest[26] = {};
};
static_assert(sizeof(NodeParams) == 256);

/// As in the driver's interface; names without their prefix "cu" and their version.
struct Driver {
  Result (*Init)(unsigned flags);
  Result (*DriverGetVersion)(int* version);
  Result (*GetErrorName)(Result, const char** text);
  Result (*GetErrorString)(Result, const char** text);
  Result (*DeviceGetCount)(int* count);
  Result (*DeviceGet)(DeviceNumber*, int ordinal);
  Result (*DeviceGetName)(char* name, int length, DeviceNumber);
  Result (*DeviceGetAttribute)(int* value, int attribute, DeviceNumber);
  Result (*DevicePrimaryCtxRetain)(Context_**, DeviceNumber);
  Result (*CtxSetCurrent)(Context_*);
  Result (*CtxSynchronize)();
  Result (*MemGetInfo)(size_t* free, size_t* total);
  Result (*MemAlloc)(DevicePointer*, size_t bytes);
  Result (*MemFree)(DevicePointer);
  Result (*MemHostAlloc)(void** p, size_t bytes, unsigned flags);
  Result (*MemFreeHost)(void*);
  Result (*MemcpyHtoD)(DevicePointer to, const void* from, size_t bytes);
  Result (*MemcpyDtoH)(void* to, DevicePointer from, size_t bytes);
  Result (*MemcpyDtoD)(DevicePointer to, DevicePointer from, size_t bytes);
  Result (*MemcpyHtoDAsync)(DevicePointer to, const void* from, size_t bytes, Stream_*);
  Result (*MemcpyDtoHAsync)(void* to, DevicePointer from, size_t bytes, Stream_*);
  Result (*MemcpyDtoDAsync)(DevicePointer to, DevicePointer from, size_t bytes, Stream_*);
  Result (*MemsetD8)(DevicePointer, unsigned char value, size_t bytes);
  Result (*MemsetD8Async)(DevicePointer, unsigned char value, size_t bytes, Stream_*);
  Result (*StreamCreate)(Stream_**, unsigned flags);
  Result (*StreamDestroy)(Stream_*);
  Result (*StreamSynchronize)(Stream_*);
  Result (*StreamBeginCapture)(Stream_*, int mode);
  Result (*StreamEndCapture)(Stream_*, Graph_**);
  Result (*GraphInstantiate)(GraphExec_**, Graph_*, unsigned long long flags);
  Result (*GraphLaunch)(GraphExec_*, Stream_*);
  Result (*GraphExecDestroy)(GraphExec_*);
  Result (*GraphDestroy)(Graph_*);
  Result (*ModuleLoadData)(Module_**, const void* image);
  Result (*ModuleGetFunction)(Function_**, Module_*, const char* name);
  Result (*FuncSetAttribute)(Function_*, int attribute, int value);
  Result (*LaunchKernelEx)(const LaunchConfig*, Function_*, void** parameters, void** extra);
  Result (*TensorMapEncodeTiled)(void* map, int type, unsigned rank, void* at, const uint64_t* extents,
                                 const uint64_t* strides, const unsigned* box, const unsigned* steps,
                                 int interleave, int swizzle, int promotion, int fill);
  Result (*EventCreate)(Event_**, unsigned flags);
  Result (*EventDestroy)(Event_*);
  Result (*EventRecord)(Event_*, Stream_*);
  Result (*EventElapsedTime)(float* milliseconds, Event_* from, Event_* to);

  Result (*EventSynchronize)(Event_*);  // may be null: then streams are waited for

  // Null where the driver is older than 12.4.
  Result (*StreamGetCaptureInfo)(Stream_*, int* status, uint64_t* id, Graph_**, Node_* const** last,
                                 const EdgeData**, size_t* count);
  Result (*StreamUpdateCaptureDependencies)(Stream_*, Node_**, const EdgeData*, size_t count, unsigned flags);
  Result (*StreamBeginCaptureToGraph)(Stream_*, Graph_*, Node_* const*, const EdgeData*, size_t count,
                                      int mode);
  Result (*GraphAddNode)(Node_**, Graph_*, Node_* const*, const EdgeData*, size_t count, NodeParams*);
  Result (*GraphConditionalHandleCreate)(uint64_t*, Graph_*, Context_*, unsigned value, unsigned flags);
};

/// The driver, opened and initialised at the first call; an environment error that says why where it is not
/// there.
const Driver& driver();

/// Throws an environment error `cuda: WHAT failed: NAME, TEXT; HINT` for anything but success. Behind an error that ends the context of the
/// process the text says so.
void check(Result, const char* what, const char* hint = "");

}  // namespace rlx::cuda
