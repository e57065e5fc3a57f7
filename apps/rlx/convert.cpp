// rlx convert: from one tensor file to another.
#include <cstdio>

#include "apps/rlx/command.h"
#include "rlx/io/convert.h"

namespace rlx::cli {

void add_convert(CLI::App& app) {
  struct Arguments {
    std::string in, out, type;
    bool deflate = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("convert", "write a tensor file as GGUF, safetensors or npz");
  command->add_option("IN", arguments->in, "file or folder, recognised by its content")->required();
  command->add_option("OUT", arguments->out, "file to write; .gguf, .safetensors or .npz")->required();
  command->add_option("--type", arguments->type,
                      "storage of float tensors: f32, f16, bf16, for GGUF also q8_0, q4_k, ...");
  command->add_flag("--deflate", arguments->deflate, "compress the arrays of an .npz file");
  command->callback([arguments] {
    io::ConvertOptions options{.deflate = arguments->deflate};
    if (!arguments->type.empty()) options.type = arguments->type;
    const io::ConvertReport report = io::convert_file(arguments->in, arguments->out, options);
    std::printf("%s", cat(report.tensors, " tensors, ", io::file_kind_name(report.from), " to ",
                          io::file_kind_name(report.to), ", ", report.bytes_in, " to ", report.bytes_out,
                          " bytes, ", report.changed, " stored in another type\n")
                          .c_str());
    for (const std::string& note : report.notes) std::fprintf(stderr, "rlx: note: %s\n", note.c_str());
  });
}

}  // namespace rlx::cli
