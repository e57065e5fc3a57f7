// The instructions of the register machine, and the functions that run them.
//
// The accumulator is eight vectors, a block, which stay in the eight argument registers of the calling
// convention from one instruction to the next: each is a function f(instruction, places, i, v0 ... v7) that ends
// by calling the function of the next one, which compiles to a jump. Other operands come from memory: a place is
// an address, and the block at hand lies i bytes behind it. Code runs over a turn of a few blocks; then the places
// move on. Values that the code keeps for itself have memory for a turn, so that all operands are found alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rlx/base/dtype.h"
#include "rlx/region/op.h"

namespace rlx::cpu::vm {

using region::Lane;
using region::Op;

// The first places are the machine's own, numbers in the guise of addresses.
inline constexpr int kLanesLeft = 0;    // elements of the block that count in reductions
inline constexpr int kEnd = 1;          // i behind the last block of the turn
inline constexpr int kNoStreaming = 2;  // null: stores go through the caches
inline constexpr int kOwnPlaces = 3;
inline constexpr int kBlocksPerTurn = 8;

using Function = void (*)();  // of a type that depends on the level

struct Micro {
  Function run = nullptr;
  uint32_t a = 0, b = 0, c = 0;  // places, in bytes from the first
  uint32_t before = 0;           // of the last instruction: how many there are before it
};
struct Code {
  std::vector<Micro> steps;
  int64_t turn =
      kBlocksPerTurn;  // blocks; as many as there are for an instruction that is alone and goes round itself
  bool empty() const { return steps.empty(); }
};
constexpr uint32_t in_bytes(int place) { return uint32_t(place) * uint32_t(sizeof(char*)); }

/// Where the operands of a binary operation are: acc op a, a op acc, and the same where a is one element for all;
/// then the forms that need no accumulator: b op a, b op the element a, the element a op b.
enum class Form : uint8_t {
  memory,
  memory_first,
  scalar,
  scalar_first,
  two_memories,
  memory_scalar,
  scalar_memory
};
inline constexpr int kForms = 7;
/// acc + p, acc - p or p - acc, where p is the product of b and a.
enum class ProductForm : uint8_t { add, sub, sub_first };
inline constexpr int kProductForms = 3;
/// The product of an accumulator with b, or the sum, where b holds bf16 or f16.
enum class NarrowForm : uint8_t { add_bf16, mul_bf16, add_f16, mul_f16 };
inline constexpr int kNarrowForms = 4;
/// What a reduction takes: the accumulator, its square, its product with b; or b alone, its product with c, its
/// square about the element c.
enum class Reduced : uint8_t { accumulator, square, product, memory, two_memories, about };
inline constexpr int kReducedForms = 6;
/// ((x - s) t) w + z put to memory: what ends most norms, scalings and biases, as one instruction over all blocks of
/// a turn. A bit for each part that is there; kDivided stands alone: x / t. It has two entries: x at a, s at b, t at c of the first,
/// whose `before` is the place that says whether to stream, and w at a, z at b, the result at c of the second.
inline constexpr int kMinus = 1, kTimes = 2, kWeighed = 4, kShifted = 8, kDivided = 16;
inline constexpr int kAffineForms = kDivided + 1;
/// Of select(mask, yes, no): the accumulator is the mask and yes, no are memory or one element (0 to 3: bit 0
/// for yes, bit 1 for no), or the mask is memory and the accumulator yes (4; 5: no is one element) or no (6, 7).
inline constexpr int kSelectForms = 8;

/// By how much elements are narrower than lanes: half, equal, twice, four or eight times.
inline constexpr int kAskForms = 5;
constexpr int ask_index(int64_t element_bytes, int lane_bytes) {
  return 1 + __builtin_ctzll(uint64_t(lane_bytes)) - __builtin_ctzll(uint64_t(element_bytes));
}

inline constexpr int kVectors = 8;
inline constexpr int kUnaryOps = int(Op::bit_not) - int(Op::neg) + 1;
inline constexpr int kBinaryOps = int(Op::ge) - int(Op::add) + 1;
inline constexpr int kReductions = int(Op::reduce_min) - int(Op::reduce_sum) + 1;
constexpr int unary_index(Op op) { return int(op) - int(Op::neg); }
constexpr int binary_index(Op op) { return int(op) - int(Op::add); }
constexpr int reduction_index(Op op) { return int(op) - int(Op::reduce_sum); }

/// The functions of one level; null where there is none. Tables with two rows are for lanes of 4 and 8 bytes.
/// [keeps]: 1 also keeps the result at place c. [last]: 1 is the last instruction, too.
struct Functions {
  int block_bytes = 0, vector_bytes = 0;
  Function unary[region::kLaneCount][kUnaryOps][2] = {};            // [keeps]
  Function binary[region::kLaneCount][kBinaryOps][kForms][2] = {};  // [keeps]
  Function product[region::kLaneCount][kProductForms][2][2] = {};   // [a is one element][keeps]
  Function narrow[kNarrowForms][2] = {};                            // [keeps]; lanes of f32
  Function affine[region::kLaneCount][kAffineForms] = {};           // the last instruction
  Function select[2][kSelectForms] = {};
  Function load[2][region::kLaneCount][kDTypeCount] = {};      // memory -> acc
  Function store[2][region::kLaneCount][kDTypeCount][2] = {};  // b: says whether to stream; [last]
  Function keep[2] = {};                                       // a block as it is, to a place; [last]
  Function fetch = nullptr;                                    // and from a place
  Function spread[2] = {};                                     // one element for all -> acc
  Function ask[kAskForms] = {};  // the block at a, c bytes further on, into the second cache; [ask_index]
  Function convert[2][region::kLaneCount][region::kLaneCount] = {};         // [from][to]
  Function reduce[region::kLaneCount][kReductions][kReducedForms][2] = {};  // into the vector at a; [last]
  Function end = nullptr;                                                   // the last of those without one
  /// Runs code over so many blocks, `turn` of them at a time. The first `moving` places move by so many bytes per block;
  /// where they are left is not said.
  void (*run)(const Micro* code, int64_t turn, char** places, int64_t blocks, const int64_t* moves,
              int moving) = nullptr;
  /// The vector of a reduction before the first block; joined into a total (double or int64_t) after the last,
  /// which makes it ready for more blocks.
  void (*begin[region::kLaneCount][kReductions])(void* vector) = {};
  void (*fold[region::kLaneCount][kReductions])(void* vector, void* total) = {};
  void (*fence)() = nullptr;
};

}  // namespace rlx::cpu::vm
