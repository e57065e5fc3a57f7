// Steps and their places become a program that runs: what plans made here (graph_assembly.h) and plans made elsewhere (built.h) have in
// common.
#pragma once

#include "rlx/backend/executable.h"

namespace rlx::backend {

class Assembly {
 protected:
  using Place = Plan::Place;
  struct Work {
    std::unique_ptr<Step> step;
    std::vector<int> forms;
  };

  Assembly(const Backend&, int threads);

  int new_buffer(BufferKind, std::string name, int64_t bytes, int index = 0);
  /// Its number. The contents go to the memory of the backend where that is another.
  int new_constant(std::string name, Literal value);
  /// What a kernel is told of an operand.
  Arg arg(const Place&) const;
  /// The step behind those there are, with its note, its bodies and the forms that it reads operands in.
  void append(Plan::Step, std::unique_ptr<Step>);
  /// Once all has a place.
  void bind_addresses(size_t leaves, size_t outputs);

  const Backend& backend_;
  const int threads_;
  std::vector<bool> fixed_leaves_;  // weights; none behind the end
  std::shared_ptr<Executable> out_;
  Plan& plan_;
  std::vector<Work> work_;

 private:
  std::vector<int> keep_packings(Plan::Step&, const Step&);
};

}  // namespace rlx::backend
