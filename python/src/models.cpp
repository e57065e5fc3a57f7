// Language models, embeddings and ONNX files.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/array.h"
#include "python/src/graph.h"
#include "rlx/llm/embedding.h"
#include "rlx/llm/language_model.h"
#include "rlx/onnx/export.h"
#include "rlx/onnx/import.h"

namespace rlx::python {
namespace {

using llm::GenerateOptions;
using llm::Generation;
using llm::LanguageModel;

// A model may write bytes that are no UTF-8; they become U+FFFD.
nb::object text_of(std::string_view bytes) {
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), "replace"));
}

// Keywords of generate by name; an unknown one is an error.
void set_option(GenerateOptions& o, const std::string& name, nb::handle value) {
  llm::Sampling& s = o.sampling;
  if (name == "max_tokens") {
    o.max_tokens = nb::cast<int64_t>(value);
  } else if (name == "stop") {
    o.stop = nb::isinstance<nb::str>(value) ? std::vector<std::string>{nb::cast<std::string>(value)}
                                            : nb::cast<std::vector<std::string>>(value);
  } else if (name == "ignore_end") {
    o.ignore_end = nb::cast<bool>(value);
  } else if (name == "lookup") {
    o.lookup = nb::cast<int64_t>(value);
  } else if (name == "temperature") {
    s.temperature = nb::cast<double>(value);
  } else if (name == "top_k") {
    s.top_k = nb::cast<int64_t>(value);
  } else if (name == "top_p") {
    s.top_p = nb::cast<double>(value);
  } else if (name == "min_p") {
    s.min_p = nb::cast<double>(value);
  } else if (name == "repetition_penalty") {
    s.repetition_penalty = nb::cast<double>(value);
  } else if (name == "frequency_penalty") {
    s.frequency_penalty = nb::cast<double>(value);
  } else if (name == "presence_penalty") {
    s.presence_penalty = nb::cast<double>(value);
  } else if (name == "seed") {
    s.seed = nb::cast<uint64_t>(value);
  } else {
    throw invalid("generate: no argument '", name,
                  "'; it has max_tokens, stop, ignore_end, lookup, temperature, top_k, top_p, min_p, "
                  "repetition_penalty, frequency_penalty, presence_penalty, seed");
  }
}

// The prompt is a text or a list of ids. Others run while the model does; the lock is taken for the callback, where Ctrl-C
// is noticed too.
Generation generate(LanguageModel& model, nb::handle prompt, nb::object on_token, nb::kwargs keywords) {
  GenerateOptions options;
  for (const auto& [key, value] : keywords) set_option(options, nb::cast<std::string>(key), value);
  const bool text = nb::isinstance<nb::str>(prompt);
  const std::vector<llm::TokenId> ids =
      text ? model.encode(nb::cast<std::string>(prompt)) : nb::cast<std::vector<llm::TokenId>>(prompt);
  const bool listens = !on_token.is_none();
  std::exception_ptr raised;
  const auto token = [&](const llm::GeneratedToken& t) {
    nb::gil_scoped_acquire lock;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!listens) return true;
      const nb::object go_on = on_token(text_of(t.text));
      return go_on.is_none() || nb::cast<bool>(go_on);
    } catch (...) {
      raised = std::current_exception();
      return false;
    }
  };
  Generation out;
  {
    nb::gil_scoped_release unlocked;
    out = model.generate_ids(ids, options, token);
  }
  if (raised) std::rethrow_exception(raised);
  return out;
}

nb::tuple load_onnx(const std::string& path) {
  onnx::Imported m = onnx::import_model(path);
  nb::dict weights;
  for (const auto& [name, value] : m.program.weights) weights[name.c_str()] = nb::cast(Array{value});
  return nb::make_tuple(GraphHandle{std::make_shared<ir::Graph>(std::move(m.program.graph))}, weights,
                        m.notes);
}

Program program_of(const GraphHandle& g, nb::dict weights) {
  Program out{Graph(*g.graph), {}};
  for (const auto& [name, value] : weights)
    out.weights.emplace(nb::cast<std::string>(name), nb::cast<Array&>(value).value);
  return out;
}

void save_onnx(const std::string& path, const GraphHandle& g, nb::dict weights, int64_t opset,
               std::optional<int64_t> external_above) {
  const Program p = program_of(g, weights);
  nb::gil_scoped_release unlocked;
  onnx::export_file(path, p, {.opset = opset, .external_above = external_above});
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<Generation>(m, "Generation", "What a model wrote.")
      .def_prop_ro("text", [](const Generation& g) { return text_of(g.text); })
      .def_ro("tokens", &Generation::tokens)
      .def_ro("log_probabilities", &Generation::log_probabilities)
      .def_prop_ro("finish", [](const Generation& g) { return std::string(llm::finish_name(g.finish)); })
      .def_prop_ro("tokens_per_second", &Generation::tokens_per_second)
      .def("__str__", [](const Generation& g) { return text_of(g.text); });
  nb::class_<LanguageModel>(m, "LanguageModel", "A language model with its tokenizer.")
      .def_static(
          "open",
          [](const std::string& path, int64_t context, const std::string& device, int threads) {
            nb::gil_scoped_release unlocked;
            return LanguageModel::open(
                path, {.context = context, .compile = {.device = device, .threads = threads}});
          },
          nb::arg("path"), nb::arg("context") = 4096, nb::arg("device") = "cpu", nb::arg("threads") = 0)
      .def("encode", [](const LanguageModel& model, const std::string& text) { return model.encode(text); })
      .def("generate", &generate, nb::arg("prompt"), nb::arg("on_token").none() = nb::none(),
           nb::arg("keywords"), "Continues a text or a list of ids; greedy unless a temperature is given.");
  nb::class_<llm::Embedder>(m, "Embedder", "A model that gives vectors for texts.")
      .def_static(
          "open",
          [](const std::string& path, bool normalise, int64_t dimensions) {
            nb::gil_scoped_release unlocked;
            return llm::Embedder::open(path, {.normalise = normalise, .dimensions = dimensions});
          },
          nb::arg("path"), nb::arg("normalise") = true, nb::arg("dimensions") = 0)
      .def("embed", [](llm::Embedder& model, const std::vector<std::string>& texts) {
        std::vector<std::vector<float>> rows;
        {
          nb::gil_scoped_release unlocked;
          rows = model.embed(texts);
        }
        Literal out = Literal::zeros(Shape(DType::f32, {int64_t(rows.size()), model.dimensions()}));
        auto to = out.mutable_data<float>().begin();
        for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
        return Array{out};
      });
  m.def("load_onnx", &load_onnx);
  m.def("save_onnx", &save_onnx, nb::arg("path"), nb::arg("graph"), nb::arg("weights"), nb::arg("opset"),
        nb::arg("external_above").none());
}

}  // namespace rlx::python
