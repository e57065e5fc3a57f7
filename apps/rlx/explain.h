// What became of a node on the way to the machine.
#pragma once

#include "rlx/runtime/stages.h"

namespace rlx::cli {

struct Explanation {
  struct Stage {
    std::string stage, statement;  // where it changed, and what it was from there on
  };
  struct Step {
    std::string path;  // as reports number steps: 3.0.1 is the second step of the first body of step 3
    std::string kernel, note;
    std::vector<backend::Declined> declined;
    std::vector<backend::SourceText> sources;  // of its kernels, where the device compiles them
  };
  std::string node;
  std::vector<Stage> stages;
  std::vector<passes::Remark> remarks;  // of it, and of the pieces that it is in
  std::vector<Step> steps;              // that run it

  std::string text() const;
  std::string json() const;
};

/// A name that no stage has is a user error.
Explanation explain(const runtime::Stages&, const std::string& node);

}  // namespace rlx::cli
