// One table of serial kernels per family and level.
//
// kernels/isa/NAME.cpp defines `Type maker()` in the namespace of its level. kernels/NAME.cpp says
// RLX_ISA_TABLE(Type, maker) in namespace rlx::cpu and calls maker() for the table of the level in use. Only
// the maker of that level runs: the others may hold instructions that the machine lacks.
#pragma once

#include "rlx/backend/cpu/isa.h"

#define RLX_ISA_TABLE_LEVEL(level, maker)     \
  case Isa::level: {                          \
    static const auto table = level::maker(); \
    return table;                             \
  }

#if defined(__x86_64__)
#define RLX_ISA_TABLE(Type, maker)           \
  namespace baseline {                       \
  Type maker();                              \
  }                                          \
  namespace avx2 {                           \
  Type maker();                              \
  }                                          \
  namespace avx512 {                         \
  Type maker();                              \
  }                                          \
  namespace avx512vnni {                     \
  Type maker();                              \
  }                                          \
  static const Type& maker() {               \
    switch (current_isa()) {                 \
      RLX_ISA_TABLE_LEVEL(avx2, maker)       \
      RLX_ISA_TABLE_LEVEL(avx512, maker)     \
      RLX_ISA_TABLE_LEVEL(avx512vnni, maker) \
      default:                               \
        RLX_ISA_TABLE_LEVEL(baseline, maker) \
    }                                        \
  }
#else
#define RLX_ISA_TABLE(Type, maker)               \
  namespace baseline {                           \
  Type maker();                                  \
  }                                              \
  static const Type& maker() {                   \
    static const Type table = baseline::maker(); \
    return table;                                \
  }
#endif
