// Figures of the graph itself: what building, verifying, printing, parsing and editing cost, from ten
// thousand to a million nodes. Growth must be linear.
#include <malloc.h>

#include <chrono>

#include "bench/bench.h"
#include "rlx/ir/text.h"
#include "rlx/lang/graph.h"
#include "rlx/ops/all.h"

namespace rlx::bench {
namespace {

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double heap_mb() {
  const struct mallinfo2 info = mallinfo2();
  return double(info.uordblks + info.hblkhd) / 1e6;
}

// A chain with side branches: every third node adds the value of six nodes ago.
Graph chain(int64_t nodes) {
  Graph g("chain");
  std::vector<Value> values = {g.input("x", Shape(DType::f32, {8, 16}))};
  while (int64_t(values.size()) < nodes) {
    const Value last = values.back();
    const size_t n = values.size();
    values.push_back(n % 3 == 0 && n > 6 ? g.add(last, values[n - 6])
                     : n % 3 == 1        ? g.tanh(last)
                                         : g.neg(last));
  }
  g.set_outputs({values.back()});
  return g;
}

// One value with a user per node: half of the users turn to another value, the other half are erased. Users
// leave from the front of the use list, which is the worst place for a list that has to be searched.
double fan_out(int64_t nodes) {
  Graph g("fan_out");
  const Value x = g.input("x", Shape(DType::f32, {8})), y = g.input("y", Shape(DType::f32, {8}));
  std::vector<NodeId> users;
  for (int64_t i = 0; i < nodes; ++i) users.push_back(g.tanh(x).node);
  const double seconds = seconds_of([&] {
    for (size_t i = 0; i < users.size(); ++i) {
      if (i % 2 == 0) {
        g.set_inputs(users[i], {y});
      } else {
        g.erase(users[i]);
      }
    }
  });
  return 1e9 * seconds / double(nodes);
}

void run(int argc, char** argv, int64_t nodes, const std::string& size) {
  const auto tell = [&](const std::string& what, double value, const std::string& unit,
                        const std::string& goal) {
    report({.name = "graph_" + what + "_" + size,
            .value = value,
            .unit = unit,
            .goal = nodes == 100000 ? goal : ""});
  };
  if (!wanted(argc, argv, "graph_" + size)) return;
  const double before = heap_mb();
  Graph g;
  tell("build", seconds_of([&] { g = chain(nodes); }), "s", "< 1 s");
  tell("memory", heap_mb() - before, "MB", "< 100 MB");
  tell("verify", seconds_of([&] { g.check(); }), "s", "< 1 s");
  std::string text;
  Graph back;
  tell("print_parse", seconds_of([&] {
         text = g.to_text();
         back = Graph::parse(text);
       }),
       "s", "< 2 s");
  int64_t uses = 0;
  const double users = seconds_of([&] {
    for (const ir::Node* n : g.nodes()) uses += int64_t(g.users(n->id).size());
  });
  tell("users", 1e9 * users / double(uses), "ns/use", "constant");
  // Every node's users move to a copy of it.
  const std::vector<NodeId> ids = back.topo_order();
  int64_t moved = 0;
  const double replace = seconds_of([&] {
    for (const NodeId id : ids) {
      const ir::Node& n = back.node(id);
      if (n.op->traits.leaf) continue;
      const Value copy = back.value(back.append(*n.op, n.attrs, n.inputs));
      moved += int64_t(n.uses.size());
      back.replace(back.value(id), copy);
    }
  });
  tell("replace", 1e9 * replace / double(moved), "ns/use", "constant");
  tell("fan_out", fan_out(nodes), "ns/use", "constant");
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  rlx::bench::run(argc, argv, 10'000, "10k");
  rlx::bench::run(argc, argv, 100'000, "100k");
  rlx::bench::run(argc, argv, 1'000'000, "1m");
}
