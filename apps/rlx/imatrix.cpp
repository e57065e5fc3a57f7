// rlx imatrix: which columns of a model's weights matter, measured on a text.
#include "rlx/llm/imatrix.h"
#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "rlx/base/file.h"
#include "rlx/llm/language_model.h"

namespace rlx::cli {
namespace {

struct Arguments {
  std::string model, text, out, device = "cpu", progress = "auto";
  std::vector<std::string> add;
  int64_t chunk = 512;
  int threads = 0;
};

void run(const Arguments& a) {
  const models::Model model = models::open_model(model_path(a.model));
  const std::vector<llm::TokenId> ids =
      model.file().tokenizer().encode(a.text == "-" ? read_input() : read_file(a.text)).ids;
  Progress progress("imatrix", a.progress);
  llm::MeasureOptions options{.chunk = a.chunk};
  options.compile.device = a.device;
  options.compile.threads = a.threads;
  llm::ImportanceMatrix m = llm::measure_importance(model, ids, options, [&](int64_t done, int64_t total) {
    progress.show(done, total, cat(done, " of ", total, " tokens"));
  });
  m.datasets.push_back(a.text);
  for (const std::string& file : a.add) m.add(llm::ImportanceMatrix::open(file));
  m.write(a.out);
  print(cat(m.entries.size(), " weights measured in ", m.chunks, " chunks of ", m.chunk_size, " tokens\n"));
}

}  // namespace

void add_imatrix(Command app) {
  const auto a = std::make_shared<Arguments>();
  Command command =
      app.add_subcommand("imatrix", "measure which columns of a model's weights matter, for 'rlx quantize'");
  command.add_option("MODEL", a->model, "GGUF file, folder, or a name that 'rlx models' lists").required();
  command.add_option("TEXT", a->text, "the text to run it on; - for standard input").required();
  command.add_option("-o,--output", a->out, "file to write; .dat takes the older form of llama.cpp")
      .required();
  command.add_option("-c,--chunk", a->chunk, "tokens read together").positive();
  command.add_option("--add", a->add, "files of earlier runs to add to it");
  command.add_option("-t,--threads", a->threads, "threads; 0: all cores").not_negative();
  add_device(command, a->device);
  command.add_option("--progress", a->progress, "how far it is, on standard error")
      .one_of({"auto", "bar", "lines", "none"});
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
