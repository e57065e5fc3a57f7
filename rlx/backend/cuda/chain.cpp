#include "rlx/backend/cuda/chain.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/chain.h"
#include "rlx/base/error.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kWarps = kChainThreads / 32;
constexpr int64_t kStaticShared = 4 << 10;  // what the texts of phases may declare themselves
constexpr int64_t kMostSlots = 16, kLeastSlots = 2;
constexpr int64_t kSharedMemory = 227 << 10;      // of a block on Hopper
constexpr size_t kMostParameterBytes = 30 << 10;  // of 32,764
constexpr size_t kLeastSteps = 4, kMostKinds = 250;

std::atomic<size_t> queued{0};

std::string case_of(size_t kind, const std::string& action) {
  return cat("    case ", kind, ": ", action, "\n");
}
std::string words_at(size_t kind) {
  return cat("*reinterpret_cast<const kind", kind, "::Words*>(table.words + (item >> 8))");
}

}  // namespace

size_t chains_queued() { return queued; }

bool makes_phases(const Functions& f) {
  return f.architecture() == kHopper && option("RLX_CUDA_CHAIN") != "0";
}

ChainText::ChainText(const std::vector<Part>& parts, int64_t processors, int64_t shared_memory) {
  std::map<std::string_view, size_t> kinds;
  std::string spaces, pieces, piece, run;
  size_t words = 0, room = 0;
  int64_t place = 512;
  for (const Part& part : parts) {
    const Phase& phase = *part.phase;
    const auto [it, is_new] = kinds.try_emplace(phase.text, kinds.size());
    const size_t kind = it->second;
    items.push_back(uint32_t(kind | words << 8));
    words += part.words;
    if (!is_new) continue;
    RLX_CHECK(kind < kMostKinds, "a chain of more than ", kMostKinds, " kinds of steps");
    room = std::max(room, phase.room);
    // Decoders read whole words, also behind the last code.
    if (phase.piece_bytes > 0) place = std::max(place, (phase.piece_bytes + 15) / 16 * 16 + 16);
    spaces += cat("namespace kind", kind, " {\n", phase.text, "}\n");
    run += case_of(kind, cat("kind", kind, "::run(", words_at(kind), ", ring, room); break;"));
    if (phase.piece_bytes == 0) continue;
    pieces += case_of(kind, cat("return kind", kind, "::pieces();"));
    piece += case_of(kind, cat("return kind", kind, "::piece(", words_at(kind), ", index);"));
  }
  const int64_t left = shared_memory - kStaticShared - int64_t(room);
  slots = std::min(kMostSlots, left / (kWarps * place));
  RLX_CHECK(slots >= kLeastSlots, "a chain needs ", room, " bytes beside its rings");
  shared = size_t(kWarps * slots * place) + room;
  source.entry = "chain";
  source.text =
      cat("constexpr int kBlocks = ", processors, ", kItems = ", items.size(), ", kSlots = ", slots,
          ", kPlace = ", place, ";\nstruct Table { u32 items[", (items.size() + 1) / 2 * 2, "]; u64 words[",
          std::max<size_t>(words, 1), "]; };\n", kChainParts, kFreshThreads, spaces,
          "#undef threadIdx\ninline int pieces_of(u32 item) {\n  switch (item & 255) {\n", pieces,
          "  }\n  return 0;\n}\ninline Span piece_of(const Table& table, u32 item, int index) {\n",
          "  switch (item & 255) {\n", piece, "  }\n  return {nullptr, 0};\n}\n",
          "inline void run_item(const Table& table, u32 item, Ring& ring, u8* room) {\n",
          "  switch (item & 255) {\n", run, "  }\n}\n", kChainKernel);
}

Chain::Chain(Functions& functions, int64_t processors, std::byte* meeting, uint64_t* fault)
    : functions_(functions),
      processors_(processors),
      meeting_(meeting),
      fault_(fault),
      fault_number_(new_fault("cuda: blocks of one kernel waited for each other in vain")) {}

void Chain::add(PhaseRef phase, std::vector<uint64_t> words, std::function<void()> alone) {
  items_.push_back({std::move(phase), std::move(words), std::move(alone)});
}

// Blocks meet in two to four microseconds, which is the end and the beginning of a kernel; what is gained are weights that are on their way
// meanwhile. Measured on an H200, tokens of Llama shapes: 72 MB of weights a phase 15 % faster, 22 MB 7 %, 1.3 MB 15 % slower; packed weights 8 % slower,
// whose products are bound by decoding.
bool Chain::gains(std::span<const Item> items) {
  if (option("RLX_CUDA_CHAIN") == "1") return true;
  constexpr int64_t kLeastBytes = 8 << 20;  // of a phase
  int64_t bytes = 0;
  for (const Item& item : items) bytes += item.phase->plain_bytes;
  return bytes >= kLeastBytes * int64_t(items.size());
}

void Chain::end(Stream_* stream) {
  std::vector<Item> all;
  all.swap(items_);
  if (all.size() < kLeastSteps || !gains(all)) {
    for (const Item& item : all) item.alone();
    return;
  }
  // As many as the parameters of a kernel hold.
  for (size_t first = 0, last = 0; first < all.size(); first = last) {
    size_t bytes = 0;
    for (; last < all.size(); ++last) {
      bytes += 8 + 8 * all[last].words.size();
      if (bytes > kMostParameterBytes) break;
    }
    launch(std::span(all).subspan(first, last - first), stream);
  }
}

ChainText Chain::text_of(std::span<const Item> items) const {
  std::vector<ChainText::Part> parts;
  for (const Item& item : items) parts.push_back({item.phase.get(), item.words.size()});
  return ChainText(parts, processors_, kSharedMemory);
}

void Chain::launch(std::span<const Item> items, Stream_* stream) {
  ChainText text = text_of(items);
  std::vector<uint64_t> table((text.items.size() + 1) / 2, 0);
  std::copy(text.items.begin(), text.items.end(), reinterpret_cast<uint32_t*>(table.data()));
  for (const Item& item : items) table.insert(table.end(), item.words.begin(), item.words.end());
  const FunctionRef function = functions_.get(std::move(text.source));
  void* parameters[] = {table.data(), &meeting_, &fault_, &fault_number_, nullptr};
  function->launch(stream, {processors_}, {kChainThreads}, text.shared, parameters, Together::yes);
  chained_ += items.size();
  ++queued;
}

}  // namespace rlx::cuda
