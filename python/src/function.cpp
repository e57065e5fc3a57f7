// Compiled functions: a table of programs by the types of their arguments. The call of a known type stays in this file.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "python/src/array.h"
#include "python/src/graph.h"
#include "python/src/patience.h"
#include "rlx/backend/plan.h"
#include "rlx/base/aligned.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/report.h"

namespace rlx::python {
namespace {

/// One compiled graph, run by any number of threads: each run takes a clone of its own.
class Program {
 public:
  Program(const GraphHandle& g, const std::string& device, int threads, const NamedLiterals& weights)
      : first_(compile(*g.graph, weights, {.device = device, .threads = threads})),
        on_host_(device != "cuda"),
        patience_(has_open_loop(*g.graph)) {
    for (const Port& p : first_.inputs()) names_.push_back(p.name);
    for (const Port& p : first_.outputs()) shapes_.push_back(p.shape);
  }

  size_t arguments() const { return names_.size(); }

  std::vector<Array> run(std::span<const Array* const> values) {
    std::vector<Array> results;
    std::vector<TensorView> places;
    results.reserve(shapes_.size());
    places.reserve(shapes_.size());
    for (const Shape& s : shapes_) {
      const size_t bytes = size_t(s.size_bytes());
      std::shared_ptr<std::byte[]> memory = allocate_aligned(std::max<size_t>(bytes, 1));
      results.push_back({Literal::borrow(s, {memory.get(), bytes}, memory)});
      places.push_back(view(results.back().value));
    }
    CompiledGraph clone = take();
    if (patience_.is_needed()) {
      Run run{std::move(clone), names_, {}, results, std::move(places), on_host_};
      for (const Array* a : values) run.arguments.push_back(*a);
      clone = patience_.wait_for(std::move(run));
    } else {
      std::vector<Input> inputs;
      inputs.reserve(values.size());
      for (size_t i = 0; i < values.size(); ++i) inputs.push_back({names_[i], view(values[i]->value)});
      nb::gil_scoped_release unlocked;
      const Patience::Watch watch(patience_);
      clone.run_into(inputs, places);
    }
    give(std::move(clone));
    return results;
  }

  std::string plan_text() {
    CompiledGraph clone = take();
    std::string out = clone.plan().text();
    give(std::move(clone));
    return out;
  }

  std::string report_text() {
    CompiledGraph clone = take();
    std::string out = clone.report().text();
    give(std::move(clone));
    return out;
  }

 private:
  CompiledGraph take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return first_.clone();
    CompiledGraph out = std::move(idle_.back());
    idle_.pop_back();
    return out;
  }
  void give(CompiledGraph g) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(g));
  }

  std::mutex mutex_;
  CompiledGraph first_;
  std::vector<CompiledGraph> idle_;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  bool on_host_;
  Patience patience_;
};

bool same_type(const TensorView& v, const TensorView& w) {
  return v.dtype == w.dtype && v.rank == w.rank && std::equal(v.dims, v.dims + v.rank, w.dims);
}

/// A traced function. Arguments that are arrays of types seen before run at once; everything else goes through `miss`, a
/// Python function that gets the arguments and either runs them itself or adds an entry.
class Function {
 public:
  explicit Function(nb::object miss) : miss_(std::move(miss)) {}

  /// `finish`: None when the only result is an array by itself, else a function from the list of results.
  void add(std::vector<Array> examples, std::shared_ptr<Program> program, nb::object finish) {
    Entry e{{}, std::move(program), std::move(finish)};
    for (const Array& a : examples) e.types.push_back(view(a.value));
    entries_.push_back(std::move(e));
  }

  nb::object call(nb::args args, nb::kwargs keywords) {
    constexpr size_t kMost = 32;
    TensorView views[kMost];
    const Array* arrays[kMost];
    const size_t n = args.size();
    if (keywords.size() == 0 && n <= kMost) {
      size_t i = 0;
      for (; i < n; ++i) {
        const nb::handle h = args[i];
        if (!nb::isinstance<Array>(h)) break;
        arrays[i] = nb::inst_ptr<Array>(h);
        views[i] = view(arrays[i]->value);
      }
      if (i == n) {
        if (Entry* e = find({views, n})) {
          const nb::object finish = e->finish;  // the entries may be dropped while it runs
          const std::shared_ptr<Program> program = e->program;
          return finished(finish, program->run({arrays, n}));
        }
      }
    }
    return miss_(*args, **keywords);
  }

  size_t size() const { return entries_.size(); }

  // The function that `miss` closes over holds this object, so the collector must see through it.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(miss_.ptr());
    for (const Entry& e : entries_) Py_VISIT(e.finish.ptr());
    return 0;
  }
  void clear() {
    miss_.reset();
    entries_.clear();
  }

 private:
  struct Entry {
    std::vector<TensorView> types;  // without contents
    std::shared_ptr<Program> program;
    nb::object finish;
  };

  Entry* find(std::span<const TensorView> views) {
    for (Entry& e : entries_) {
      if (e.types.size() == views.size() &&
          std::equal(views.begin(), views.end(), e.types.begin(), same_type))
        return &e;
    }
    return nullptr;
  }

  static nb::object finished(const nb::object& finish, std::vector<Array> results) {
    if (finish.is_none()) return nb::cast(std::move(results[0]));
    nb::list out;
    for (Array& a : results) out.append(nb::cast(std::move(a)));
    return finish(out);
  }

  nb::object miss_;
  std::vector<Entry> entries_;
};

int traverse_function(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Function>(self)->traverse(visit, arg) : 0;
}

int clear_function(PyObject* self) {
  nb::inst_ptr<Function>(self)->clear();
  return 0;
}

PyType_Slot kFunctionSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_function)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_function)},
                                {0, nullptr}};

}  // namespace

void bind_functions(nb::module_& m) {
  nb::class_<Program>(m, "Program", "A compiled graph.")
      .def(
          "__init__",
          [](Program* self, const GraphHandle& g, const std::string& device, int threads, nb::dict weights) {
            NamedLiterals values;
            for (const auto& [name, value] : weights)
              values.emplace(nb::cast<std::string>(name), nb::cast<Array&>(value).value);
            nb::gil_scoped_release unlocked;
            new (self) Program(g, device, threads, values);
          },
          nb::arg("graph"), nb::arg("device"), nb::arg("threads"), nb::arg("weights") = nb::dict())
      .def("run",
           [](Program& p, nb::list arguments) {
             std::vector<const Array*> arrays;
             for (const nb::handle h : arguments) arrays.push_back(&nb::cast<const Array&>(h));
             if (arrays.size() != p.arguments())
               throw invalid("run: ", arrays.size(), " arguments, the program takes ", p.arguments());
             nb::list out;
             for (Array& a : p.run(arrays)) out.append(nb::cast(std::move(a)));
             return out;
           })
      .def("plan", &Program::plan_text, "Steps, kernels and buffers.")
      .def("report", &Program::report_text, "What was joined, what it costs, and why.");
  nb::class_<Function>(m, "Function", nb::dynamic_attr(), nb::type_slots(kFunctionSlots),
                       "A function that compiles itself for the types it is given.")
      .def(nb::init<nb::object>())
      .def(
          "_add",
          [](Function& f, nb::list examples, std::shared_ptr<Program> program, nb::object finish) {
            std::vector<Array> arrays;
            for (const nb::handle h : examples) arrays.push_back(nb::cast<Array&>(h));
            f.add(std::move(arrays), std::move(program), std::move(finish));
          },
          nb::arg("examples"), nb::arg("program"), nb::arg("finish").none())
      .def_prop_ro("_entries", &Function::size)
      .def("__call__", &Function::call);
}

}  // namespace rlx::python
