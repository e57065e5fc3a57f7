// On a GPU: operands and results of a graph that stay there, handed over as DLPack tensors.
#include "rlx/runtime/dlpack.h"

#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using DlpackOnDevice = test::OnDevice;

TEST_F(DlpackOnDevice, results_of_one_graph_are_operands_of_the_next) {
  const ir::Graph g =
      test::graph("graph @f(x: f32[8,16], w: f32[16,16]) { h = matmul(x, w) y = tanh(h) return y }");
  const backend::Memory& memory = cuda::device().memory();
  const Literal x = ir::sample_literal("f32[8,16]", 1), w = ir::sample_literal("f32[16,16]", 2);
  const auto on_gpu = [&](const Literal& value) {
    backend::Block block(memory, value.bytes().size());
    memory.upload(block.get(), value.bytes().data(), value.bytes().size());
    return block;
  };
  const backend::Block x_there = on_gpu(x), w_there = on_gpu(w);
  std::vector<int64_t> x_dims{8, 16}, w_dims{16, 16};
  const DlType f32{2, 32, 1};
  const DlTensor tx{x_there.get(), {2, 0}, 2, f32, x_dims.data(), nullptr, 0};
  const DlTensor tw{w_there.get(), {2, 0}, 2, f32, w_dims.data(), nullptr, 0};
  DeviceCall f(g, {}, {.device = "cuda"});
  Literal want = x;
  std::vector<DlTensorOwner> kept;
  for (int i = 0; i < 4; ++i) {
    const DlTensor& from = i == 0 ? tx : kept.back()->tensor;
    auto out = f.run({{"x", from}, {"w", tw}});
    EXPECT_EQ(out[0]->tensor.device.type, 2);
    kept.push_back(std::move(out[0]));
    want = ir::interpret(g, {{"x", want}, {"w", w}}).begin()->second;
    Literal got = want;
    memory.download(got.mutable_bytes().data(), static_cast<std::byte*>(kept.back()->tensor.data),
                    got.bytes().size());
    test::expect_close(got, want, 1e-5);
  }
}

// Runs in a steady state take no memory of the GPU, and what a program takes is what its plan says. The driver counts the memory of all
// processes: it is run by itself.
using AloneOnGpu = test::OnDevice;
TEST_F(AloneOnGpu, memory_stays_what_the_plan_says) {
  const ir::Graph g = test::graph(
      "graph @f(x: f32[2048,1024], w: f32[1024,4096], v: f32[4096,1024]) { a = matmul(x, w) b = gelu(a) c = matmul(b, v) "
      "y = softmax(c, axis=1) return y }");
  NamedLiterals leaves;
  for (const char* name : {"x", "w", "v"})
    leaves.emplace(name, ir::sample_literal(name[0] == 'x'   ? "f32[2048,1024]"
                                            : name[0] == 'w' ? "f32[1024,4096]"
                                                             : "f32[4096,1024]",
                                            5));
  const auto free_bytes = [] {
    size_t free = 0, total = 0;
    cuda::device().gpu()->use().MemGetInfo(&free, &total);
    return int64_t(free);
  };
  {  // libraries and kernels are loaded
    CompiledGraph warm = compile(g, {}, {.device = "cuda"});
    for (int i = 0; i < 3; ++i) warm.run(leaves);
  }
  const int64_t before = free_bytes();
  CompiledGraph f = compile(g, {}, {.device = "cuda"});
  for (int i = 0; i < 3; ++i) f.run(leaves);
  const int64_t steady = free_bytes();
  for (int i = 0; i < 50; ++i) f.run(leaves);
  EXPECT_GE(free_bytes(), steady);  // other programs may give memory back meanwhile
  int64_t planned = f.plan().arena_bytes;
  for (const auto& [name, value] : leaves) planned += int64_t(value.bytes().size());
  planned += 2048 * 1024 * 4;
  constexpr int64_t kGrain =
      2 << 20;  // the driver's pieces, one for each of five blocks; as much for the recorded graph
  EXPECT_LE(before - steady, planned + 6 * kGrain);
}

}  // namespace
}  // namespace rlx
