// The instructions of the register machine, and the functions that run them.
//
// The accumulator is eight vectors, a block, which stay in the eight argument registers of the calling
// convention from one instruction to the next: each is a function f(instruction, places, i, v0 ... v7) that ends
// by calling the function of the next one, which compiles to a jump. Other operands come from memory: a place is
// an address and how far it moves per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/region/op.h"

namespace rlx::cpu::vm {

using region::Lane;
using region::Op;

/// Element i of an operand lies at p + i * step; a step of 0 is one block, or one element for all.
struct Place {
  char* p = nullptr;
  int64_t step = 0;
};
// The first places are the machine's own.
inline constexpr int kLanesLeft = 0;    // step: elements of the block that count in reductions
inline constexpr int kEnd = 1;          // step: where the run of blocks ends
inline constexpr int kNoStreaming = 2;  // step 0: stores go through the caches
inline constexpr int kOwnPlaces = 3;

using Function = void (*)();  // of a type that depends on the level

struct Micro {
  Function run = nullptr;
  int32_t a = 0, b = 0;  // places
};

/// Where the operands of a binary operation are: acc op memory, memory op acc, and the same with one element for
/// all.
enum class Form : uint8_t { memory, memory_first, scalar, scalar_first };
inline constexpr int kForms = 4;
/// Of select(mask, yes, no): the accumulator is the mask and yes, no are memory or one element (0 to 3: bit 0
/// for yes, bit 1 for no), or the mask is memory and the accumulator yes (4; 5: no is one element) or no (6, 7).
inline constexpr int kSelectForms = 8;

inline constexpr int kVectors = 8;
inline constexpr int kUnaryOps = int(Op::bit_not) - int(Op::neg) + 1;
inline constexpr int kBinaryOps = int(Op::ge) - int(Op::add) + 1;
inline constexpr int kReductions = int(Op::reduce_min) - int(Op::reduce_sum) + 1;
constexpr int unary_index(Op op) { return int(op) - int(Op::neg); }
constexpr int binary_index(Op op) { return int(op) - int(Op::add); }
constexpr int reduction_index(Op op) { return int(op) - int(Op::reduce_sum); }

/// The functions of one level; null where there is none. Tables with two rows are for lanes of 4 and 8 bytes.
struct Functions {
  int block_bytes = 0, vector_bytes = 0;
  Function unary[region::kLaneCount][kUnaryOps] = {};
  Function binary[region::kLaneCount][kBinaryOps][kForms] = {};
  Function select[2][kSelectForms] = {};
  Function load[2][region::kLaneCount][kDTypeCount] = {};   // memory -> acc
  Function store[2][region::kLaneCount][kDTypeCount] = {};  // b: the place that says whether to stream
  Function keep = nullptr, fetch = nullptr;                 // a block as it is, to and from a place
  Function spread[2] = {};                                  // one element for all -> acc
  Function convert[2][region::kLaneCount][region::kLaneCount] = {};  // [from][to]
  Function reduce[region::kLaneCount][kReductions] = {};             // acc into the vector at a place
  Function end[2] = {};                                              // a: instructions back to the first
  /// Runs code over elements [0, n), n a multiple of the block.
  void (*run)(const Micro* code, Place* places, int64_t n, int width) = nullptr;
  /// The vector of a reduction before the first block, and joined into a total (double or int64_t) after the
  /// last.
  void (*begin[region::kLaneCount][kReductions])(void* vector) = {};
  void (*fold[region::kLaneCount][kReductions])(const void* vector, void* total) = {};
  void (*fence)() = nullptr;
};

}  // namespace rlx::cpu::vm
