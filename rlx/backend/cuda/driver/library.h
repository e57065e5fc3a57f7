// A shared library that is opened by name at run time, never linked.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace rlx::cuda {

class Library {
 public:
  /// Tries the names in order, each on the loader's own path, then in the folders of RLX_CUDA_PATH (separated by
  /// ':'), which stands for those where CUDA is installed by default. Stays open until the process ends.
  explicit Library(std::initializer_list<const char*> names);

  bool found() const { return handle_ != nullptr; }
  /// Why it was not found: what the loader said of the first name.
  const std::string& reason() const { return reason_; }
  /// The function's address, or null.
  void* symbol(const char* name) const;

  template <class F>
  void load(F& function, const char* name, std::vector<std::string>& missing) const {
    function = reinterpret_cast<F>(symbol(name));
    if (!function) missing.push_back(name);
  }

 private:
  void* handle_ = nullptr;
  std::string reason_;
};

}  // namespace rlx::cuda
