#include "rlx/runtime/weights.h"

#include "rlx/base/mapped_pages.h"

namespace rlx {
namespace {

// Whether a step reads this leaf as it is.
bool is_read_in_place(const backend::Plan& plan, int leaf) {
  for (const backend::Plan::Step& s : plan.steps) {
    for (size_t i = 0; i < s.in.size(); ++i) {
      const backend::Plan::Buffer& b = plan.buffers[size_t(s.in[i].buffer)];
      if (b.kind == backend::BufferKind::leaf && b.index == leaf && !(i < s.packed.size() && s.packed[i]))
        return true;
    }
  }
  return false;
}

}  // namespace

std::shared_ptr<const void> FormPool::find_or_make(const std::shared_ptr<const std::byte>& data,
                                                   const std::string& form,
                                                   const std::function<std::shared_ptr<const void>()>& make) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const void>& kept = forms_[{data.get(), form}];
  if (auto there = kept.lock()) return there;
  using Held = std::pair<std::shared_ptr<const std::byte>, std::shared_ptr<const void>>;
  const auto held = std::make_shared<const Held>(data, make());
  const std::shared_ptr<const void> made(held, held->second.get());
  kept = made;
  return made;
}

void WeightStore::share_forms(std::shared_ptr<FormPool> pool) {
  const std::lock_guard lock(mutex_);
  pool_ = std::move(pool);
}

void WeightStore::set(size_t leaf, Literal value) {
  const std::lock_guard lock(mutex_);
  values_[leaf] = std::move(value);
  resident_.erase(leaf);
  std::erase_if(forms_, [&](const auto& entry) { return entry.first.first == leaf; });
  std::erase_if(offered_, [&](const auto& entry) { return entry.first.first == leaf; });
}

const Literal* WeightStore::find(size_t leaf) const {
  const std::lock_guard lock(mutex_);
  const auto it = values_.find(leaf);
  return it == values_.end() ? nullptr : &it->second;
}

std::shared_ptr<const std::byte> WeightStore::resident(size_t leaf) {
  const std::lock_guard lock(mutex_);
  return resident_locked(leaf);
}

std::shared_ptr<const std::byte> WeightStore::resident_locked(size_t leaf) {
  std::shared_ptr<const std::byte>& at = resident_[leaf];
  if (at) return at;
  const Literal& value = values_.at(leaf);
  if (memory_.on_host()) {
    const auto held = std::make_shared<const Literal>(value);
    return at = {held, held->bytes().data()};
  }
  const auto block = std::make_shared<const backend::Block>(memory_, value.bytes().size());
  memory_.upload(block->get(), value.bytes().data(), value.bytes().size());
  return at = {block, block->get()};
}

std::vector<std::shared_ptr<const void>> WeightStore::forms_for(const backend::Executable& program,
                                                                Team team) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const void>> out;
  for (const auto& form : program.packings()) {
    Form& f = forms_[{size_t(form.leaf), form.packing.form}];
    const bool is_new = !f.data;
    if (is_new) f = made(form, team);
    out.push_back(f.data);
    // Steps read the form from now on, and pages of a mapped file need not stay; one that others read as it is stays whole, so that
    // the memory of a run does not depend on which rows they look up.
    if (is_new && memory_.on_host() && !is_read_in_place(program.plan(), int(form.leaf)))
      release_mapped(values_.at(size_t(form.leaf)).bytes());
  }
  return out;
}

WeightStore::Form WeightStore::made(const backend::Executable::WeightForm& form, Team team) {
  const backend::Packing& packing = form.packing;
  const std::shared_ptr<const std::byte> data = resident_locked(size_t(form.leaf));
  const auto offered = offered_.find({size_t(form.leaf), packing.form});
  const bool fits =
      offered != offered_.end() && packing.restore && int64_t(offered->second.bytes.size()) == packing.bytes;
  const auto make = [&] {
    return fits ? packing.restore(team, offered->second.bytes) : packing.make(team, data.get());
  };
  Form f{.data = pool_ ? pool_->find_or_make(data, packing.form, make) : make(), .bytes = packing.bytes};
  if (packing.bytes_of) f.stored = packing.bytes_of(f.data.get());
  if (offered != offered_.end()) offered_.erase(offered);
  return f;
}

void WeightStore::offer(StoredForm form) {
  const std::lock_guard lock(mutex_);
  offered_.insert_or_assign({form.leaf, form.form}, std::move(form));
}

std::vector<StoredForm> WeightStore::stored_forms() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoredForm> out;
  for (const auto& [key, form] : forms_) {
    if (!form.stored.empty()) out.push_back({key.first, key.second, form.stored, form.data});
  }
  for (const auto& [key, form] : offered_) out.push_back(form);
  return out;
}

int64_t WeightStore::packed_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [key, form] : forms_) total += form.bytes;
  return total;
}

}  // namespace rlx
