// A launch: blocks one after the other, their threads as fibres.
#pragma once

#include <string>

#include "device/machine.h"

namespace emulated {

struct Launch {
  std::string name;
  Kernel kernel;
  Index grid, block;
  unsigned shared_bytes;
  void** parameters;
};

/// Runs it to its end. Returns what went wrong, with the block and the thread; empty where nothing did.
std::string run(const Launch&);

}  // namespace emulated
