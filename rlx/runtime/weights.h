// The weights of a compiled graph and the forms its steps read them in.
#pragma once

#include <map>
#include <mutex>

#include "rlx/backend/executable.h"

namespace rlx {

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
  /// Bytes of the forms made so far.
  int64_t packed_bytes() const;

 private:
  struct Form {
    std::shared_ptr<const void> data;
    int64_t bytes = 0;
  };
  std::shared_ptr<const std::byte> resident_locked(size_t leaf);

  const backend::Memory& memory_;
  mutable std::mutex mutex_;
  std::map<size_t, Literal> values_;
  std::map<size_t, std::shared_ptr<const std::byte>> resident_;
  std::map<std::pair<size_t, std::string>, Form> forms_;
};

}  // namespace rlx
