// rlx embed: texts as vectors.
#include <iostream>
#include <sstream>

#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/io/literal.h"
#include "rlx/io/npy.h"
#include "rlx/llm/embedding.h"

namespace rlx::cli {

namespace {

struct EmbedArguments {
  std::string model, file, npy, pooling, device = "cpu";
  std::vector<std::string> texts;
  int64_t dimensions = 0;
  int threads = 0;
  bool json = false, raw = false;
};

std::vector<std::string> texts_of(const EmbedArguments& a) {
  if (!a.texts.empty() && !a.file.empty()) throw invalid("embed: give texts, or a file of them with -f");
  if (!a.texts.empty()) return a.texts;
  std::istringstream lines(a.file.empty() || a.file == "-" ? read_input() : read_file(a.file));
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  if (out.empty()) throw invalid("embed: no texts; give them as arguments, or one a line with -f FILE");
  return out;
}

void write_npy(const std::string& path, const std::vector<std::vector<float>>& vectors) {
  const auto columns = int64_t(vectors[0].size());
  std::vector<float> all;
  for (const std::vector<float>& v : vectors) all.insert(all.end(), v.begin(), v.end());
  const Literal matrix = Literal::of({int64_t(vectors.size()), columns}, all);
  io::write_npy(path, io::to_view("embeddings", matrix));
}

void run(const EmbedArguments& a) {
  llm::EmbedOptions options{.normalise = !a.raw, .dimensions = a.dimensions};
  if (!a.pooling.empty()) options.pooling = llm::pooling_named(a.pooling);
  options.compile.threads = a.threads;
  options.compile.device = a.device;
  const std::vector<std::string> texts = texts_of(a);
  llm::Embedder model = llm::Embedder::open(model_path(a.model), options);
  const std::vector<std::vector<float>> vectors = model.embed(texts);
  if (!a.npy.empty()) {
    write_npy(a.npy, vectors);
    print(cat(vectors.size(), " vectors of ", model.dimensions(), " to ", a.npy, "\n"));
    return;
  }
  if (a.json) {
    JsonWriter out;
    out.begin_array();
    for (const std::vector<float>& v : vectors) {
      out.begin_array();
      for (const float x : v) out.value(double(x));
      out.end_array();
    }
    out.end_array();
    return print(out.take() + "\n");
  }
  for (const std::vector<float>& v : vectors) {
    std::string line;
    for (const float x : v) line += (line.empty() ? "" : " ") + cat(x);
    print(line + "\n");
  }
}

}  // namespace

void add_embed(Command app) {
  const auto a = std::make_shared<EmbedArguments>();
  Command command = app.add_subcommand("embed", "turn texts into vectors with an embedding model");
  command.add_option("MODEL", a->model, "GGUF file, folder, or a name that 'rlx models' lists").required();
  command.add_option("TEXT", a->texts, "texts; without any, one a line from standard input");
  command.add_option("-f,--file", a->file, "file with a text in each line");
  command.add_flag("--json", a->json, "a JSON array of arrays");
  command.add_option("--npy", a->npy, "write a matrix [texts, dimensions] to this file").excludes("--json");
  command.add_option("--pooling", a->pooling, "mean, cls or last; else as the model says");
  command.add_option("--dimensions", a->dimensions, "the first so many of a vector").positive();
  command.add_flag("--raw", a->raw, "not normalised to length 1");
  command.add_option("-t,--threads", a->threads, "threads; 0: all cores").not_negative();
  add_device(command, a->device);
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
