#include "rlx/backend/cuda/nodes/product_ways.h"

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/driver/fastest.h"

namespace rlx::cuda {
namespace {

Arg row_major(const Shape& s) { return {.shape = s, .layout = backend::Layout::row_major(s.dims())}; }

/// Runs of a way in one recording: as steps of a program have it, where no launch waits for the host.
constexpr int kInARow = 8;

/// Memory for one run of any way.
struct Places {
  std::vector<backend::Block> blocks;
  std::vector<std::byte*> addresses;  // operands, results, workspace
  OwnWays own;
};

}  // namespace

int64_t bytes_of(const Arg& a) {
  int64_t last = 0;
  for (int i = 0; i < a.shape.rank(); ++i)
    last += (a.shape.dim(i).value() - 1) * std::max<int64_t>(a.layout.strides[size_t(i)], 0);
  return (last + 1) * int64_t(dtype_size(a.dtype()));
}

PlainWay::PlainWay(const Device& device, const ProductReading& g) {
  const Request& whole = g.request();
  const auto step_of = [&](const ir::Node& n, const std::vector<Arg>& in) {
    std::vector<Arg> results;
    for (const Shape& s : n.shapes) results.push_back(row_major(s));
    const Request r{.node = n, .in = in, .out = results, .threads = whole.threads, .builder = whole.builder};
    return device.choose(r, true).kernel->prepare(r);
  };
  size_t scratch = 0;
  for (const ir::Node* p : g.products) {
    std::vector<Arg> in;
    operands_.emplace_back();
    for (const ir::Value v : p->inputs) in.push_back(g.arg(v)), operands_.back().push_back(g.operand(v));
    products_.push_back(step_of(*p, in));
    scratch = std::max(scratch, products_.back()->workspace);
  }
  std::vector<Arg> in;
  for (const ir::Value v : g.elements->inputs) {
    const int product = g.product_number(v);
    inputs_.push_back(product >= 0 ? -1 - product : g.operand(v));
    in.push_back(product >= 0 ? row_major(g.products.front()->shapes[0]) : g.arg(v));
  }
  for (uint32_t i = 0; i < g.elements->shapes.size(); ++i)
    results_.push_back(g.result(g.elements->result(i)));
  region_ = step_of(*g.elements, in);
  product_bytes_ = backend::aligned_size(size_t(g.products.front()->shapes[0].size_bytes()));
  workspace_ = products_.size() * product_bytes_ + std::max(scratch, region_->workspace);
}

void PlainWay::run(const Launch& l, std::byte* workspace) const {
  std::byte* const scratch = workspace + products_.size() * product_bytes_;
  const auto run_step = [&](const Step& step, std::vector<std::byte*> addresses, size_t results) {
    Launch one = l;
    one.in = addresses.data(), one.out = addresses.data() + addresses.size() - results,
    one.workspace = scratch;
    step.run(one);
  };
  const auto product = [&](size_t i) { return workspace + i * product_bytes_; };
  for (size_t i = 0; i < products_.size(); ++i) {
    std::vector<std::byte*> addresses;
    for (const int o : operands_[i]) addresses.push_back(l.in[o]);
    addresses.push_back(product(i));
    run_step(*products_[i], std::move(addresses), 1);
  }
  std::vector<std::byte*> addresses;
  for (const int m : inputs_) addresses.push_back(m >= 0 ? l.in[m] : product(size_t(-1 - m)));
  for (const int r : results_) addresses.push_back(l.out[r]);
  run_step(*region_, std::move(addresses), results_.size());
}

int fastest_way(const Device& device, const Request& r, const PlainWay& plain, const std::string& key,
                size_t own_ways, const std::function<OwnWays()>& make) {
  Places p;
  const auto ask = [&] {
    if (!p.own) p.own = make();
  };
  const auto fill = [&] {
    const auto add = [&](int64_t bytes) {
      p.blocks.emplace_back(device.memory(), size_t(bytes));
      p.addresses.push_back(p.blocks.back().get());
    };
    ask();
    for (const Arg& a : r.in) add(bytes_of(a));
    for (const Arg& a : r.out) add(a.shape.size_bytes());
    add(int64_t(plain.workspace()));
  };
  try {
    const std::string runs = cat(kInARow, " in a row\n", key);
    const auto queue = [&](Stream_* stream, int way) {
      if (p.blocks.empty()) fill();
      Stream s{*device.gpu(), stream};
      const Launch l{.team = default_pool(),
                     .in = p.addresses.data(),
                     .out = p.addresses.data() + r.in.size(),
                     .stream = &s};
      for (int i = 0; i < kInARow; ++i) {
        if (way == 0) {
          plain.run(l, p.addresses.back());
        } else {
          p.own(size_t(way) - 1, stream, l);
        }
      }
    };
    return fastest(*device.gpu(), runs, int(own_ways) + 1, Trials::recorded, ask, queue);
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace rlx::cuda
