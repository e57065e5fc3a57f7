// One table of serial kernels per family and level.
//
// kernels/isa/NAME.cpp defines `Type maker()` in the namespace of its level. kernels/NAME.cpp says
// RLX_ISA_TABLE(Type, maker) in namespace rlx::cpu and calls maker() for the table of the level in use. Only
// the maker of that level runs: the others may hold instructions that the machine lacks. A family that has
// code of its own at the level avx512vnni says `// Levels: also avx512vnni` in its source there and
// RLX_ISA_TABLE_VNNI here; for the others that level is avx512.
#pragma once

#include "rlx/backend/cpu/isa.h"

#if defined(__x86_64__) && !defined(RLX_ISA_ONLY)
#define RLX_ISA_TABLE_LEVEL(level, from, maker) \
  case Isa::level: {                            \
    static const auto table = from::maker();    \
    return table;                               \
  }

#define RLX_ISA_TABLE_OF(Type, maker, vnni_from)        \
  namespace baseline {                                  \
  Type maker();                                         \
  }                                                     \
  namespace avx2 {                                      \
  Type maker();                                         \
  }                                                     \
  namespace avx512 {                                    \
  Type maker();                                         \
  }                                                     \
  namespace vnni_from {                                 \
  Type maker();                                         \
  }                                                     \
  static const Type& maker() {                          \
    switch (current_isa()) {                            \
      RLX_ISA_TABLE_LEVEL(avx2, avx2, maker)            \
      RLX_ISA_TABLE_LEVEL(avx512, avx512, maker)        \
      RLX_ISA_TABLE_LEVEL(avx512vnni, vnni_from, maker) \
      default:                                          \
        RLX_ISA_TABLE_LEVEL(baseline, baseline, maker)  \
    }                                                   \
  }
#define RLX_ISA_TABLE(Type, maker) RLX_ISA_TABLE_OF(Type, maker, avx512)
#define RLX_ISA_TABLE_VNNI(Type, maker) RLX_ISA_TABLE_OF(Type, maker, avx512vnni)
#else  // one level in the binary
#if !defined(RLX_ISA_ONLY)
#define RLX_ISA_ONLY baseline
#endif
#define RLX_ISA_TABLE(Type, maker)                   \
  namespace RLX_ISA_ONLY {                           \
  Type maker();                                      \
  }                                                  \
  static const Type& maker() {                       \
    static const Type table = RLX_ISA_ONLY::maker(); \
    return table;                                    \
  }
#define RLX_ISA_TABLE_VNNI RLX_ISA_TABLE
#endif
