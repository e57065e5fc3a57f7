#include "rlx/runtime/weights.h"

namespace rlx {

void WeightStore::set(size_t leaf, Literal value) {
  const std::lock_guard lock(mutex_);
  values_[leaf] = std::move(value);
  std::erase_if(forms_, [&](const auto& entry) { return entry.first.first == leaf; });
}

const Literal* WeightStore::find(size_t leaf) const {
  const std::lock_guard lock(mutex_);
  const auto it = values_.find(leaf);
  return it == values_.end() ? nullptr : &it->second;
}

std::vector<std::shared_ptr<const void>> WeightStore::forms_for(const backend::Executable& program,
                                                                Team team) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const void>> out;
  for (const auto& form : program.packings()) {
    Form& f = forms_[{size_t(form.leaf), form.packing.form}];
    if (!f.data) {
      f.data = form.packing.make(team, values_.at(size_t(form.leaf)).bytes().data());
      f.bytes = form.packing.bytes;
    }
    out.push_back(f.data);
  }
  return out;
}

int64_t WeightStore::packed_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [key, form] : forms_) total += form.bytes;
  return total;
}

}  // namespace rlx
