// rlx run: a graph on arrays from files.

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/output.h"
#include "apps/rlx/precision.h"
#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/npy.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/finite_check.h"
#include "rlx/runtime/profile.h"
#include "rlx/runtime/report.h"

namespace rlx::cli {
namespace {

constexpr int64_t kMaxPrinted = 64;  // elements of an output shown on the terminal
constexpr int kProfiledRuns = 5;

struct RunArguments {
  GraphArguments graph;
  std::string device = "cpu", precision = "f32", output_dir, profile;
  int threads = 0;
  bool report = false, json = false, check_nan = false;
};

void print_outputs(const NamedLiterals& results, const std::vector<Port>& outputs, const RunArguments& a) {
  if (!a.output_dir.empty()) make_folders(a.output_dir);
  for (const Port& port : outputs) {
    const Literal& y = results.at(port.name);
    if (!a.json) print(cat(port.name, ": ", y.elements() <= kMaxPrinted ? cat(y) : cat(y.shape()), "\n"));
    if (a.output_dir.empty()) continue;
    if (port.name.find('/') != std::string::npos)
      throw invalid("run: output '", port.name, "' cannot be the name of a file; rename it in the graph");
    io::write_npy(a.output_dir + "/" + port.name + ".npy", io::to_view(port.name, y));
  }
}

// Times are taken after a first run, which allocates.
void print_report(CompiledGraph& f, const BoundGraph& bound, const RunArguments& a) {
  if (a.profile.empty() && !a.report) return;
  Profile profile(measure_limits(a.device, a.threads));
  f.observe(&profile);
  for (int i = 0; i < kProfiledRuns; ++i) f.run(bound.inputs);
  f.observe(nullptr);
  if (!a.profile.empty()) write_file(a.profile, profile.trace_json());
  if (!a.report) return;
  Report report = f.report();
  report.add_times(profile);
  print(a.json ? report.json() + "\n" : report.text());
}

void run(const RunArguments& a) {
  const backend::Backend& device = device_named(a.device);  // an unknown one is told before anything else
  const BoundGraph bound = read_bound_graph(a.graph, "run");
  // A check wants every operator as a step of its own; the bits are the same.
  CompiledGraph f = compile(bound.graph, bound.weights,
                            {.device = a.device,
                             .threads = a.threads,
                             .fuse = !a.check_nan,
                             .precision = read_precision(a.precision, a.device)});
  FiniteCheck check(FiniteCheck::Wanted::no_nan, device.memory());
  if (a.check_nan) f.observe(&check);
  const NamedLiterals results = f.run(bound.inputs);
  check_mapped_files();  // weights and inputs are views of their files
  print_outputs(results, f.outputs(), a);
  print_report(f, bound, a);
}

}  // namespace

void add_run(Command app) {
  Command command = app.add_subcommand("run", "run a graph on arrays and print or write its outputs");
  auto a = std::make_shared<RunArguments>();
  add_graph_arguments(command, a->graph);
  add_device(command, a->device);
  add_precision(command, a->precision);
  command.add_option("--threads", a->threads, "threads; 0: all cores").not_negative();
  command.add_option("--output-dir", a->output_dir, "write each output as NAME.npy into this folder");
  const Argument report = command.add_flag(
      "--report", a->report,
      "print kernels with times, also those inside of loops, kernels that declined, fusion, memory over "
      "time");
  command.add_flag("--json", a->json, "print the report as JSON and nothing else").needs(report);
  command.add_option("--profile", a->profile,
                     "write a trace of some runs, with a track for each thread, for ui.perfetto.dev");
  command.add_flag("--check-nan", a->check_nan,
                   "stop at the first operator that makes NaN from operands without, inside of loops too");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
