#include "rlx/llm/adapter_experts.h"

#include <algorithm>
#include <charconv>

#include "rlx/base/error.h"

namespace rlx::llm {
namespace {

constexpr std::string_view kExperts = ".experts.", kNumber = "{e}", kGateUp = "gate_up_proj",
                           kDown = "down_proj";
constexpr int64_t kMostExperts = 1 << 16;

struct ExpertName {
  std::string pattern;
  int64_t expert = -1;  // none
};

ExpertName expert_name(std::string_view name) {
  const size_t at = name.find(kExperts);
  if (at == name.npos) return {};
  const size_t begin = at + kExperts.size(), end = std::min(name.find('.', begin), name.size());
  int64_t number = -1;
  const auto [stop, error] = std::from_chars(name.data() + begin, name.data() + end, number);
  if (error != std::errc() || stop != name.data() + end || number < 0) return {};
  return {cat(name.substr(0, begin), kNumber, name.substr(end)), number};
}

Literal filled(const Dims& dims, std::vector<float> values) { return Literal::of<float>(dims, values); }

Adapter::Part joined(const std::string& pattern, const std::map<int64_t, Adapter::Part>& each,
                     std::string_view path) {
  const Adapter::Part& first = each.begin()->second;
  const int64_t experts = each.rbegin()->first + 1, in = first.in(), out = first.out();
  if (experts > kMostExperts)
    throw invalid("adapter '", path, "': '", pattern, "' has an expert ", experts - 1, "; at most ",
                  kMostExperts, " expected");
  int64_t rank = 0;
  for (const auto& [e, p] : each) {
    if (p.in() != in || p.out() != out)
      throw invalid("adapter '", path, "': expert ", e, " of '", pattern, "' is for [", p.out(), ", ", p.in(),
                    "]; expert ", each.begin()->first, " for [", out, ", ", in, "]");
    rank = std::max(rank, p.rank());
  }
  std::vector<float> a(size_t(experts * rank * in), 0.0f), b(size_t(experts * out * rank), 0.0f);
  for (const auto& [e, p] : each) {
    const auto from_a = p.a.data<float>(), from_b = p.b.data<float>();
    std::copy(from_a.begin(), from_a.end(), a.begin() + e * rank * in);
    // One scale for all: what an expert's own differs by goes into B.
    const double own = p.scale / first.scale;
    for (int64_t o = 0; o < out; ++o)
      for (int64_t r = 0; r < p.rank(); ++r) {
        const float v = from_b[size_t(o * p.rank() + r)];
        b[size_t((e * out + o) * rank + r)] = own == 1 ? v : float(double(v) * own);
      }
  }
  return {filled({experts, rank, in}, std::move(a)), filled({experts, out, rank}, std::move(b)), first.scale};
}

}  // namespace

void join_experts(Adapter::Parts& parts, std::string_view path) {
  std::map<std::string, std::map<int64_t, Adapter::Part>> groups;
  for (auto it = parts.begin(); it != parts.end();) {
    const ExpertName name = expert_name(it->first);
    if (name.expert < 0) {
      ++it;
      continue;
    }
    groups[name.pattern].emplace(name.expert, std::move(it->second));
    it = parts.erase(it);
  }
  for (const auto& [pattern, each] : groups) parts[pattern] = joined(pattern, each, path);
}

bool is_joined_module(std::string_view module) {
  return module.ends_with(".experts") || module.ends_with(".experts.base_layer");
}

std::string joined_parameter(std::string_view module, const std::vector<std::string>& targets,
                             std::string_view path) {
  const auto aims_at = [&](std::string_view parameter) {
    return std::any_of(targets.begin(), targets.end(), [&](const std::string& t) {
      return t == parameter || (t.ends_with(parameter) && t[t.size() - parameter.size() - 1] == '.');
    });
  };
  const bool up = aims_at(kGateUp), down = aims_at(kDown);
  const bool inner = module.ends_with(".base_layer");
  if (inner ? !(up && down) : !(up || down))
    throw invalid("adapter '", path, "': which weights of its experts '", module,
                  "' is for is not told; target_parameters with gate_up_proj or down_proj expected");
  return cat(inner ? module.substr(0, module.rfind('.')) : module, ".", !inner && down ? kDown : kGateUp);
}

Adapter::Parts parts_of_joined(std::string_view parameter, const Literal& a, const Literal& b, int64_t rank,
                               double scale, std::string_view path) {
  const bool is_down = parameter.ends_with(kDown);
  const int64_t rows = a.shape().dim(0).value(), in = a.shape().dim(1).value(),
                out = b.shape().dim(0).value();
  if (rank < 1 || rows % rank != 0 || b.shape().dim(1).value() != rows || (!is_down && out % 2 != 0))
    throw invalid("adapter '", path, "': '", parameter, "' has halves of [", rows, ", ", in, "] and [", out,
                  ", ", b.shape().dim(1).value(), "], which are none of experts of rank ", rank);
  const int64_t experts = rows / rank;
  const auto values = b.data<float>();
  // B is stored by (out, rank, expert).
  const auto part = [&](int64_t first, int64_t count) {
    std::vector<float> v;
    v.reserve(size_t(experts * count * rank));
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t o = first; o < first + count; ++o)
        for (int64_t r = 0; r < rank; ++r) v.push_back(values[size_t((o * rank + r) * experts + e)]);
    const auto from_a = a.data<float>();
    return Adapter::Part{filled({experts, rank, in}, {from_a.begin(), from_a.end()}),
                         filled({experts, count, rank}, std::move(v)), scale};
  };
  const std::string front = cat(parameter.substr(0, parameter.rfind('.')), ".", kNumber, ".");
  if (is_down) return {{front + "down_proj.weight", part(0, out)}};
  return {{front + "gate_proj.weight", part(0, out / 2)}, {front + "up_proj.weight", part(out / 2, out / 2)}};
}

Adapter::Part part_of_expert(const Adapter::Part& p, int64_t expert) {
  const auto slice = [&](const Literal& all, const Dims& dims) {
    const auto n = size_t(dims[0].value() * dims[1].value());
    const auto from = all.data<float>().subspan(size_t(expert) * n, n);
    return filled(dims, {from.begin(), from.end()});
  };
  return {slice(p.a, {p.rank(), p.in()}), slice(p.b, {p.out(), p.rank()}), p.scale};
}

}  // namespace rlx::llm
