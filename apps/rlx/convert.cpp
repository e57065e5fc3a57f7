// rlx convert: from one tensor file to another.
#include <cstdio>

#include "apps/rlx/command.h"
#include "apps/rlx/open_program.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "rlx/io/convert.h"

namespace rlx::cli {

void add_convert(Command app) {
  struct Arguments {
    std::string in, out, type, progress = "auto";
    bool deflate = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  Command command = app.add_subcommand("convert", "write a tensor file in another format or storage type");
  command.add_option("IN", arguments->in, "file or folder, recognised by its content").required();
  command.add_option("OUT", arguments->out, "file to write; " + io::FormatTable::standard().written_endings())
      .required();
  command.add_option("--type", arguments->type,
                     "storage of float tensors: f32, f16, bf16, for GGUF also q8_0, q4_k, ...");
  command.add_flag("--deflate", arguments->deflate, "compress the arrays of an .npz file");
  command.add_option("--progress", arguments->progress, "how far it is, on standard error")
      .one_of({"auto", "bar", "lines", "none"});
  command.callback([arguments] {
    if (convert_onnx(arguments->in, arguments->out)) return;
    Progress progress("convert", arguments->progress);
    io::ConvertOptions options{.deflate = arguments->deflate};
    if (!arguments->type.empty()) options.type = arguments->type;
    options.progress = [&](int64_t done, int64_t total) { progress.show(done, total); };
    const io::ConvertReport report = io::convert_file(arguments->in, arguments->out, options);
    print(cat(report.tensors, " tensors, ", report.from, " to ", report.to, ", ", report.bytes_in, " to ",
              report.bytes_out, " bytes, ", report.changed, " stored in another type\n"));
    for (const std::string& note : report.notes) std::fprintf(stderr, "rlx: note: %s\n", note.c_str());
  });
}

}  // namespace rlx::cli
