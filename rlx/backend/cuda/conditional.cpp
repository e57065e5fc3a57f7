#include "rlx/backend/cuda/conditional.h"

#include "rlx/backend/cuda/compile/function.h"
#include "rlx/base/error.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr int kCapturing = 1;             // CU_STREAM_CAPTURE_STATUS_ACTIVE
constexpr int kCaptureRelaxed = 2;        // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr unsigned kNonBlocking = 1;      // CU_STREAM_NON_BLOCKING
constexpr unsigned kAssignDefault = 1;    // CU_GRAPH_COND_ASSIGN_DEFAULT
constexpr unsigned kSetDependencies = 1;  // CU_STREAM_SET_CAPTURE_DEPENDENCIES
constexpr int kConditionalNode = 13;      // CU_GRAPH_NODE_TYPE_CONDITIONAL
constexpr int kFirstDriver = 12040;

/// What a stream has recorded.
struct Recorded {
  int status = 0;
  Graph_* graph = nullptr;
  Node_* const* last = nullptr;  // what the next node waits for
  const EdgeData* edges = nullptr;
  size_t count = 0;
};

Recorded recorded(const Stream& s) {
  Recorded out;
  check(s.gpu.use().StreamGetCaptureInfo(s.handle, &out.status, nullptr, &out.graph, &out.last, &out.edges,
                                         &out.count),
        "asking what is recorded");
  return out;
}

/// A stream that records into a graph which exists already.
class BodyStream {
 public:
  BodyStream(const Stream& outer, Graph_* graph) : stream_{outer.gpu, nullptr, outer.fault} {
    const Driver& d = outer.gpu.use();
    check(d.StreamCreate(&stream_.handle, kNonBlocking), "opening a stream");
    try {
      check(d.StreamBeginCaptureToGraph(stream_.handle, graph, nullptr, nullptr, 0, kCaptureRelaxed),
            "beginning to record a body");
    } catch (...) {
      d.StreamDestroy(stream_.handle);
      throw;
    }
  }
  ~BodyStream() {
    end();
    stream_.gpu.use().StreamDestroy(stream_.handle);
  }
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;

  Stream& stream() { return stream_; }
  Result end() {
    if (ended_) return 0;
    ended_ = true;
    Graph_* same = nullptr;  // owned by the node
    return stream_.gpu.use().StreamEndCapture(stream_.handle, &same);
  }

 private:
  Stream stream_;
  bool ended_ = false;
};

}  // namespace

bool records_conditions(const Gpu& gpu) {
  static const bool wanted = option("RLX_CUDA_CONDITIONS").value_or("1") != "0";
  const Driver& d = gpu.use();
  return wanted && gpu.driver_version() >= kFirstDriver && d.StreamGetCaptureInfo &&
         d.StreamUpdateCaptureDependencies && d.StreamBeginCaptureToGraph && d.GraphAddNode &&
         d.GraphConditionalHandleCreate;
}

bool is_recording(const Stream& s) { return records_conditions(s.gpu) && recorded(s).status == kCapturing; }

uint64_t new_condition(const Stream& s) {
  uint64_t word = 0;
  check(
      s.gpu.use().GraphConditionalHandleCreate(&word, recorded(s).graph, s.gpu.context(), 0, kAssignDefault),
      "making a condition");
  return word;
}

void record_conditional(const Stream& s, uint64_t condition, Repeat repeat,
                        const std::function<void(Stream&)>& record) {
  const Driver& d = s.gpu.use();
  const Recorded before = recorded(s);
  NodeParams params;
  params.type = kConditionalNode;
  params.condition = condition;
  params.kind = repeat == Repeat::once ? 0 : 1;
  params.size = 1;
  params.context = s.gpu.context();
  Node_* node = nullptr;
  check(d.GraphAddNode(&node, before.graph, before.last, before.edges, before.count, &params),
        "recording a condition");
  check(d.StreamUpdateCaptureDependencies(s.handle, &node, nullptr, 1, kSetDependencies),
        "recording a condition");
  RLX_CHECK(params.bodies != nullptr, "a conditional node has a body");
  BodyStream body(s, params.bodies[0]);
  const Apart apart;
  record(body.stream());
  check(body.end(), "recording a body");
}

}  // namespace rlx::cuda
