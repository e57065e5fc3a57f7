#include "rlx/backend/cuda/queue.h"

#include <algorithm>

#include "rlx/backend/cuda/fault.h"
#include "rlx/base/error.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithoutTime = 2;  // CU_EVENT_DISABLE_TIMING
// A branch that was not taken yet is loaded while it is recorded, which the stricter modes refuse.
constexpr int kCaptureRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED

bool waits_for_steps() { return option("RLX_CUDA_WAIT").value_or("0") == "1"; }

/// Waits for every step: an error of the GPU is that of a step which is known, and an observer gets its time by the clock of the GPU.
class StepByStep final : public backend::Observer {
 public:
  /// `inside` may be null.
  StepByStep(backend::Observer* inside, const Driver& driver, Stream_* stream)
      : inside_(inside), driver_(driver), stream_(stream) {
    check(driver_.StreamSynchronize(stream_), "what was queued before a run");
  }
  ~StepByStep() override {
    for (const Times& t : times_) {
      if (t.begin) driver_.EventDestroy(t.begin);
      if (t.end) driver_.EventDestroy(t.end);
    }
  }
  StepByStep(const StepByStep&) = delete;
  StepByStep& operator=(const StepByStep&) = delete;

  void before(const backend::Plan::Step& s, const backend::Launch& l) override {
    if (!inside_) return;
    inside_->before(s, l);
    if (depth_ == times_.size()) times_.push_back({event(), event()});
    check(driver_.EventRecord(times_[depth_].begin, stream_), "taking the time of a step");
    ++depth_;
  }
  void after(const backend::Plan::Step& s, const backend::Launch& l) override {
    if (inside_) check(driver_.EventRecord(times_[--depth_].end, stream_), "taking the time of a step");
    check(driver_.StreamSynchronize(stream_), "the step");
    if (!inside_) return;
    float milliseconds = 0;
    check(driver_.EventElapsedTime(&milliseconds, times_[depth_].begin, times_[depth_].end),
          "taking the time of a step");
    inside_->took(double(milliseconds) * 1e-3);
    inside_->after(s, l);
  }
  bool enter(const backend::BodyRun& which) override { return inside_ ? inside_->enter(which) : true; }
  void leave() override {
    if (inside_) inside_->leave();
  }
  bool wants_every_step() const override { return inside_ && inside_->wants_every_step(); }
  PoolWatch* pool_watch() override { return inside_ ? inside_->pool_watch() : nullptr; }

 private:
  struct Times {
    Event_ *begin = nullptr, *end = nullptr;
  };
  Event_* event() const {
    Event_* made = nullptr;
    check(driver_.EventCreate(&made, 0), "making an event");
    return made;
  }

  backend::Observer* inside_;
  const Driver& driver_;
  Stream_* stream_;
  std::vector<Times> times_;  // of the steps that have begun, the outer ones first
  size_t depth_ = 0;
};

}  // namespace

GpuQueue::GpuQueue(const Gpu& gpu, Functions& functions)
    : stream_{gpu}, functions_(functions), fault_(gpu.memory().staging(), sizeof(uint64_t)) {
  check(gpu.use().StreamCreate(&stream_.handle, kNonBlocking), "opening a stream");
  stream_.fault = reinterpret_cast<uint64_t*>(fault_.get());
  *stream_.fault = 0;
  if (!makes_phases(functions)) return;
  meeting_ = backend::Block(gpu.memory(), Chain::kMeetingBytes);
  gpu.memory().clear(meeting_.get(), meeting_.size());
  chain_ = std::make_unique<Chain>(functions, gpu.multiprocessors(), meeting_.get(), stream_.fault);
}

GpuQueue::~GpuQueue() {
  const Driver& d = stream_.gpu.use();
  for (Recording& r : recordings_) forget(r);
  for (Event_* e : events_) {
    if (e) d.EventDestroy(e);
  }
  d.StreamSynchronize(stream_.handle);
  d.StreamDestroy(stream_.handle);
}

void GpuQueue::upload(std::byte* to, const std::byte* from, size_t n) {
  if (n > 0)
    check(stream_.gpu.use().MemcpyHtoDAsync(device_pointer(to), from, n, stream_.handle),
          "a copy to the GPU");
}

void GpuQueue::download(std::byte* to, const std::byte* from, size_t n) {
  if (n > 0)
    check(stream_.gpu.use().MemcpyDtoHAsync(to, device_pointer(from), n, stream_.handle),
          "a copy from the GPU");
}

void GpuQueue::wait() {
  check_work(stream_.gpu.use().StreamSynchronize(stream_.handle));
  throw_fault();
}

// Which of the queued steps failed the driver does not tell.
void GpuQueue::check_work(Result r) const {
  if (r != 0)
    check(r, cat("a step of graph '", graph_, "'").c_str(),
          waits_for_steps() ? "" : "RLX_CUDA_WAIT=1 names the step");
}

uint64_t GpuQueue::mark() {
  const Driver& d = stream_.gpu.use();
  Event_*& event = events_[marks_ % kMarks];
  if (!event) check(d.EventCreate(&event, kWithoutTime), "making an event");
  check(d.EventRecord(event, stream_.handle), "marking a place among queued work");
  return marks_++;
}

void GpuQueue::wait_for(uint64_t mark) {
  const Driver& d = stream_.gpu.use();
  if (!d.EventSynchronize) return wait();
  RLX_CHECK(mark < marks_ && marks_ - mark <= kMarks, "mark ", mark, " of ", marks_);
  check_work(d.EventSynchronize(events_[mark % kMarks]));
  throw_fault();
}

void GpuQueue::throw_fault() {
  if (const uint64_t fault = *stream_.fault; fault != 0) {
    *stream_.fault = 0;
    if (chain_) stream_.gpu.memory().clear(meeting_.get(), meeting_.size());
    throw invalid(fault_text(fault));
  }
}

GpuQueue::Recording& GpuQueue::recording_of(const backend::Executable& program, const backend::Frame& f,
                                            bool& known) {
  bases_.clear();
  bases_.insert(bases_.end(), f.leaves, f.leaves + program.leaves());
  bases_.insert(bases_.end(), f.outputs, f.outputs + program.outputs());
  bases_.insert(bases_.end(), f.packed, f.packed + program.packings().size());
  bases_.push_back(f.arena);
  for (Recording& r : recordings_) {
    if (r.program == program.number() && r.bases == bases_) {
      known = true;
      return r;
    }
  }
  known = false;
  if (recordings_.size() == kRecordings) {
    const auto oldest = std::min_element(recordings_.begin(), recordings_.end(),
                                         [](const auto& a, const auto& b) { return a.used < b.used; });
    forget(*oldest);
    recordings_.erase(oldest);
  }
  recordings_.push_back({.program = program.number(), .bases = bases_});
  return recordings_.back();
}

void GpuQueue::forget(Recording& r) {
  if (r.graph) stream_.gpu.use().GraphExecDestroy(r.graph);
  r.graph = nullptr;
}

// A driver that takes no kernel for many steps gets the steps; one that cannot record kernels that overlap gets them one behind the other, from then on.
GraphExec_* GpuQueue::record(const backend::Executable& program, const backend::Frame& f) {
  if (chain_ && chain_problem_.empty()) {
    try {
      return record_as_it_is(program, f, chain_.get());
    } catch (const Error& e) {
      chain_problem_ = e.message();
    }
  }
  if (!functions_.overlaps()) return record_as_it_is(program, f, nullptr);
  try {
    return record_as_it_is(program, f, nullptr);
  } catch (const Error&) {
    functions_.set_overlaps(false);
    try {
      return record_as_it_is(program, f, nullptr);
    } catch (...) {
      functions_.set_overlaps(true);  // not their fault
      throw;
    }
  }
}

GraphExec_* GpuQueue::record_as_it_is(const backend::Executable& program, const backend::Frame& f,
                                      Chain* chain) {
  const Driver& d = stream_.gpu.use();
  check(d.StreamBeginCapture(stream_.handle, kCaptureRelaxed), "beginning to record");
  Graph_* graph = nullptr;
  stream_.chain = chain;
  try {
    program.run(f);
    if (chain) chain->end(stream_.handle);
    stream_.chain = nullptr;
  } catch (...) {
    stream_.chain = nullptr;
    if (chain) chain->clear();
    d.StreamEndCapture(stream_.handle, &graph);
    if (graph) d.GraphDestroy(graph);
    throw;
  }
  check(d.StreamEndCapture(stream_.handle, &graph), "recording");
  GraphExec_* out = nullptr;
  const Result r = d.GraphInstantiate(&out, graph, 0);
  d.GraphDestroy(graph);
  check(r, "preparing what was recorded");
  return out;
}

// The first run loads and compiles what it needs, which cannot be recorded.
void GpuQueue::run(const backend::Executable& program, const backend::Frame& given) {
  const Driver& d = stream_.gpu.use();
  graph_ = program.plan().graph;
  addresses_.resize(std::max(addresses_.size(), program.addresses() + 1));
  backend::Frame f = given;
  f.stream = &stream_;
  f.addresses = addresses_.data();
  if (given.observer || waits_for_steps()) {
    StepByStep steps(given.observer, d, stream_.handle);
    f.observer = &steps;
    return program.run(f);
  }
  if (program.needs_host()) return program.run(f);
  bool known = false;
  Recording& r = recording_of(program, given, known);
  r.used = ++runs_;
  if (!known || r.refused) return program.run(f);
  if (!r.graph) {
    try {
      r.graph = record(program, f);
    } catch (const Error&) {
      r.refused = true;
      return program.run(f);
    }
  }
  check_work(d.GraphLaunch(r.graph, stream_.handle));
}

}  // namespace rlx::cuda
