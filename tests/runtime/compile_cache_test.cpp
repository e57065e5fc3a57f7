#include "rlx/runtime/compile_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "rlx/ir/sample.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

ir::Graph linear(int64_t rows) {
  return graph(cat("graph @linear(x: f32[", rows, ",3], param w: f32[3,2]) { y = matmul(x, w) return y }"));
}
const Literal kW = Literal::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});

TEST(CompileKey, tells_graphs_options_devices_and_policies_apart) {
  const Hash128 plain = compile_key(linear(2), {});
  EXPECT_EQ(plain, compile_key(linear(2), {}));
  EXPECT_NE(plain, compile_key(linear(3), {}));
  EXPECT_NE(plain, compile_key(linear(2), {.device = "ref"}));
  EXPECT_NE(plain, compile_key(linear(2), {.threads = 1}));
  EXPECT_NE(plain, compile_key(linear(2), {.optimise = false}));
  EXPECT_NE(plain, compile_key(linear(2), {.fuse = false}));
  EXPECT_NE(plain, compile_key(linear(2), {.batch_independent = true}));
  EXPECT_NE(plain, compile_key(linear(2), {.precision = PrecisionPolicy::auto_mixed()}));
  EXPECT_NE(compile_key(linear(2), {.precision = PrecisionPolicy::auto_mixed_bf16()}),
            compile_key(linear(2), {.precision = PrecisionPolicy::auto_mixed()}));
  EXPECT_NE(plain, compile_key(linear(2), {.plans_kept = 1}));
  EXPECT_NE(plain, compile_key(linear(2), {.states = {{"a", "b"}}}));
}

TEST(CompileCache, compiles_a_key_once_and_keeps_the_last_used) {
  CompileCache cache({.entries = 2});
  int built = 0;
  const auto get = [&](uint64_t key) {
    return cache.get_or_compile(key, [&] {
      ++built;
      return compile(linear(int64_t(key)), {{"w", kW}});
    });
  };
  get(1), get(2), get(1);
  EXPECT_EQ(built, 2);
  get(3);  // 2 was used before 1
  EXPECT_TRUE(cache.contains(1));
  EXPECT_FALSE(cache.contains(2));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.hits(), 1u);
  EXPECT_EQ(cache.misses(), 3u);
}

// The least recently used goes first.
TEST(CompileCache, keeps_within_its_bytes_and_always_the_last) {
  CompileCache cache({.bytes = 1 << 20});
  const auto get = [&](uint64_t key) {
    return cache.get_or_compile(key, [&] {
      const ir::Graph g =
          graph("graph @g(x: f32[1,256], param w: f32[256,640]) { y = matmul(x, w) return y }");
      return compile(g, {{"w", ir::sample_literal("f32[256,640]", key)}});  // 640 KiB
    });
  };
  get(1);
  EXPECT_GE(cache.bytes(), 640 << 10);
  get(2);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_TRUE(cache.contains(2));
}

// The first run of a program packs its weights, after it was put into the cache.
TEST(CompileCache, keeps_within_its_bytes_when_runs_pack_weights) {
  CompileCache cache({.bytes = 7 << 19});
  for (uint64_t key = 0; key < 6; ++key) {
    const auto get = [&] {
      return cache.get_or_compile(key, [&] {
        const ir::Graph g =
            graph("graph @g(x: f32[8,256], param w: f32[256,640]) { y = matmul(x, w) return y }");
        return compile(g, {{"w", ir::sample_literal("f32[256,640]", key)}});  // 640 KiB
      });
    };
    CompiledGraph f = get();
    f.run({{"x", ir::sample_literal("f32[8,256]", 1)}});
    EXPECT_GE(f.packed_weight_bytes(), 640 << 10);
    get();
    EXPECT_LE(cache.bytes(), 7 << 19) << key;
    EXPECT_TRUE(cache.contains(key));
  }
  EXPECT_EQ(cache.size(), 2u);
}

TEST(CompileCache, by_content_shares_weights_and_refuses_others) {
  CompileCache cache;
  CompiledGraph a = cache.compile(linear(2), {{"w", kW}});
  CompiledGraph b = cache.compile(linear(2), {{"w", Literal::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(&a.core(), &b.core());
  EXPECT_NE(error_of([&] {
              cache.compile(linear(2), {{"w", Literal::full(parse_shape("f32[3,2]"), 1)}});
            }).find("was compiled with other weights"),
            std::string::npos);
  EXPECT_EQ(&cache.compile(linear(2), {}).core(), &a.core());
}

TEST(CompileCache, honours_the_policy_of_the_options) {
  CompileCache cache;
  const CompileOptions halves{.precision = PrecisionPolicy::auto_mixed_bf16()};
  bool found = false;
  const CompiledGraph f = cache.compile(linear(2), {{"w", kW}}, halves);
  for (const ir::Node* n : f.graph().nodes()) {
    for (const Shape& s : n->shapes) found = found || s.dtype() == DType::bf16;
  }
  EXPECT_TRUE(found);
}

TEST(CompileCache, compiles_once_for_many_threads) {
  CompileCache cache;
  std::atomic<int> built = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      CompiledGraph f = cache.get_or_compile(7, [&] {
        ++built;
        return compile(linear(1), {{"w", kW}});
      });
      const float x[] = {1, 0, 0};
      EXPECT_EQ(f.run({{"x", view(x, {1, 3})}})[0].as<float>()[1], 2);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(built, 1);
}

TEST(CompileCache, compiles_other_keys_inside_a_build_and_refuses_the_same) {
  CompileCache cache;
  const auto plain = [] { return compile(linear(1), {{"w", kW}}); };
  cache.get_or_compile(5, [&] {
    cache.get_or_compile(6, plain);
    return plain();
  });
  EXPECT_TRUE(cache.contains(5) && cache.contains(6));
  EXPECT_EQ(error_of([&] {
              cache.get_or_compile(
                  7, [&] { return cache.get_or_compile(8, [&] { return cache.get_or_compile(7, plain); }); });
            }),
            "compile cache: the build of a key asks for the same key; build that under another");
  EXPECT_FALSE(cache.contains(7) || cache.contains(8));
  cache.get_or_compile(7, plain);
  EXPECT_TRUE(cache.contains(7));
}

// The second build waits for the first, which could not go on if its key were compiled under a lock for all.
TEST(CompileCache, compiles_keys_at_the_same_time) {
  CompileCache cache;
  std::promise<void> begun, done;
  const auto plain = [] { return compile(linear(1), {{"w", kW}}); };
  std::thread slow([&] {
    cache.get_or_compile(1, [&] {
      begun.set_value();
      done.get_future().wait();
      return plain();
    });
  });
  begun.get_future().wait();
  cache.get_or_compile(2, plain);
  EXPECT_EQ(cache.size(), 1u);
  done.set_value();
  slow.join();
  EXPECT_EQ(cache.size(), 2u);
}

// Each waits for what the other builds: one of them is told, and the other then builds both.
TEST(CompileCache, refuses_builds_that_wait_for_each_other) {
  CompileCache cache;
  std::promise<void> begun[2];
  std::shared_future<void> other[2] = {begun[1].get_future().share(), begun[0].get_future().share()};
  const auto plain = [] { return compile(linear(1), {{"w", kW}}); };
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const std::string error = error_of([&] {
        cache.get_or_compile(t, [&] {
          begun[t].set_value();
          other[t].wait();
          cache.get_or_compile(1 - t, plain);
          return plain();
        });
      });
      refused += error != "no error";
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(PowerOfTwoLadder, doubles_up_to_the_largest) {
  EXPECT_EQ(power_of_two_ladder(8, 256),
            (std::vector<Bucket>{{1, 8}, {9, 16}, {17, 32}, {33, 64}, {65, 128}, {129, 256}}));
  EXPECT_EQ(power_of_two_ladder(5, 9), (std::vector<Bucket>{{1, 8}, {9, 16}}));
  EXPECT_EQ(power_of_two_ladder(1, 1), (std::vector<Bucket>{{1, 1}}));
  EXPECT_NE(error_of([] { power_of_two_ladder(0, 4); }).find("1 <= least <= most"), std::string::npos);
  EXPECT_NE(error_of([] { power_of_two_ladder(8, 4); }).find("1 <= least <= most"), std::string::npos);
}

TEST(Rows, are_padded_with_zeros_and_cut_back) {
  const Literal x = Literal::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(pad_rows(x, 3), Literal::of<float>({3, 2}, {1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(slice_rows(pad_rows(x, 5), 2), x);
  EXPECT_EQ(error_of([&] { pad_rows(x, 1); }), "pad_rows: f32[2,2] has more than 1 rows");
  EXPECT_EQ(error_of([&] { slice_rows(x, 3); }), "slice_rows: 3 rows of f32[2,2]");
  EXPECT_EQ(error_of([&] { pad_rows(Literal::scalar(DType::f32, 1), 2); }), "pad_rows: f32[] has no rows");
}

TEST(BucketedCompileCache, compiles_lazily_at_the_upper_bound) {
  std::vector<int64_t> built;
  auto cache = BucketedCompileCache::ladder(2, 8, [&](int64_t rows) {
    built.push_back(rows);
    return compile(linear(rows), {{"w", kW}});
  });
  EXPECT_EQ(cache.compiled(), 0u);
  EXPECT_EQ(cache.get(9), nullptr);  // and nothing was built
  EXPECT_EQ(cache.get(0), nullptr);
  EXPECT_TRUE(built.empty());
  cache.get(3);
  cache.get(4);
  EXPECT_EQ(built, std::vector<int64_t>{4});
  const NamedLiterals y =
      cache.run_padded(3, {{"x", Literal::of<float>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})}});
  EXPECT_EQ(y.at("y"), Literal::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const NamedLiterals whole =
      cache.run_padded(3, {{"x", Literal::of<float>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})}}, {"x"}, {"y"});
  EXPECT_EQ(whole.at("y").shape(), parse_shape("f32[4,2]"));
  EXPECT_EQ(error_of([&] { cache.run_padded(9, {}); }),
            "run_padded: 9 rows lie in no bucket; they go from 1 to 8");
  EXPECT_EQ(error_of([&] { cache.run_padded(3, {}, {"z"}); }), "run_padded: there is no input 'z' to pad");
  EXPECT_EQ(error_of([&] { cache.run_padded(3, {}, {"z"}, {"y", "q"}); }),
            "run_padded: there is no input 'z' to pad; there is no output 'q' to leave whole; there are y");
  EXPECT_EQ(error_of([&] { cache.run_padded(3, {{"x", Literal::zeros(parse_shape("f32[2,3]"))}}, {"x"}); }),
            "run_padded: input 'x' is f32[2,3]; its first axis must have 3 rows");
}

TEST(BucketedCompileCache, refuses_buckets_that_are_none) {
  const auto build = [](int64_t rows) { return compile(linear(rows), {{"w", kW}}); };
  EXPECT_EQ(error_of([&] { BucketedCompileCache({}, build); }), "buckets: there are none");
  EXPECT_EQ(error_of([&] { BucketedCompileCache({{3, 2}}, build); }), "buckets: from 3 to 2 holds no size");
  EXPECT_EQ(error_of([&] { BucketedCompileCache({{4, 8}, {1, 4}}, build); }),
            "buckets: 1 to 4 and 4 to 8 overlap");
}

TEST(DynamicDimCompileCache, optimises_once_and_plans_each_binding) {
  const ir::Graph g = graph("graph @g(x: f32[n,3], param w: f32[3,2]) { y = matmul(x, w) return y }");
  DynamicDimCompileCache cache(g, {{"w", kW}}, {}, 2);
  CompiledGraph two = cache.get({{"n", 2}});
  EXPECT_EQ(two.run({{"x", Literal::of<float>({2, 3}, {1, 0, 0, 0, 1, 0})}}).at("y"),
            Literal::of<float>({2, 2}, {1, 2, 3, 4}));
  CompiledGraph five = cache.get({{"n", 5}});
  EXPECT_EQ(&two.core(), &five.core());
  EXPECT_TRUE(cache.contains({{"n", 2}}));
  cache.get({{"n", 7}});
  EXPECT_FALSE(cache.contains({{"n", 2}}));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(error_of([&] { cache.get({{"m", 2}}); }), "dynamic dims: graph 'g' has no symbol 'm'; it has n");
  EXPECT_EQ(error_of([&] { cache.get({}); }), "dynamic dims: 'x' is still f32[n,3]; bind n");
}

}  // namespace
}  // namespace rlx
