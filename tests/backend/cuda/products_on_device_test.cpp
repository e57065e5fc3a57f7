// On a GPU: products with packed weights of every format, products of few rows, attention of few queries, rotary positions; equal to
// the interpreter at sizes of one block and of many.
#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "rlx/quant/format.h"
#include "rlx/quant/scheme.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/backend/cuda/untried.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_as_interpreted;

// Least values of random blocks are large: what is left of their sums is known to fewer digits.
constexpr double kPackedError = 1e-3;

class ProductsOnDevice : public test::OnDevice {
 protected:
  void compare(const std::string& text, double least = 1e-9) {
    const ir::Graph g = test::graph(text);
    NamedLiterals leaves;
    uint64_t seed = 3;
    for (const ir::NodeId id : g.leaves()) {
      const ir::Node& n = g.node(id);
      const std::string name = static_cast<const ir::NamedLeaf*>(n.attrs.get())->name;
      // Bytes below 60 make scales that are small numbers, indices below 3 choose.
      const std::string range = n.shapes[0].dtype() == DType::u8  ? " <60"
                                : is_integer(n.shapes[0].dtype()) ? " <3"
                                                                  : "";
      leaves.emplace(name, ir::sample_literal(cat(n.shapes[0]) + range, seed++));
    }
    SCOPED_TRACE(text);
    expect_as_interpreted(g, leaves, least);
  }
};

TEST_F(ProductsOnDevice, packed_weights_of_every_format) {
  for (const quant::BlockFormat& f : quant::formats()) {
    if (f.is_plain() || f.decode == nullptr) continue;
    const std::string scheme = cat(quant::Scheme::gguf(f));
    const int64_t k = 3 * std::max(f.elements, 64), bytes = k / f.elements * f.bytes;
    for (const int64_t m : {1, 3, 20, 150}) {
      for (const char* activations : {"exact", "q8"})
        compare(cat("graph @f(x: f32[", m, ",", k, "], w: u8[70,", bytes,
                    "]) { y = dequant_matmul(x, w, scheme=\"", scheme, "\", activations=", activations,
                    ") return y }"),
                kPackedError);
    }
    compare(cat("graph @f(w: u8[2,5,", bytes, "]) { y = dequantize_blocks(w, scheme=\"", scheme,
                "\", shape=(2,", k, ",5)) return y }"));
    compare(cat("graph @f(x: f32[4,", k, "], w: u8[3,", 9 * bytes,
                "], e: i32[4]) { y = dequant_grouped_matmul(x, w, e, scheme=\"", scheme,
                "\", activations=q8) return y }"));
  }
}

TEST_F(ProductsOnDevice, packed_weights_of_long_rows_and_narrow_activations) {
  for (const char* type : {"f32", "bf16", "f16"}) {
    for (const int64_t m : {1, 70}) {
      compare(cat("graph @f(x: ", type, "[", m,
                  ",4096], w: u8[300,2304]) { y = dequant_matmul(x, w, scheme=\"gguf_q4k\") return y }"),
              1e-3);
    }
  }
  compare(
      "graph @f(x: f32[1,14336], w: u8[130,11760]) { y = dequant_matmul(x, w, scheme=\"gguf_q6k\", activations=q8) return y }",
      kPackedError);
  compare(
      "graph @f(x: f32[300,2048], w: u8[520,1152]) { y = dequant_matmul(x, w, scheme=\"gguf_q4k\", activations=q8) return y }",
      kPackedError);
}

// Many rows on the matrix units of groups of warps: rows and columns that are no whole number of tiles, one chunk and more than there are places for, results that are written in vectors and one by one.
TEST_F(ProductsOnDevice, packed_weights_of_many_rows) {
  for (const char* scheme : {"gguf_q4k", "gguf_q5k", "gguf_q6k", "gguf_q4_0", "gguf_q8_0"}) {
    const quant::BlockFormat& f = *quant::scheme_from_text(scheme)->format;
    for (const auto& [m, k, n] : {std::tuple(70, 1024, 131), {200, 256, 72}}) {
      compare(cat("graph @f(x: f32[", m, ",", k, "], w: u8[", n, ",", k / f.elements * f.bytes,
                  "]) { y = dequant_matmul(x, w, scheme=\"", scheme, "\", activations=q8) return y }"),
              kPackedError);
    }
  }
}

// Numbers of few bits are often halfway between two codes, where the interpreter, with more digits, may take the other one: they are compared with the same numbers in f32.
TEST_F(ProductsOnDevice, packed_weights_of_many_narrow_rows) {
  for (const char* scheme : {"gguf_q4k", "gguf_q5k", "gguf_q6k", "gguf_q4_0", "gguf_q8_0"}) {
    const quant::BlockFormat& f = *quant::scheme_from_text(scheme)->format;
    for (const auto& [type, m, k, n] : {std::tuple("bf16", 200, 256, 72), {"f16", 129, 1280, 41}}) {
      const std::string how = cat(", w, scheme=\"", scheme, "\", activations=q8)"),
                        x = cat(type, "[", m, ",", k, "]"),
                        w = cat("u8[", n, ",", k / f.elements * f.bytes, "]");
      CompiledGraph both = compile(test::graph(cat("graph @f(x: ", x, ", w: ", w, ") { y = dequant_matmul(x",
                                                   how, " f = cast(x, to=f32) z = dequant_matmul(f", how,
                                                   " v = cast(z, to=", type, ") return y, v=v }")),
                                   {}, {.device = "cuda"});
      const NamedLiterals out =
          both.run({{"x", ir::sample_literal(x, 3)}, {"w", ir::sample_literal(w + " <60", 4)}});
      SCOPED_TRACE(cat(scheme, " ", x));
      test::expect_close(out.at("y"), out.at("v"), 0);
    }
  }
}

// Blocks behind an odd number of bytes: nothing may assume more than the alignment of a byte.
TEST_F(ProductsOnDevice, packed_weights_at_any_address) {
  for (const char* scheme : {"gguf_q4k", "gguf_q6k", "gguf_q8_0"}) {
    const quant::BlockFormat& f = *quant::scheme_from_text(scheme)->format;
    const int64_t bytes = 512 / f.elements * f.bytes;
    for (const int64_t m : {1, 20})
      compare(cat("graph @f(x: f32[", m, ",512], w: u8[", 9 * bytes + 3,
                  "]) { v = narrow(w, axis=0, start=3, len=", 9 * bytes,
                  ") y = dequant_matmul(x, v, scheme=\"", scheme, "\", activations=q8) return y }"),
              kPackedError);
  }
}

TEST_F(ProductsOnDevice, few_rows) {
  for (const char* type : {"f32", "bf16", "f16"}) {
    for (const int64_t m : {1, 2, 4}) {
      for (const auto& [k, n] : {std::pair(576, 200), {64, 70}, {2048, 1030}, {40, 8}}) {
        compare(cat("graph @f(x: ", type, "[", m, ",", k, "], w: ", type, "[", n, ",", k,
                    "]) { t = transpose(w, perm=[1,0]) y = matmul(x, t) return y }"),
                1e-4);
        compare(cat("graph @f(x: ", type, "[", m, ",", k, "], w: ", type, "[", k, ",", n / 8 * 8,
                    "]) { y = matmul(x, w) return y }"),
                1e-4);
      }
    }
  }
}

// Five rows and more on matrix units, with weights that stream: rows that are no whole number of slices, columns that are no whole number of tiles.
TEST_F(ProductsOnDevice, some_rows_of_streamed_weights) {
  for (const char* type : {"bf16", "f16"}) {
    for (const int64_t m : {5, 8, 20, 32}) {
      for (const auto& [k, n] : {std::pair(1040, 1003), {584, 260}, {64, 2000}, {4096, 40}}) {
        compare(cat("graph @f(x: ", type, "[", m, ",", k, "], w: ", type, "[", n, ",", k,
                    "]) { t = transpose(w, perm=[1,0]) y = matmul(x, t) return y }"),
                1e-4);
        compare(cat("graph @f(x: ", type, "[", m, ",", k, "], w: ", type, "[", k, ",", n / 8 * 8,
                    "]) { y = matmul(x, w) return y }"),
                1e-4);
      }
    }
  }
  // The weights are made by the kernel in front.
  compare(
      "graph @f(x: bf16[16,256], v: bf16[512,256]) { w = tanh(v) t = transpose(w, perm=[1,0]) y = matmul(x, t) return y }",
      1e-4);
}

// What happens to the elements of such a product is part of its kernel: a bias of columns, another value of each element, a product that stands before; also where addresses are odd.
TEST_F(ProductsOnDevice, some_rows_of_streamed_weights_with_elements_behind_them) {
  for (const char* type : {"bf16", "f16"}) {
    const double least = type == std::string("bf16") ? 2e-2 : 3e-3;
    for (const auto& [m, k, n] : {std::tuple(16, 384, 1152), {5, 1040, 1000}, {32, 584, 264}}) {
      const std::string x = cat(type, "[1,", m, ",", k, "]"), y = cat(type, "[1,", m, ",", n, "]"),
                        bias = cat(type, "[", n, "]"),
                        scale = cat(" s = full(shape=", type, "[], value=0.05)");
      compare(cat("graph @f(x: ", x, ", w: ", type, "[", k, ",", n, "], b: ", bias, ") {", scale,
                  " v = mul(x, s)\n  p = matmul(v, w) a = add(p, b) y = gelu(a)\n  return y\n}"),
              least);
      compare(
          cat("graph @f(x: ", x, ", w: ", type, "[", n, ",", k, "], r: ", y, ") {", scale,
              " v = mul(x, s)\n  t = transpose(w, perm=[1,0]) p = matmul(v, t) y = add(p, r)\n  return y\n}"),
          least);
      compare(
          cat("graph @f(x: ", x, ", w: ", type, "[", n, ",", k, "], u: ", type, "[", n, ",", k, "]) {", scale,
              " v = mul(x, s)\n  t = transpose(w, perm=[1,0]) g = matmul(v, t) o = transpose(u, perm=[1,0]) p = "
              "matmul(v, o)\n  h = silu(g) y = mul(h, p)\n  return y\n}"),
          2 * least);
      compare(cat("graph @f(x: ", x, ", w: ", type, "[", k * n + 3, "], b: ", bias, ") {", scale,
                  " v = mul(x, s)\n  o = narrow(w, axis=0, start=3, len=", k * n, ") m = reshape(o, shape=(",
                  k, ",", n, ")) p = matmul(v, m) a = add(p, b)\n  y = tanh(a)\n  return y\n}"),
              least);
    }
  }
}

// Two products of one input and the gate behind them are one kernel where their weights are large, in both layouts, with odd columns and at odd addresses; so is a large product with elements behind it.
TEST_F(ProductsOnDevice, gates_of_weights_by_the_copy_engine) {
  const test::Untried untried;
  for (const auto& [m, k, n] : {std::tuple(32, 520, 1040), {5, 1032, 515}, {48, 576, 960}}) {
    const std::string head = cat("graph @f(x: bf16[1,", m, ",", k, "], "),
                      scale = " s = full(shape=bf16[], value=0.05) v = mul(x, s)\n";
    const std::string gate = " h = silu(g) y = mul(h, p)\n  return y\n}";
    compare(
        cat(head, "w: bf16[", n, ",", k, "], u: bf16[", n, ",", k, "]) {", scale,
            " t = transpose(w, perm=[1,0]) g = matmul(v, t) o = transpose(u, perm=[1,0]) p = matmul(v, o)\n",
            gate),
        4e-2);
    if (n % 8 == 0)
      compare(cat(head, "w: bf16[", k, ",", n, "], u: bf16[", k, ",", n, "]) {", scale,
                  " g = matmul(v, w) p = matmul(v, u)\n", gate),
              4e-2);
    compare(
        cat(head, "w: bf16[", n * k + 3, "], u: bf16[", n, ",", k, "]) {", scale,
            " a = narrow(w, axis=0, start=3, len=", k * n, ") c = reshape(a, shape=(", n, ",", k,
            ")) t = transpose(c, perm=[1,0]) g = matmul(v, t) o = transpose(u, perm=[1,0]) p = matmul(v, o)\n",
            gate),
        4e-2);
  }
  compare(
      "graph @f(x: f16[9,1024], w: f16[2104,1024], b: f16[2104]) {\n  t = transpose(w, perm=[1,0]) p = matmul(x, t) y = add(p, b)\n  return y\n}",
      3e-3);
  compare(
      "graph @f(x: bf16[7,1024], w: bf16[2111,1024]) { t = transpose(w, perm=[1,0]) y = matmul(x, t) return y }",
      1e-4);
}

// Weights of more than 1 MB come through rings in shared memory; rows that are no whole number of chunks, columns that are no whole number of warps.
TEST_F(ProductsOnDevice, packed_weights_that_stream) {
  for (const quant::BlockFormat& f : quant::formats()) {
    if (f.is_plain() || f.decode == nullptr) continue;
    const int64_t k = 4352, bytes = k / f.elements * f.bytes, n = (int64_t(3) << 19) / bytes + 3;
    compare(cat("graph @f(x: f32[", f.elements == 32 ? 4 : 1, ",", k, "], w: u8[", n, ",", bytes,
                "]) { y = dequant_matmul(x, w, scheme=\"", cat(quant::Scheme::gguf(f)),
                "\", activations=q8) return y }"),
            kPackedError);
  }
}

// A norm in front of two products and their gate behind them, in one kernel of the streaming kind. Where a norm differs in its last bit, one of 2,048 codes of activations may too.
TEST_F(ProductsOnDevice, streamed_weights_with_rows_and_elements_around_them) {
  for (const int64_t m : {1, 3}) {
    compare(
        cat("graph @f(x: f32[1,", m, ",2048], z: f32[1,", m,
            ",2048], g: f32[2048], a: u8[2100,1152], b: u8[2100,1152]) {\n",
            "  r = add(x, z) n = rms_norm(r, g) u = dequant_matmul(n, a, scheme=\"gguf_q4k\", activations=q8)\n",
            "  v = dequant_matmul(n, b, scheme=\"gguf_q4k\", activations=q8) s = silu(u) y = mul(s, v)\n  return y, r=r\n}"),
        5 * kPackedError);
  }
}

TEST_F(ProductsOnDevice, attention_of_few_queries) {
  for (const char* type : {"f32", "bf16"}) {
    for (const auto& [seq, keys] : {std::pair(1, 40), {1, 900}, {3, 300}, {8, 64}}) {
      for (const char* kind :
           {"", ", mask_kind=causal", ", mask_kind=sliding_window, window=20, attn_logit_softcap=5.0"}) {
        compare(cat("graph @f(q: ", type, "[2,", seq, ",192], k: ", type, "[2,", keys, ",96], v: ", type,
                    "[2,", keys, ",96]) { y:2 = attention(q, k, v, num_heads=6, num_kv_heads=3", kind,
                    ") return y, l=y#1 }"));
        compare(cat("graph @f(q: ", type, "[2,", seq, ",192], k: ", type, "[2,", keys, ",32], v: ", type,
                    "[2,", keys, ",32], m: bool[2,1,", seq, ",", keys,
                    "]) { y:2 = attention(q, k, v, m, has_mask=true, num_heads=6, num_kv_heads=1", kind,
                    ") return y, l=y#1 }"));
      }
    }
  }
}

// One to eight queries of so many texts that keys and values come by the copy engine: heads of 64 and 128 lanes, whole and odd numbers of keys, every mask.
TEST_F(ProductsOnDevice, attention_of_many_texts) {
  const test::Untried untried;
  for (const auto& [batch, seq, lanes, keys] :
       {std::tuple(136, 1, 128, 150), {68, 1, 64, 280}, {70, 3, 64, 77}, {136, 8, 128, 33}}) {
    for (const char* kind : {seq == 1 ? "" : ", mask_kind=causal",
                             ", mask_kind=sliding_window, window=20, attn_logit_softcap=5.0"}) {
      const std::string kv = cat("bf16[", batch, ",", keys, ",", lanes * 2, "]"),
                        q = cat("bf16[", batch, ",", seq, ",", lanes * 6, "]");
      compare(cat("graph @f(q: ", q, ", k: ", kv, ", v: ", kv,
                  ") { y:2 = attention(q, k, v, num_heads=6, num_kv_heads=2", kind, ") return y, l=y#1 }"));
    }
    compare(cat(
        "graph @f(q: f16[", batch, ",", seq, ",", lanes * 8, "], k: f16[", batch, ",", keys, ",", lanes * 2,
        "], v: f16[", batch, ",", keys, ",", lanes * 2, "], m: bool[", batch, ",1,", seq, ",", keys,
        "]) { y:2 = attention(q, k, v, m, has_mask=true, num_heads=8, num_kv_heads=2) return y, l=y#1 }"));
  }
}

// A grid has 65,535 blocks along its second and third axis: more texts are attended to by other kernels.
TEST_F(ProductsOnDevice, attention_of_more_texts_than_a_grid_has) {
  for (const int64_t rows : {1})
    compare(cat(
        "graph @f(q: f32[65537,", rows,
        ",4], k: f32[65537,2,4], v: f32[65537,2,4]) { y:2 = attention(q, k, v, num_heads=1) return y, l=y#1 }"));
}

// So many rows that tiles of 64 are several launches.
TEST_F(ProductsOnDevice, more_rows_than_a_grid_has) {
  compare("graph @f(a: c64[4194305,1], b: c64[1,1]) { y = matmul(a, b) return y }");
}

// Pages in any order, texts of different lengths, positions that see nothing.
TEST_F(ProductsOnDevice, attention_over_pages) {
  for (const char* type : {"f32", "bf16"}) {
    for (const char* store : {"f32", "bf16", "f16"}) {
      for (const auto& [seq, heads, kv, lanes, pages] :
           {std::tuple(1, 4, 2, 64, 5), {1, 8, 1, 32, 70}, {3, 2, 2, 20, 9}, {20, 6, 3, 16, 12}}) {
        const std::string text = cat(
            "graph @f(q: ", type, "[3,", seq, ",", heads * lanes, "], k: ", store, "[1600,", kv * lanes,
            "], p: i32[3,", pages, "], at: i32[3,", seq, "], v: ", store, "[1600,", kv * lanes,
            "]) { y = paged_attention(q, k, p, at, v, num_heads=", heads, ", num_kv_heads=", kv, ", page=16");
        for (const char* how : {")", ", window=30)", ", attn_logit_softcap=4.0)"}) {
          const ir::Graph g = test::graph(cat(text, how, " return y }"));
          NamedLiterals leaves;
          uint64_t seed = 11;
          for (const ir::NodeId id : g.leaves()) {
            const ir::Node& n = g.node(id);
            const std::string name = static_cast<const ir::NamedLeaf*>(n.attrs.get())->name;
            const std::string range = name == "p" ? " <100" : name == "at" ? cat(" <", 16 * pages) : "";
            leaves.emplace(name, ir::sample_literal(cat(n.shapes[0]) + range, seed++));
          }
          leaves.at("at").mutable_bytes()[3] = std::byte(0x80);  // a negative one
          SCOPED_TRACE(cat(g));
          expect_as_interpreted(g, leaves, 1e-4);
        }
      }
    }
  }
}

// The same with stores in blocks of q8_0.
class PagesOfBlocksOnDevice : public ProductsOnDevice {
 protected:
  void compare_all() {
    for (const char* type : {"f32", "bf16"}) {
      for (const auto& [seq, heads, kv, lanes, pages] :
           {std::tuple(1, 4, 2, 64, 5), {1, 8, 1, 32, 40}, {3, 2, 2, 96, 9}, {12, 6, 3, 128, 4}}) {
        const int64_t bytes = kv * lanes / 32 * 34;
        for (const char* how : {")", ", window=30)", ", attn_logit_softcap=4.0)"}) {
          const ir::Graph g = test::graph(
              cat("graph @f(q: ", type, "[3,", seq, ",", heads * lanes, "], k: u8[800,", bytes,
                  "], p: i32[3,", pages, "], at: i32[3,", seq, "], v: u8[800,", bytes,
                  "]) { y = paged_attention(q, k, p, at, v, scheme=\"gguf_q8_0\", num_heads=", heads,
                  ", num_kv_heads=", kv, ", head_dim=", lanes, ", page=16, score_scale=0.01", how,
                  " return y }"));
          NamedLiterals leaves;
          uint64_t seed = 11;
          for (const ir::NodeId id : g.leaves()) {
            const ir::Node& n = g.node(id);
            const std::string name = static_cast<const ir::NamedLeaf*>(n.attrs.get())->name;
            const std::string range = name == "p"    ? " <50"
                                      : name == "at" ? cat(" <", 16 * pages)
                                      : name == "q"  ? ""
                                                     : " bytes";
            leaves.emplace(name, ir::sample_literal(cat(n.shapes[0]) + range, seed++));
            if (range != " bytes") continue;
            // Scales of 2^-10 to 2, of either sign: any two bytes may be no number.
            const auto store = leaves.at(name).mutable_bytes();
            for (size_t i = 1; i < store.size(); i += 34)
              store[i] = std::byte((std::to_integer<int>(store[i]) & 0x83) + 0x14 + i % 7 * 4);
          }
          leaves.at("at").mutable_bytes()[3] = std::byte(0x80);  // a negative one
          SCOPED_TRACE(cat(g));
          expect_as_interpreted(g, leaves, 1e-4);
        }
      }
    }
  }
};

TEST_F(PagesOfBlocksOnDevice, are_read_where_they_lie) { compare_all(); }

// Tiles of keys that a mask hides wholly, in part, and not at all.
TEST_F(ProductsOnDevice, attention_under_a_mask_in_tiles) {
  for (const char* type : {"bf16", "f16", "f32"}) {
    const ir::Graph g = test::graph(
        cat("graph @f(q: ", type, "[2,200,128], k: ", type, "[2,300,64], v: ", type,
            "[2,300,64], m: bool[2,1,200,300]) { y:2 = attention(q, k, v, m, has_mask=true, num_heads=4, "
            "num_kv_heads=2) return y, l=y#1 }"));
    Literals leaves;
    for (const ir::NodeId id : g.leaves())
      leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), leaves.size() + 5));
    const auto mask = leaves[3].mutable_bytes();
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < 200; ++i) {
        for (int64_t j = 0; j < 300; ++j) mask[size_t((b * 200 + i) * 300 + j)] = std::byte(j <= i + 50 * b);
      }
    }
    SCOPED_TRACE(type);
    expect_as_interpreted(g, test::named(g, leaves), 1e-9);
  }
}

TEST_F(ProductsOnDevice, rotary_positions) {
  for (const char* type : {"f32", "bf16"}) {
    for (const char* how : {"", ", interleaved=true", ", n_rot=32"}) {
      compare(cat("graph @f(x: ", type, "[2,70,192], c: ", type, "[80,32], s: ", type,
                  "[80,32]) { y = rope(x, c, s, head_dim=64", how, ") return y }"),
              1e-4);
      compare(cat("graph @f(x: ", type, "[2,70,192], c: ", type, "[80,32], s: ", type,
                  "[80,32], p: i32[2,70]) { y = rope(x, c, s, p, head_dim=64", how, ") return y }"),
              1e-4);
    }
  }
}

}  // namespace
}  // namespace rlx
