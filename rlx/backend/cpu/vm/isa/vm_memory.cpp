// Plan: see rlx/backend/cpu/vm/micro.h; loads, stores, conversions, choices and the loop over blocks. Types
// narrower than the lane are widened by vector conversions on the way in and narrowed on the way out.
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/vm/isa/memory.h"
#include "rlx/backend/cpu/vm/isa/sets.h"

namespace rlx::cpu::RLX_ISA {
namespace machine {
namespace {

template <class Lanes, class Memory>
void load_step(RLX_STEP) {
  const char* p = block<Lanes, sizeof(Memory)>(at, m->a, i);
  const auto f = [&](F32, int k) RLX_LAMBDA {
    return (F32)widened<Lanes>(reinterpret_cast<const Memory*>(p) + k * kLanesOf<Lanes>);
  };
  RLX_EACH(f);
  RLX_NEXT;
}

template <class Lanes, class Memory, bool last>
void store_step(RLX_STEP) {
  char* p = block<Lanes, sizeof(Memory)>(at, m->a, i);
  const auto f = [&](F32 v, int k) RLX_LAMBDA {
    narrowed(reinterpret_cast<Memory*>(p) + k * kLanesOf<Lanes>, (Lanes)v);
    return v;
  };
  RLX_EACH(f);
  if constexpr (last) {
    RLX_AGAIN;
  } else {
    RLX_NEXT;
  }
}

// Lanes as they are, past the caches where the second place says so and the address allows it.
template <bool last>
void native_store_step(RLX_STEP) {
  char* p = block(at, m->a, i);
  if (address(at, m->b) != nullptr && reinterpret_cast<uintptr_t>(p) % kVectorBytes == 0) {
    const auto f = [&](F32 v, int k) RLX_LAMBDA {
      stream(reinterpret_cast<float*>(p + k * kVectorBytes), v);
      return v;
    };
    RLX_EACH(f);
  } else {
    const auto f = [&](F32 v, int k) RLX_LAMBDA {
      std::memcpy(p + k * kVectorBytes, &v, sizeof v);
      return v;
    };
    RLX_EACH(f);
  }
  if constexpr (last) {
    RLX_AGAIN;
  } else {
    RLX_NEXT;
  }
}

void fetch_step(RLX_STEP) {
  const char* p = block(at, m->a, i);
  const auto f = [&](F32, int k) RLX_LAMBDA { return load_bytes<F32>(p + k * kVectorBytes); };
  RLX_EACH(f);
  RLX_NEXT;
}

// Line by line of what is read later; see Planner::add_asks.
template <int form>
void ask_step(RLX_STEP) {
  constexpr int64_t bytes = 2 * kBlockBytes >> form;
  const char* p = address(at, m->a) + (2 * i >> form) + m->c;
#pragma GCC unroll 16
  for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch(p + k, 0, 2);
  RLX_NEXT;
}
template <int... form>
void set_asks(Function (&to)[kAskForms], Indices<form...>) {
  ((to[form] = as_function(ask_step<form>)), ...);
}

template <class V>
void spread_step(RLX_STEP) {
  const F32 x = (F32)read_one<V>(address(at, m->a));
  v0 = v1 = v2 = v3 = v4 = v5 = v6 = v7 = x;
  RLX_NEXT;
}

template <class F>
RLX_INLINE F32 chosen(F32 mask, F yes, F no) {
#if defined(RLX_AVX512)
  return (F32)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)yes, (__m512i)no, 0xca);
#elif defined(RLX_AVX2)
  return (F32)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
  return (F32)(((I32)mask & (I32)yes) | (~(I32)mask & (I32)no));
#endif
}

template <class V, int form>
void select_step(RLX_STEP) {
  constexpr bool yes_one = (form & 1) != 0, no_one = (form & 2) != 0;
  const char* p = form < 4 && yes_one ? address(at, m->a) : block(at, m->a, i);
  const char* q = (form < 4 ? no_one : yes_one) ? address(at, m->b) : block(at, m->b, i);
  if constexpr (form < 4) {
    const F32 yes1 = yes_one ? (F32)read_one<V>(p) : F32{}, no1 = no_one ? (F32)read_one<V>(q) : F32{};
    const auto f = [&](F32 v, int k) RLX_LAMBDA {
      return chosen(v, yes_one ? yes1 : load_bytes<F32>(p + k * kVectorBytes),
                    no_one ? no1 : load_bytes<F32>(q + k * kVectorBytes));
    };
    RLX_EACH(f);
  } else {
    const F32 other1 = yes_one ? (F32)read_one<V>(q) : F32{};
    const auto f = [&](F32 v, int k) RLX_LAMBDA {
      const F32 mask = load_bytes<F32>(p + k * kVectorBytes);
      const F32 other = yes_one ? other1 : load_bytes<F32>(q + k * kVectorBytes);
      return form < 6 ? chosen(mask, v, other) : chosen(mask, other, v);
    };
    RLX_EACH(f);
  }
  RLX_NEXT;
}
template <class V, int... form>
void set_selects(Function (&to)[kSelectForms], Indices<form...>) {
  ((to[form] = as_function(select_step<V, form>)), ...);
}

template <class To, class From, bool from_mask>
void convert_step(RLX_STEP) {
  const auto f = [](F32 v, int) RLX_LAMBDA {
    if constexpr (from_mask) return (F32)((From)v & (From)(machine::set1(Element<To>(1))));
    if constexpr (!from_mask) return (F32)converted<To>((From)v);
  };
  RLX_EACH(f);
  RLX_NEXT;
}

template <bool bf16>
void round_step(RLX_STEP) {
  const auto f = [](F32 v, int) RLX_LAMBDA {
    if constexpr (bf16) {
      Bf16 t[kLanes];
      store(t, v);
      return load(t);
    } else {
      F16 t[kLanes];
      store(t, v);
      return load(t);
    }
  };
  RLX_EACH(f);
  RLX_NEXT;
}

template <Op op>
void mask_step(RLX_STEP) {
  const char* p = block(at, m->a, i);
  const auto f = [&](F32 v, int k) RLX_LAMBDA {
    const I32 a = (I32)v, b = op == Op::bit_not ? I32{} : load_bytes<I32>(p + k * kVectorBytes);
    if constexpr (op == Op::bit_not) return (F32)~a;
    if constexpr (op == Op::bit_and) return (F32)(a & b);
    if constexpr (op == Op::bit_or) return (F32)(a | b);
    if constexpr (op == Op::bit_xor) return (F32)(a ^ b);
  };
  RLX_EACH(f);
  RLX_NEXT;
}

void end_step(RLX_STEP) { RLX_AGAIN; }

// After each turn the code returns: a build without jumps for calls needs a bounded stack.
void run(const Micro* code, int64_t most, char** at, int64_t blocks, const int64_t* moves, int moving) {
  const F32 zero = {};
  while (blocks > 0) {
    const int64_t turn = blocks < most ? blocks : most;
    at[kEnd] = reinterpret_cast<char*>(turn * kBlockBytes);
    reinterpret_cast<Step>(code->run)(code, at, 0, zero, zero, zero, zero, zero, zero, zero, zero);
    if ((blocks -= turn) == 0) return;
    for (int k = kOwnPlaces; k < moving; ++k) at[k] += moves[k] * turn;
  }
}

void fence() { stream_fence(); }

template <class Lanes, class Memory>
void set_load(Functions& to, Lane lane, DType t) {
  to.load[sizeof(Element<Lanes>) / 8][int(lane)][int(t)] = as_function(load_step<Lanes, Memory>);
}
template <class Lanes, class Memory>
void set_store(Functions& to, Lane lane, DType t) {
  auto& forms = to.store[sizeof(Element<Lanes>) / 8][int(lane)][int(t)];
  forms[0] = as_function(store_step<Lanes, Memory, false>);
  forms[1] = as_function(store_step<Lanes, Memory, true>);
}

template <class Floats, class Integers>
void set_loads(Functions& to, Lane floats, Lane integers) {
  set_load<Floats, uint8_t>(to, floats, DType::u8);
  set_load<Floats, int8_t>(to, floats, DType::i8);
  set_load<Floats, int16_t>(to, floats, DType::i16);
  set_load<Floats, int32_t>(to, floats, DType::i32);
  set_load<Floats, uint32_t>(to, floats, DType::u32);
  set_load<Floats, int64_t>(to, floats, DType::i64);
  set_load<Floats, F16>(to, floats, DType::f16);
  set_load<Floats, Bf16>(to, floats, DType::bf16);
  set_load<Floats, float>(to, floats, DType::f32);
  set_load<Floats, double>(to, floats, DType::f64);
  set_load<Integers, uint8_t>(to, integers, DType::u8);
  set_load<Integers, int8_t>(to, integers, DType::i8);
  set_load<Integers, int16_t>(to, integers, DType::i16);
  set_load<Integers, int32_t>(to, integers, DType::i32);
  set_load<Integers, Flag>(to, Lane::mask, DType::bool_);
  set_store<Integers, Flag>(to, Lane::mask, DType::bool_);
  set_store<Integers, uint8_t>(to, integers, DType::u8);
  set_store<Integers, int8_t>(to, integers, DType::i8);
  set_store<Integers, int16_t>(to, integers, DType::i16);
}

}  // namespace

void set_memory(Functions& to) {
  set_loads<F32, I32>(to, Lane::f32, Lane::i32);
  set_loads<F64, I64>(to, Lane::f64, Lane::i64);
  set_load<I64, uint32_t>(to, Lane::i64, DType::u32);
  set_load<I64, int64_t>(to, Lane::i64, DType::i64);
  set_store<I64, int32_t>(to, Lane::i64, DType::i32);
  set_store<I64, uint32_t>(to, Lane::i64, DType::u32);
  set_store<F32, F16>(to, Lane::f32, DType::f16);
  set_store<F32, Bf16>(to, Lane::f32, DType::bf16);
  set_store<F64, float>(to, Lane::f64, DType::f32);
  const Function native[] = {as_function(native_store_step<false>), as_function(native_store_step<true>)};
  for (const int last : {0, 1}) {
    to.store[0][int(Lane::f32)][int(DType::f32)][last] = native[last];
    to.store[0][int(Lane::i32)][int(DType::i32)][last] = native[last];
    to.store[1][int(Lane::f64)][int(DType::f64)][last] = native[last];
    to.store[1][int(Lane::i64)][int(DType::i64)][last] = native[last];
    to.keep[last] = native[last];
  }
  to.fetch = as_function(fetch_step);
  set_asks(to.ask, MakeIndices<kAskForms>());
  to.spread[0] = as_function(spread_step<I32>);
  to.spread[1] = as_function(spread_step<I64>);
  set_selects<I32>(to.select[0], MakeIndices<kSelectForms>());
  set_selects<I64>(to.select[1], MakeIndices<kSelectForms>());
  to.convert[0][int(Lane::i32)][int(Lane::f32)] = as_function(convert_step<F32, I32, false>);
  to.convert[0][int(Lane::f32)][int(Lane::i32)] = as_function(convert_step<I32, F32, false>);
  to.convert[0][int(Lane::mask)][int(Lane::f32)] = as_function(convert_step<F32, I32, true>);
  to.convert[0][int(Lane::mask)][int(Lane::i32)] = as_function(convert_step<I32, I32, true>);
  to.convert[1][int(Lane::i64)][int(Lane::f64)] = as_function(convert_step<F64, I64, false>);
  to.convert[1][int(Lane::f64)][int(Lane::i64)] = as_function(convert_step<I64, F64, false>);
  to.convert[1][int(Lane::mask)][int(Lane::f64)] = as_function(convert_step<F64, I64, true>);
  to.convert[1][int(Lane::mask)][int(Lane::i64)] = as_function(convert_step<I64, I64, true>);
  to.unary[int(Lane::f32)][unary_index(Op::round_f16)][0] = as_function(round_step<false>);
  to.unary[int(Lane::f32)][unary_index(Op::round_bf16)][0] = as_function(round_step<true>);
  to.unary[int(Lane::mask)][unary_index(Op::bit_not)][0] = as_function(mask_step<Op::bit_not>);
  auto& masks = to.binary[int(Lane::mask)];
  for (int form = 0; form < 2; ++form) {
    masks[binary_index(Op::bit_and)][form][0] = as_function(mask_step<Op::bit_and>);
    masks[binary_index(Op::bit_or)][form][0] = as_function(mask_step<Op::bit_or>);
    masks[binary_index(Op::bit_xor)][form][0] = as_function(mask_step<Op::bit_xor>);
  }
  to.end = as_function(end_step);
  to.run = run;
  to.fence = fence;
}

}  // namespace machine

vm::Functions vm_functions();
vm::Functions vm_functions() {
  vm::Functions f;
  f.vector_bytes = kVectorBytes;
  f.block_bytes = vm::kVectors * kVectorBytes;
  machine::set_f32(f);
  machine::set_f64(f);
  machine::set_i32(f);
  machine::set_i64(f);
  machine::set_memory(f);
  return f;
}

}  // namespace rlx::cpu::RLX_ISA
