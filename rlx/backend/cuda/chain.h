// Steps that are recorded one behind the other as one kernel whose blocks stay (kernels/chain.h, docs/design/019).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/backend/cuda/compile/function.h"

namespace rlx::cuda {

/// How a step works as a part of such a kernel.
struct Phase {
  /// What a namespace holds: `struct Words` of 8-byte words and `void run(const Words&, Ring&, u8* room)`, called by all threads of all blocks; where
  /// weights stream also `int pieces()` and `Span piece(const Words&, int)`.
  std::string text;
  size_t room = 0;          // bytes of shared memory
  int64_t piece_bytes = 0;  // of weights; 0: none stream
  int64_t plain_bytes = 0;  // of weights that need no decoding
};
using PhaseRef = std::shared_ptr<const Phase>;

/// Threads of a block; how many bytes of weights are worth a place of a ring; what phases may take of shared memory.
inline constexpr int kChainThreads = 512;
inline constexpr int64_t kChainPiece = 2048, kChainRoom = 96 << 10;

/// Whether phases are to be made for this device: RLX_CUDA_CHAIN=0 makes none, 1 chains whatever can be, otherwise those where it gains.
bool makes_phases(const Functions&);

/// The text of the kernel for phases in this order, each with so many words, and what it takes.
struct ChainText {
  struct Part {
    const Phase* phase;
    size_t words;
  };
  ChainText(const std::vector<Part>&, int64_t processors, int64_t shared_memory);

  Source source;
  std::vector<uint32_t> items;  // as in Table
  size_t shared = 0;
  int64_t slots = 0;
};

/// Kernels of chains that this process has queued.
size_t chains_queued();

class Chain {
 public:
  /// `meeting` is memory of the GPU that holds kMeetingBytes zeros before the first kernel and after one that ended with a fault.
  Chain(Functions&, int64_t processors, std::byte* meeting, uint64_t* fault);
  static constexpr size_t kMeetingBytes = 2 * sizeof(uint64_t);

  /// The step that comes next. `alone` queues it by itself.
  void add(PhaseRef, std::vector<uint64_t> words, std::function<void()> alone);
  /// Queues what was added, in its order: all as one kernel, or each by itself where that is faster.
  void end(Stream_*);
  /// Forgets what was added.
  void clear() { items_.clear(); }
  /// The kernel for what was added.
  ChainText text() const { return text_of(items_); }
  /// Steps that were queued as parts of one kernel so far.
  size_t chained() const { return chained_; }

 private:
  struct Item {
    PhaseRef phase;
    std::vector<uint64_t> words;
    std::function<void()> alone;
  };
  static bool gains(std::span<const Item>);
  ChainText text_of(std::span<const Item>) const;
  void launch(std::span<const Item>, Stream_*);

  Functions& functions_;
  int64_t processors_;
  std::byte* meeting_;
  uint64_t* fault_;
  uint64_t fault_number_;
  std::vector<Item> items_;
  size_t chained_ = 0;
};

}  // namespace rlx::cuda
