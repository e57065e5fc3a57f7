// A profile as events for Perfetto: the track of the steps, then one for each thread.
#include <unistd.h>

#include <algorithm>

#include "rlx/base/json_write.h"
#include "rlx/runtime/profile.h"

namespace rlx {
namespace {

constexpr int64_t kSteps = 1;  // the track; those of threads follow

// Slices nest by their times, which all are from the start of the profile.
void begin_slice(JsonWriter& out, std::string_view name, std::string_view category, int64_t track,
                 double begin, double seconds) {
  out.begin_object();
  out.member("name", name);
  out.member("cat", category);
  out.member("ph", "X");
  out.member("ts", begin * 1e6);
  out.member("dur", seconds * 1e6);
  out.member("pid", int64_t(::getpid()));
  out.member("tid", track);
}

void write_track(JsonWriter& out, int64_t track, std::string_view name) {
  out.begin_object();
  out.member("name", "thread_name"), out.member("ph", "M"), out.member("pid", int64_t(::getpid()));
  out.member("tid", track);
  out.key("args"), out.begin_object(), out.member("name", name), out.end_object();
  out.end_object();
}

std::string title(std::string_view name, std::string_view op) {
  return name.empty() ? std::string(op) : cat(name, " ", op);
}

}  // namespace

void Profile::write_step(JsonWriter& out, const Span& span) const {
  const StepInfo& s = steps_[span.step];
  begin_slice(out, title(s.name, s.op), s.kernel, kSteps, span.begin, span.seconds);
  out.key("args");
  out.begin_object();
  out.member("kernel", s.kernel);
  out.member("result", s.result);
  if (!s.note.empty()) out.member("note", s.note);
  if (!s.origin.empty()) out.member("origin", s.origin);
  out.member("operations", s.cost.operations);
  out.member("bytes", s.cost.bytes);
  if (span.seconds > 0) out.member("GFLOP/s", s.cost.operations / span.seconds * 1e-9);
  if (span.seconds > 0) out.member("GB/s", s.cost.bytes / span.seconds * 1e-9);
  if (limits_) out.member("roofline share", roofline_share(*limits_, s.cost, span.seconds, s.narrowest));
  if (span.left_out > 0) {
    out.member("left out",
               cat(span.left_out, " of ", span.shown + span.left_out, " runs of its bodies",
                   span.shown > 0 ? ": the first are shown"
                                  : ": an earlier run of the loop is shown, or enough of others"));
  } else if (s.bodies > 0 && span.shown == 0) {
    out.member("left out", "its steps run on several threads, each on rows of its own, or none ran");
  }
  out.end_object();
  out.end_object();
}

void Profile::write_body(JsonWriter& out, const BodySpan& span) const {
  const StepInfo& s = steps_[span.step];
  const bool first_of_two = s.bodies == 2 && span.which.body == 0;
  const std::string name = span.which.round >= 0
                               ? cat(first_of_two ? "condition " : "step ", span.which.round)
                           : s.bodies == 2 ? (first_of_two ? "then" : "else")
                                           : "body";
  begin_slice(out, name, s.op, kSteps, span.begin, span.seconds);
  out.end_object();
}

// Threads in the order in which they first did something: the one that runs the graph has the first part of every job.
void Profile::write_work(JsonWriter& out) const {
  std::vector<int64_t> threads;
  for (const Work& w : work_) {
    auto at = std::find(threads.begin(), threads.end(), w.thread);
    if (at == threads.end()) {
      threads.push_back(w.thread);
      at = threads.end() - 1;
      write_track(out, kSteps + int64_t(threads.size()), cat("thread ", threads.size() - 1));
    }
    const StepInfo& s = steps_[w.step];
    begin_slice(out, title(s.name, s.op), s.kernel, kSteps + 1 + (at - threads.begin()), w.begin, w.seconds);
    out.end_object();
  }
}

std::string Profile::trace_json() const {
  JsonWriter out({.indent = -1, .replace_invalid = true});
  out.begin_object();
  out.member("displayTimeUnit", "ns");
  out.key("traceEvents");
  out.begin_array();
  write_track(out, kSteps, "steps");
  for (const Span& span : spans_) write_step(out, span);
  for (const BodySpan& span : body_spans_) write_body(out, span);
  write_work(out);
  out.end_array();
  int64_t bodies_left_out = 0;
  for (const Span& span : spans_) bodies_left_out += span.left_out;
  out.key("otherData");
  out.begin_object();
  out.member("runs of bodies left out", bodies_left_out);
  out.member("work of threads left out", work_left_out_);
  out.end_object();
  out.end_object();
  return out.take();
}

}  // namespace rlx
