// Whole programs that other systems run too. A workload is made once and then called; bench/peers/compare.py calls ours and
// the peer's in turn, each in a process of its own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rlx::bench {

struct Workload {
  std::string name;  // as in bench/peers/peer.py
  /// Compiles and prepares inputs; what it returns is the work that is timed. `file`: the model, where it comes as one.
  std::function<std::function<void()>(const std::string& file)> make;
  bool from_file = false;
};

std::vector<Workload> encoder_workloads();     // MiniLM-L6, forward and one AdamW step
std::vector<Workload> recurrence_workloads();  // LSTM, tanh cell, pendulum: loops by scan
std::vector<Workload> language_workloads();    // the training step of ./dev run
std::vector<Workload> image_workloads();       // ONNX models of images

/// What takes place before anything runs, and what a run of nearly nothing costs. No peer; one line each.
void report_overheads(int argc, char** argv);

}  // namespace rlx::bench
