// What the metadata of GGUF files mean where they leave a value out, say 0, or tell it for each layer.
#include <gtest/gtest.h>

#include <functional>

#include "rlx/io/gguf.h"
#include "rlx/models/model.h"
#include "tests/support/data.h"

namespace rlx::test {
namespace {

using Add = std::function<void(io::GgufWriter&)>;

// The configuration of a file without tensors, two layers unless told otherwise.
models::Config config_of(const std::string& architecture, const Add& add, uint32_t layers = 2) {
  const Scratch scratch;
  io::GgufWriter out;
  out.add_string("general.architecture", architecture);
  const auto key = [&](std::string_view name) { return cat(architecture, ".", name); };
  out.add_u32(key("vocab_size"), 16);
  out.add_u32(key("context_length"), 64);
  out.add_u32(key("embedding_length"), 32);
  out.add_u32(key("block_count"), layers);
  add(out);
  out.write(scratch.path("a.gguf"));
  return models::open_model(scratch.path("a.gguf")).config();
}

Add heads(const std::string& architecture, const Add& more = {}) {
  return [=](io::GgufWriter& out) {
    out.add_u32(architecture + ".attention.head_count", 4);
    out.add_u32(architecture + ".feed_forward_length", 64);
    if (more) more(out);
  };
}

TEST(GgufValues, a_rope_factor_without_a_type_is_linear) {
  const auto c =
      config_of("llama", heads("llama", [](auto& o) { o.add_f32("llama.rope.scaling.factor", 4); }));
  EXPECT_EQ(c.rope.kind, models::Rope::Kind::linear);
  EXPECT_EQ(c.rope.factor, 4);
}

TEST(GgufValues, a_rope_factor_of_0_says_nothing) {
  const auto c = config_of("llama", heads("llama", [](auto& o) {
                             o.add_string("llama.rope.scaling.type", "yarn");
                             o.add_f32("llama.rope.scaling.factor", 0);
                           }));
  EXPECT_EQ(c.rope.factor, 1);
}

}  // namespace
}  // namespace rlx::test
