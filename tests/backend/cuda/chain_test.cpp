// Steps that are recorded as one kernel whose blocks stay: which ones, that the kernel compiles without spills, and, where there is a GPU, that it gives what the
// interpreter gives.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/queue.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

struct Net {
  std::string type = "bf16", scheme;  // of packed weights, or none
  int64_t layers = 2, rows = 1, width = 128, inner = 256, heads = 4, kv_heads = 2, lanes = 64, keys = 40,
          vocab = 300;
  std::string mask;  // attributes of attention
};

// Layers of a decoder and the product with a vocabulary. Weights are params: the same in every run.
std::string net_text(const Net& n) {
  const int64_t wide = n.heads * n.lanes, narrow = n.kv_heads * n.lanes;
  const auto t = [&](auto... dims) {
    return cat(n.type, "[", join(std::vector<int64_t>{dims...}, ","), "]");
  };
  const quant::BlockFormat* const format =
      n.scheme.empty() ? nullptr : quant::scheme_from_text(n.scheme)->format;
  std::string leaves = cat("x: ", t(1, n.rows, n.width), ", c: ", t(n.rows, n.lanes / 2),
                           ", s: ", t(n.rows, n.lanes / 2), ", at: i32[3]"),
              body, results;
  const auto weight = [&](const std::string& name, int64_t out, int64_t in) {
    leaves += cat(", param ", name, ": ",
                  format ? cat("u8[", out, ",", in / format->elements * format->bytes, "]") : t(out, in));
  };
  const auto product = [&](const std::string& y, const std::string& x, const std::string& w, int64_t out,
                           int64_t in) {
    weight(w, out, in);
    body += format ? cat("  ", y, " = dequant_matmul(", x, ", ", w, ", scheme=\"", n.scheme,
                         "\", activations=q8)\n")
                   : cat("  t", w, " = transpose(", w, ", perm=[1,0]) ", y, " = matmul(", x, ", t", w, ")\n");
  };
  std::string x = "x";
  for (int64_t i = 0; i < n.layers; ++i) {
    const std::string at = cat(i);
    leaves += cat(", param ga", at, ": ", t(n.width), ", param gb", at, ": ", t(n.width), ", kc", at, ": ",
                  t(1, n.keys, narrow), ", vc", at, ": ", t(1, n.keys, narrow));
    body += cat("  n", at, " = rms_norm(", x, ", ga", at, ")\n");
    product("q" + at, "n" + at, "wq" + at, wide, n.width);
    product("k" + at, "n" + at, "wk" + at, narrow, n.width);
    product("v" + at, "n" + at, "wv" + at, narrow, n.width);
    body += cat("  rq", at, " = rope(q", at, ", c, s, head_dim=", n.lanes, ") rk", at, " = rope(k", at,
                ", c, s, head_dim=", n.lanes, ")\n  kn", at, " = dynamic_update_slice(kc", at, ", rk", at,
                ", at) vn", at, " = dynamic_update_slice(vc", at, ", v", at, ", at)\n  a", at,
                ":2 = attention(rq", at, ", kn", at, ", vn", at, ", num_heads=", n.heads,
                ", num_kv_heads=", n.kv_heads, n.mask, ")\n");
    product("o" + at, "a" + at, "wo" + at, n.width, wide);
    body += cat("  r", at, " = add(", x, ", o", at, ") m", at, " = rms_norm(r", at, ", gb", at, ")\n");
    product("g" + at, "m" + at, "wg" + at, n.inner, n.width);
    product("u" + at, "m" + at, "wu" + at, n.inner, n.width);
    body += cat("  sg", at, " = silu(g", at, ") f", at, " = mul(sg", at, ", u", at, ")\n");
    product("d" + at, "f" + at, "wd" + at, n.width, n.inner);
    body += cat("  y", at, " = add(r", at, ", d", at, ")\n");
    x = "y" + at;
    results += cat(", kn", at, "=kn", at, ", vn", at, "=vn", at);
  }
  product("logits", x, "head", n.vocab, n.width);
  return cat("graph @net(", leaves, ") {\n", body, "  return y=logits", results, "\n}");
}

// Caches and what becomes of them.
std::vector<std::pair<std::string, std::string>> states_of(const ir::Graph& g) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& name : g.output_names()) {
    if (name.starts_with("kn") || name.starts_with("vn"))
      out.emplace_back(cat(name[0], "c", name.substr(2)), name);
  }
  return out;
}

// What a run would let wait: addresses are multiples of 64 that nobody follows.
class Waiting {
 public:
  explicit Waiting(const std::string& text)
      : device_("sm_90a", nullptr), chain_(device_.functions(), 132, nullptr, nullptr) {
    std::vector<passes::Remark> remarks;
    const ir::Graph g = runtime::specialise(test::graph(text), device_, {}, remarks);
    backend::Interface interface;
    std::map<std::string, int> caches;
    for (const ir::NodeId id : g.leaves()) {
      caches.emplace(static_cast<const ir::NamedLeaf*>(g.node(id).attrs.get())->name,
                     int(interface.fixed.size()));
      interface.fixed.push_back(!g.node(id).is<ir::Input>());
    }
    const std::vector<std::string> names = g.output_names();
    for (const auto& [input, output] : states_of(g)) {
      const auto at = std::find(names.begin(), names.end(), output);
      interface.donated.push_back({caches.at(input), int(at - names.begin())});
    }
    const auto program = backend::Builder(device_, 1).build(g, interface);
    plan = program->plan().text();
    std::vector<std::byte*> leaves(program->leaves()), outputs(program->outputs());
    auto* at = reinterpret_cast<std::byte*>(uintptr_t(1) << 32);
    for (auto* list : {&leaves, &outputs}) {
      for (std::byte*& p : *list) p = at, at += int64_t(1) << 32;
    }
    for (const auto& [leaf, output] : interface.donated) outputs[size_t(output)] = leaves[size_t(leaf)];
    alignas(cuda::Gpu) std::byte no_gpu[sizeof(cuda::Gpu)] = {};
    cuda::Stream stream{reinterpret_cast<const cuda::Gpu&>(no_gpu)};
    stream.chain = &chain_;
    std::vector<std::byte*> addresses(program->addresses() + 1);
    program->run({.team = Team(default_pool(), 1),
                  .leaves = leaves.data(),
                  .outputs = outputs.data(),
                  .arena = at,
                  .stream = &stream,
                  .addresses = addresses.data()});
  }
  cuda::ChainText text() const { return chain_.text(); }
  std::string plan;

 private:
  cuda::Device device_;
  cuda::Chain chain_;
};

TEST(CudaChain, compiles_without_spills) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  for (const Net& n :
       {Net{.width = 576, .inner = 1536, .heads = 9, .kv_heads = 3, .keys = 1024, .vocab = 49152},
        Net{.width = 4096,
            .inner = 14336,
            .heads = 32,
            .kv_heads = 8,
            .lanes = 128,
            .keys = 1024,
            .vocab = 128256},
        Net{.scheme = "gguf_q4k",
            .width = 4096,
            .inner = 14336,
            .heads = 32,
            .kv_heads = 8,
            .lanes = 128,
            .keys = 1024,
            .vocab = 128256}}) {
    const Waiting w(net_text(n));
    const cuda::ChainText text = w.text();
    EXPECT_EQ(text.items.size(), size_t(6 * n.layers + 1)) << w.plan;
    const std::string report = cuda::resource_report(text.source, "sm_90a");
    EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << report;
  }
}

class ChainOnDevice : public test::OnDevice {
 protected:
  // Three runs: the first launches, the second records, the third repeats. `states`: caches are written in place, else copies of them cut the chain.
  void compare(const Net& n, double least, bool states) {
    setenv("RLX_CUDA_CHAIN", "1", 1);  // however small
    const ir::Graph g = test::graph(net_text(n));
    NamedLiterals leaves, inputs, weights;
    CompileOptions options{.device = "cuda"};
    std::set<std::string> held;
    for (const auto& [input, output] : states_of(g)) {
      if (states) options.states.push_back({input, output}), held.insert(input), held.insert(output);
    }
    for (const ir::NodeId id : g.leaves()) {
      const Shape& s = g.node(id).shapes[0];
      const std::string name = static_cast<const ir::NamedLeaf*>(g.node(id).attrs.get())->name;
      const std::string range = s.dtype() == DType::u8 ? " <60" : is_integer(s.dtype()) ? " <3" : "";
      Literal value = ir::sample_literal(cat(s) + range, leaves.size() + 11);
      // Sums of products stay near 1, where a tolerance means something.
      if (is_float(s.dtype()) && s.rank() == 2) {
        std::vector<double> small = value.to_reals();
        for (double& x : small) x *= 2 / std::sqrt(double(s.dim(1).value()));
        value = Literal::reals(s, small);
      }
      if (held.contains(name)) value = Literal::full(s, 0);  // as states begin
      leaves.emplace(name, value);
      if (g.node(id).is<ir::Input>() && !held.contains(name)) inputs.emplace(name, value);
      if (!g.node(id).is<ir::Input>()) weights.emplace(name, value);
    }
    const NamedLiterals want = ir::interpret(g, leaves);
    CompiledGraph f = compile(g, weights, options);
    const size_t before = cuda::chains_queued();
    SCOPED_TRACE(
        cat(n.type, " ", n.scheme, " ", n.rows, " rows, ", n.width, " wide", states ? ", states" : ""));
    for (int run = 0; run < 4; ++run) {
      SCOPED_TRACE(cat("run ", run));
      for (const auto& [name, value] : f.run(inputs)) {
        SCOPED_TRACE(name);
        test::expect_close(value, want.at(name), least);
      }
    }
    EXPECT_GT(cuda::chains_queued(), before) << "no kernel for many steps was recorded";
  }
  // Of two layers, each as in GroupsOnDevice.layers_of_few_tokens.
  static constexpr double kRoundings = 4 * 12 * 2, kBf16 = kRoundings * 0x1p-9, kF16 = kRoundings * 0x1p-11;
  static constexpr double kPacked = kBf16;
};

TEST_F(ChainOnDevice, a_token) { compare({}, kBf16, true); }

TEST_F(ChainOnDevice, caches_that_are_copied_cut_it) { compare({.type = "f16"}, kF16, false); }

// Columns of one piece and of two, pieces of odd length, three heads that share one, more keys than a part has.
TEST_F(ChainOnDevice, odd_sizes) {
  compare({.type = "f16", .width = 584, .inner = 1544, .heads = 9, .kv_heads = 3, .keys = 200, .vocab = 77},
          kF16, true);
}

TEST_F(ChainOnDevice, wide_heads_and_a_window) {
  compare({.heads = 2,
           .kv_heads = 1,
           .lanes = 128,
           .keys = 300,
           .mask = ", mask_kind=sliding_window, window=250"},
          kBf16, true);
}

TEST_F(ChainOnDevice, fewer_columns_than_processors) {
  compare({.layers = 1, .width = 64, .inner = 40, .heads = 1, .kv_heads = 1, .vocab = 8}, kBf16, true);
}

TEST_F(ChainOnDevice, some_tokens) { compare({.layers = 1, .rows = 3}, kBf16, true); }

TEST_F(ChainOnDevice, packed_weights) {
  compare({.scheme = "gguf_q4k", .layers = 1, .width = 512, .inner = 768, .heads = 8, .kv_heads = 2}, kPacked,
          true);
  compare({.scheme = "gguf_q4_0", .layers = 1, .width = 512, .inner = 768, .heads = 8, .kv_heads = 2},
          kPacked, true);
}

}  // namespace
}  // namespace rlx
