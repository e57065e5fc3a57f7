// rlx logits: what a model says about given tokens.
#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/model_file.h"
#include "rlx/io/safetensors.h"
#include "rlx/llm/adapter.h"
#include "rlx/models/model.h"
#include "rlx/models/rope.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/devices.h"

namespace rlx::cli {
namespace {

struct Options {
  std::string model, input, mask, output, adapter, device = "cpu", activations = "auto";
  int64_t piece = 0;
  int threads = 0;
};

// The first of these tensors that a file has.
std::optional<Literal> find_array(const io::ModelFile& file, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const io::TensorView& t : file.tensors) {
      if (t.name == name) return io::to_literal(t);
    }
  }
  return std::nullopt;
}

// The same, or the array of a file that holds nothing else (.npy).
std::optional<Literal> the_array(const io::ModelFile& file, std::initializer_list<std::string_view> names) {
  const auto found = find_array(file, names);
  return !found && file.format->name == "npy" ? io::to_literal(file.tensors.at(0)) : found;
}

// Whole numbers [batch, seq] as i32; [seq] is a batch of one.
Literal as_tokens(const Literal& x, const std::string& what) {
  const int rank = x.shape().rank();
  if (!is_integer(x.dtype()) || rank < 1 || rank > 2)
    throw invalid("logits: ", what, " is ", x.shape(), "; whole numbers [batch, seq] expected");
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (const int64_t v = x.integer_at(i); v != int32_t(v))
      throw invalid("logits: element ", i, " of ", what, " is ", v, "; it does not fit 32 bits");
  }
  const Literal y = x.cast(DType::i32);
  return rank == 2 ? y : y.reshaped({1, x.elements()});
}

Literal read_ids(const io::ModelFile& input) {
  const auto ids = the_array(input, {"input_ids"});
  if (!ids) throw invalid("logits: '", input.path, "' has no tensor 'input_ids'");
  const Literal out = as_tokens(*ids, "input_ids");
  if (out.elements() == 0)
    throw invalid("logits: input_ids is ", ids->shape(), "; at least one token expected");
  return out;
}

std::optional<Literal> read_mask(const Options& o, const io::ModelFile& input, const Literal& ids) {
  std::optional<Literal> mask;
  if (!o.mask.empty()) {
    mask = the_array(io::ModelFile::open(o.mask), {"attention_mask", "mask"});
    if (!mask) throw invalid("logits: '", o.mask, "' has no tensor 'attention_mask' or 'mask'");
  } else {
    mask = find_array(input, {"attention_mask"});
  }
  if (!mask) return mask;
  mask = as_tokens(*mask, "the mask");
  if (mask->shape() != ids.shape())
    throw invalid("logits: the mask is ", mask->shape(), " for input_ids ", ids.shape());
  return mask;
}

// The graph, with an adapter beside the weights where one is given.
models::ModelGraph built(const models::Model& model, const Options& o, models::GraphOptions options) {
  options.round_activations = o.activations != "f32";
  if (o.adapter.empty()) return model.graph(options);
  const llm::Adapter adapter = llm::Adapter::open(o.adapter);
  adapter.check_fits(model);
  options.linear = adapter.hook();
  models::ModelGraph g = model.graph(options);
  for (const auto& [name, value] : adapter.weights()) g.weights.insert_or_assign(name, value);
  return g;
}

NamedLiterals run_whole(const models::Model& model, const Options& o, const Literal& ids,
                        const std::optional<Literal>& mask) {
  const models::ModelGraph g = built(model, o, {.mask = mask.has_value()});
  NamedLiterals in{{"input_ids", ids}};
  if (mask) in.emplace("mask", *mask);
  return compile(g.graph, g.weights, {.device = o.device, .threads = o.threads}).run(in);
}

// Columns [first, first + count) of a matrix of i32.
Literal columns(const Literal& x, int64_t first, int64_t count) {
  const int64_t rows = x.shape().dim(0).value(), width = x.shape().dim(1).value();
  const auto from = x.data<int32_t>();
  std::vector<int32_t> out;
  for (int64_t r = 0; r < rows; ++r)
    out.insert(out.end(), from.begin() + r * width + first, from.begin() + r * width + first + count);
  return Literal::of<int32_t>({rows, count}, out);
}

// The same in pieces, with what came before kept in states.
NamedLiterals run_pieces(const models::Model& model, const Options& o, const Literal& ids) {
  const int64_t rows = ids.shape().dim(0).value(), seq = ids.shape().dim(1).value();
  const models::ModelGraph g = built(model, o, {.capacity = seq, .batch = rows});
  CompileOptions options{.device = o.device, .threads = o.threads};
  for (const models::State& s : g.states) options.states.push_back({s.input, s.output});
  CompiledGraph run = compile(g.graph, g.weights, options);
  std::vector<int32_t> counting;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < seq; ++i) counting.push_back(int32_t(i));
  }
  const Literal positions = Literal::of<int32_t>({rows, seq}, counting);
  Literal logits = Literal::zeros(Shape(DType::f32, {rows, seq, model.config().vocab}));
  const auto to = logits.mutable_data<float>();
  const int64_t vocab = model.config().vocab;
  for (int64_t at = 0; at < seq; at += o.piece) {
    const int64_t count = std::min(o.piece, seq - at);
    NamedLiterals in{{"input_ids", columns(ids, at, count)},
                     {"positions", columns(positions, at, count)},
                     {"start", Literal::of<int32_t>({1}, {int32_t(at)})},
                     {"key_positions", columns(positions, 0, at + count)}};
    if (models::depends_on_length(model.config().rope))
      in.emplace("context_length", Literal::of<int32_t>({1}, {int32_t(seq)}));
    const Literal y = run.run(in).at("logits");
    const auto from = y.data<float>();
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(from.begin() + r * count * vocab, count * vocab, to.begin() + (r * seq + at) * vocab);
  }
  return {{"logits", logits}};
}

void run(const Options& o) {
  device_named(o.device);  // an unknown one is told before anything else
  if (!o.output.ends_with(".safetensors"))
    throw invalid("logits: --output '", o.output, "'; a name that ends in .safetensors expected");
  const models::Model model = models::open_model(model_path(o.model));
  const io::ModelFile input = io::ModelFile::open(o.input);
  const Literal ids = read_ids(input);
  const std::optional<Literal> mask = read_mask(o, input, ids);
  if (o.piece > 0 && mask) throw invalid("logits: --piece does not go with a mask");
  const NamedLiterals results = o.piece > 0 ? run_pieces(model, o, ids) : run_whole(model, o, ids, mask);
  check_mapped_files();  // weights and inputs are views of their files
  std::vector<io::TensorView> views;
  for (const auto& [name, value] : results) views.push_back(io::to_view(name, value));
  io::write_safetensors(o.output, views);
  for (const auto& [name, value] : results) print(cat(name, ": ", value.shape(), "\n"));
}

}  // namespace

void add_logits(Command app) {
  Command command =
      app.add_subcommand("logits", "run a model on token ids and write its logits or hidden states");
  auto o = std::make_shared<Options>();
  command.add_option("MODEL", o->model, "GGUF file, folder, or a name that 'rlx models' lists").required();
  command.add_option("--input,-i", o->input, "token ids: an .npy file, or one with a tensor 'input_ids'")
      .required();
  command.add_option("--mask", o->mask,
                     "1 for tokens, 0 for padding: an .npy file, or one with 'attention_mask'");
  command.add_option("--output,-o", o->output, "the .safetensors file to write").required();
  command.add_option("--lora", o->adapter, "LoRA adapter: a PEFT folder or a GGUF file");
  command.add_option("--piece", o->piece, "tokens a run, with states between the runs; default: all at once")
      .positive();
  add_activations(command, o->activations);
  add_device(command, o->device);
  command.add_option("--threads,-t", o->threads, "threads; 0: all cores").not_negative();
  command.callback([o] { run(*o); });
}

}  // namespace rlx::cli
