#include "rlx/runtime/named_weights.h"

#include <algorithm>

#include "rlx/io/literal.h"
#include "rlx/io/model_file.h"
#include "rlx/ir/leaves.h"

namespace rlx {
namespace {

constexpr size_t kMostListed = 8;  // names that an error spells out

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> some(names.begin(), names.begin() + int64_t(std::min(names.size(), kMostListed)));
  return names.size() > kMostListed ? cat(join(some), " and ", names.size() - kMostListed, " more")
                                    : join(some);
}

bool is_real(DType t) { return is_float(t) && !is_storage_only(t); }

}  // namespace

Weights Weights::open(const std::string& path) { return Weights(io::ModelFile::open(path).tensors, path); }

Weights::Weights(std::vector<io::TensorView> tensors, std::string source)
    : source_(std::move(source)), tensors_(std::move(tensors)) {
  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

const io::TensorView* Weights::find(const std::string& name) const {
  const auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const io::TensorView& t, const std::string& n) { return t.name < n; });
  return it == tensors_.end() || it->name != name ? nullptr : &*it;
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> out;
  for (const io::TensorView& t : tensors_) out.push_back(t.name);
  return out;
}

Literal Weights::value(const std::string& name) const {
  if (const io::TensorView* t = find(name)) return io::to_literal(io::unpacked(*t));
  throw io::missing_tensor(source_, name, tensors_);
}

Weights::Bound Weights::bind(const ir::Graph& graph,
                             const std::function<std::string(const std::string&)>& rename) const {
  Bound out;
  std::vector<std::string> missing, misshapen, used;
  for (const ir::NodeId id : graph.params()) {
    const std::string& param = ir::leaf_name(graph.node(id));
    const std::string name = rename ? rename(param) : param;
    const Shape& wanted = graph.node(id).shapes[0];
    if (!find(name)) {
      missing.push_back(name == param ? cat("'", name, "'") : cat("'", name, "' for '", param, "'"));
      continue;
    }
    used.push_back(name);
    Literal value = this->value(name);
    if (value.shape() != wanted && value.shape().dims() == wanted.dims() && is_real(value.dtype()) &&
        is_real(wanted.dtype()))
      value = value.cast(wanted.dtype());
    if (value.shape() != wanted) {
      misshapen.push_back(cat("'", name, "' is ", value.shape(), ", the param is ", wanted));
      continue;
    }
    out.values.emplace(param, std::move(value));
  }
  std::sort(used.begin(), used.end());
  for (const io::TensorView& t : tensors_) {
    if (!std::binary_search(used.begin(), used.end(), t.name)) out.unused.push_back(t.name);
  }
  if (missing.empty() && misshapen.empty()) return out;
  std::vector<std::string> problems;
  if (!missing.empty()) problems.push_back(cat("there is no ", listed(missing)));
  if (!misshapen.empty()) problems.push_back(listed(misshapen));
  if (!out.unused.empty()) problems.push_back(cat("not used: ", listed(out.unused)));
  throw invalid(source_, ": ", join(problems, "; "));
}

}  // namespace rlx
