// GGUF files that hold q, k and v as the rows of one weight give what those with three give.
#include <gtest/gtest.h>

#include <memory>

#include "rlx/io/gguf.h"
#include "tests/models/gguf_form.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"

namespace rlx::test {
namespace {

void fuse(const std::string& from, const std::string& to) {
  const io::GgufFile file = io::GgufFile::open(from);
  io::GgufWriter out;
  for (const io::GgufEntry& e : file.entries()) out.add(e.key, e.value);
  std::vector<std::shared_ptr<std::vector<std::byte>>> kept;
  for (const io::TensorView& t : file.tensors()) {
    const size_t at = t.name.find(".attn_q.") + 1;  // 0: it is another
    if (t.name.find(".attn_k.") != std::string::npos || t.name.find(".attn_v.") != std::string::npos)
      continue;
    if (at == 0) {
      out.add_tensor(t);
      continue;
    }
    io::TensorView all = t;
    all.name.replace(at, 6, "attn_qkv");
    all.dims[0] = 0;
    auto bytes = std::make_shared<std::vector<std::byte>>();
    for (const char* part : {"attn_q", "attn_k", "attn_v"}) {
      const io::TensorView& p = file.tensor(std::string(t.name).replace(at, 6, part));
      bytes->insert(bytes->end(), p.bytes.begin(), p.bytes.end());
      all.dims[0] += p.dims[0];
    }
    all.bytes = *bytes;
    all.owner = bytes;
    kept.push_back(bytes);
    out.add_tensor(all);
  }
  ASSERT_FALSE(kept.empty());
  out.write(to);
}

TEST(GgufFused, one_weight_of_q_k_and_v) {
  RLX_REQUIRE_DATA("checkpoints");
  for (const std::string name : {"llama", "qwen2", "gemma2", "gemma3", "olmo2", "bert"}) {
    const Scratch scratch;
    const std::string folder = data_path("checkpoints/" + name);
    write_gguf_form(models::open_model(folder), scratch.path("a.gguf"));
    fuse(scratch.path("a.gguf"), scratch.path("b.gguf"));
    const Literal ids = expected_values(folder + "/expected.safetensors").at("input_ids");
    const auto result = [&](const char* file) {
      const models::Model model = models::open_model(scratch.path(file));
      const models::ModelGraph g = model.graph();
      CompiledGraph run = compile(g.graph, g.weights);
      return run.run({{"input_ids", ids}}).at(model.config().encoder ? "last_hidden_state" : "logits");
    };
    EXPECT_LT(largest_difference(result("a.gguf"), 0, result("b.gguf"), 0, ids.elements()), 1e-4) << name;
  }
}

}  // namespace
}  // namespace rlx::test
