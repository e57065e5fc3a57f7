// Language models, embeddings and ONNX files.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <set>

#include "python/src/array.h"
#include "python/src/graph.h"
#include "rlx/io/onnx/read.h"
#include "rlx/llm/embedding.h"
#include "rlx/llm/language_model.h"
#include "rlx/onnx/export.h"
#include "rlx/onnx/import.h"
#include "rlx/text/json.h"

namespace rlx::python {
namespace {

using llm::GenerateOptions;
using llm::Generation;
using llm::LanguageModel;

struct ModelFiles {
  std::shared_ptr<const models::Model> model;
};

nb::dict config_of(const ModelFiles& files) {
  const models::Config& c = files.model->config();
  nb::dict out;
  out["architecture"] = c.architecture;
  out["encoder"] = c.encoder;
  out["vocab"] = c.vocab;
  out["hidden"] = c.hidden;
  out["layers"] = c.layers;
  out["heads"] = c.heads;
  out["kv_heads"] = c.kv_heads;
  out["head_dim"] = c.head_dim;
  out["intermediate"] = c.intermediate;
  out["max_positions"] = c.max_positions;
  return out;
}

// A model may write bytes that are no UTF-8; they become U+FFFD.
nb::str text_of(std::string_view bytes) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), "replace"));
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

NamedLiterals literals_of(nb::dict arrays) {
  NamedLiterals out;
  for (const auto& [name, value] : arrays)
    out.emplace(nb::cast<std::string>(name), nb::cast<Array&>(value).value);
  return out;
}

bool has_open_sizes(const io::onnx::Model& model) {
  for (const io::onnx::ValueInfo& v : model.graph.inputs) {
    if (!v.type.shape) return true;
    for (const io::onnx::Dimension& d : *v.type.shape) {
      if (!d.value || *d.value < 0) return true;
    }
  }
  return false;
}

// (graph, weights, notes, inputs that became part of it, [(output, axis, name of its count)]); or, where no values are given and
// some may help, the text of the error.
nb::object load_onnx(const std::string& path, nb::dict values) {
  const onnx::ImportOptions options{.values = literals_of(values)};
  std::optional<onnx::Imported> m;
  std::string needed;
  {
    nb::gil_scoped_release unlocked;
    const io::onnx::Model model = io::onnx::read_model(path);
    try {
      m = onnx::import_model(model, options);
    } catch (const onnx::Unsupported&) {
      throw;
    } catch (const Error& e) {
      const bool may_help = dynamic_cast<const onnx::NeedsValue*>(&e) || has_open_sizes(model);
      if (!options.values.empty() || !may_help) throw;
      needed = e.message();
    }
  }
  if (!m) return nb::cast(needed);
  nb::dict weights;
  for (const auto& [name, value] : m->program.weights) weights[name.c_str()] = nb::cast(Array{value});
  nb::list bounded;
  for (const onnx::BoundedOutput& b : m->bounded) bounded.append(nb::make_tuple(b.output, b.axis, b.count));
  return nb::make_tuple(GraphHandle{std::make_shared<ir::Graph>(std::move(m->program.graph))}, weights,
                        m->notes, m->fixed, bounded);
}

nb::list ports_of(const std::vector<io::onnx::ValueInfo>& values, const std::set<std::string>& without) {
  nb::list out;
  for (const io::onnx::ValueInfo& v : values) {
    if (without.contains(v.name)) continue;
    const io::onnx::ElementInfo* element = io::onnx::find_element(v.type.element);
    nb::list dims;
    for (const io::onnx::Dimension& d : v.type.shape.value_or(std::vector<io::onnx::Dimension>{})) {
      if (d.value) {
        dims.append(*d.value);
      } else {
        dims.append(d.symbol.empty() ? std::string("?") : d.symbol);
      }
    }
    out.append(nb::make_tuple(v.name, element && element->dtype ? cat(*element->dtype) : std::string("?"),
                              nb::tuple(dims)));
  }
  return out;
}

// What the file says of its inputs and outputs: names, types and sizes.
nb::tuple describe_onnx(const std::string& path) {
  const io::onnx::Model model = io::onnx::read_model(path);
  std::set<std::string> weights;
  for (const io::onnx::Tensor& t : model.graph.initializers) weights.insert(t.name);
  return nb::make_tuple(ports_of(model.graph.inputs, weights), ports_of(model.graph.outputs, {}));
}

Program program_of(const GraphHandle& g, nb::dict weights) { return {Graph(*g.graph), literals_of(weights)}; }

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
  nb::class_<ModelFiles>(m, "ModelFiles", "An opened model: a GGUF file, or a folder with safetensors.")
      .def_prop_ro("architecture", [](const ModelFiles& f) { return f.model->config().architecture; })
      .def_prop_ro("is_encoder", [](const ModelFiles& f) { return f.model->config().encoder; })
      .def_prop_ro("config", &config_of);
  m.def("open_model", [](const std::string& path) {
    nb::gil_scoped_release unlocked;
    return ModelFiles{std::make_shared<const models::Model>(models::open_model(path))};
  });
  nb::class_<LanguageModel>(m, "LanguageModel", "A language model with its tokenizer.")
      .def(
          "__init__",
          [](LanguageModel* self, const ModelFiles& files, int64_t context, const std::string& device,
             int threads) {
            nb::gil_scoped_release unlocked;
            new (self) LanguageModel(files.model,
                                     {.context = context, .compile = {.device = device, .threads = threads}});
          },
          nb::arg("files"), nb::arg("context") = 4096, nb::arg("device") = "cpu", nb::arg("threads") = 0)
      .def("encode", [](const LanguageModel& model, const std::string& text) { return model.encode(text); })
      .def("decode",
           [](const LanguageModel& model, const std::vector<llm::TokenId>& ids) {
             return text_of(model.tokenizer().decode(ids));
           })
      .def(
          "chat_prompt",
          [](const LanguageModel& model, const std::string& messages) {
            return text_of(model.chat_prompt(text::parse_json(messages, "messages")));
          },
          nb::arg("messages"), "The model's template over messages, given as JSON.")
      .def("generate", &generate, nb::arg("prompt"), nb::arg("on_token").none() = nb::none(),
           nb::arg("keywords"), "Continues a text or a list of ids; greedy unless a temperature is given.");
  nb::class_<llm::Embedder>(m, "Embedder", "A model that gives vectors for texts.")
      .def(
          "__init__",
          [](llm::Embedder* self, const ModelFiles& files, bool normalise, int64_t dimensions,
             std::optional<std::string> pooling, const std::string& device, int threads) {
            llm::EmbedOptions options{.normalise = normalise, .dimensions = dimensions};
            if (pooling) options.pooling = llm::pooling_named(*pooling);
            options.compile = {.device = device, .threads = threads};
            nb::gil_scoped_release unlocked;
            new (self) llm::Embedder(files.model, std::move(options));
          },
          nb::arg("files"), nb::arg("normalise") = true, nb::arg("dimensions") = 0,
          nb::arg("pooling").none() = nb::none(), nb::arg("device") = "cpu", nb::arg("threads") = 0)
      .def_prop_ro("dimensions", &llm::Embedder::dimensions)
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
  m.def("load_onnx", &load_onnx, nb::arg("path"), nb::arg("values") = nb::dict());
  m.def("describe_onnx", &describe_onnx);
  m.def("save_onnx", &save_onnx, nb::arg("path"), nb::arg("graph"), nb::arg("weights"), nb::arg("opset"),
        nb::arg("external_above").none());
}

}  // namespace rlx::python
