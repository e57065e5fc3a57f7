// The weights of a compiled graph and the forms its steps read them in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "rlx/backend/executable.h"

namespace rlx {

/// Forms by the memory they were made of, for programs that read the same weights. A form lives as long as somebody holds it, and keeps
/// that memory alive.
class FormPool {
 public:
  /// The form of what lies at `data`, or what `make` returns.
  std::shared_ptr<const void> find_or_make(const std::shared_ptr<const std::byte>& data,
                                           const std::string& form,
                                           const std::function<std::shared_ptr<const void>()>& make);

 private:
  std::mutex mutex_;
  std::map<std::pair<const std::byte*, std::string>, std::weak_ptr<const void>> forms_;
};

/// A form of a weight as bytes, and what keeps them.
struct StoredForm {
  size_t leaf = 0;
  std::string form;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Shared by the clones of a compiled graph and by its plans for different sizes. Each form of a weight is made once.
class WeightStore {
 public:
  explicit WeightStore(const backend::Memory& memory) : memory_(memory) {}
  void set(size_t leaf, Literal value);
  const Literal* find(size_t leaf) const;
  /// Where steps read the weight, which must be set: its own bytes on the host, else a copy made once.
  std::shared_ptr<const std::byte> resident(size_t leaf);

  /// The forms an executable asks for, in its order; makes the missing ones. The weights must be set.
  std::vector<std::shared_ptr<const void>> forms_for(const backend::Executable&, Team);
  /// Forms of weights over the same memory are then made once for all stores with this pool.
  void share_forms(std::shared_ptr<FormPool> pool);
  /// Bytes of a form that was made elsewhere: taken, not made, when an executable asks for it and can read them.
  void offer(StoredForm);
  /// Forms made or offered so far that can be kept as bytes.
  std::vector<StoredForm> stored_forms() const;
  /// Bytes of the forms made so far.
  int64_t packed_bytes() const;

 private:
  struct Form {
    std::shared_ptr<const void> data;
    int64_t bytes = 0;
    std::span<const std::byte> stored;  // its bytes, if it can be kept as such
  };
  Form made(const backend::Executable::WeightForm&, Team);
  std::shared_ptr<const std::byte> resident_locked(size_t leaf);

  const backend::Memory& memory_;
  std::shared_ptr<FormPool> pool_;
  mutable std::mutex mutex_;
  std::map<size_t, Literal> values_;
  std::map<size_t, std::shared_ptr<const std::byte>> resident_;
  std::map<std::pair<size_t, std::string>, Form> forms_;
  std::map<std::pair<size_t, std::string>, StoredForm> offered_;
};

}  // namespace rlx
