// What `rlx build` writes, with words in it for what is known later.
#pragma once

#include <string_view>

namespace rlx::cli {

// NAME stands for the name of the program, INPUTS, OUTPUTS and THREAD_COUNT for their numbers, PORTS for the types; of the plan, GRAPH is its
// name, SUMMARY its size, FAMILIES the kernels, ARENA_BYTES its memory, MACHINE what it is for, PLAN its functions.
inline constexpr std::string_view kHeader = R"(/* NAME: a compiled graph. Made by `rlx build`. */
#ifndef NAME_H
#define NAME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NAME NAME;

enum { NAME_inputs = INPUTS, NAME_outputs = OUTPUTS, NAME_threads = THREAD_COUNT };
PORTS
/* Null when it cannot be made; NAME_error says why. One object is for one thread at a time. It works on NAME_threads
   threads, which it was compiled for, or on all that the process may use (RLX_THREADS) where these are fewer. */
NAME* NAME_create(void);
/* The same on so many threads, at most all that the process may use; 0: all. Sums may be split in another way than by the
   number it was compiled for, and differ in their last bits. */
NAME* NAME_create_threads(int threads);
void NAME_free(NAME*);

/* Dense row-major tensors of the types above, in that order. 0 when done; otherwise NAME_error says why; outputs are
   undefined then. No output may overlap another or an input. An object that is running refuses a second run. */
int NAME_run(NAME*, const void* const* inputs, void* const* outputs);
/* The same for memory of so many bytes each: what has another number than the type above is an error. */
int NAME_run_sized(NAME*, const void* const* inputs, const size_t* input_bytes, void* const* outputs,
                   const size_t* output_bytes);

/* The last error of this thread, until its next one. */
const char* NAME_error(void);

#ifdef __cplusplus
}
#endif
#endif
)";

inline constexpr std::string_view kSource = R"(// NAME: GRAPH, compiled. SUMMARY. Made by `rlx build`.
#include "NAME.h"

#include <rlx/backend/built.h>
#include <rlx/backend/cpu/nodes/built_device.h>

#include <cstdint>
#include <limits>
#include <string>

// Weights, the forms that steps read them in, and constants: NAME.weights.
__asm__(
    ".section .rodata\n.balign 64\n.global NAME_data\nNAME_data:\n.incbin \"" NAME_WEIGHTS "\"\n"
    ".byte 0\n.previous\n");
extern "C" const std::byte NAME_data[];

namespace {
namespace NAME_plan {

// By name: the name of the program may be any of these outside.
using rlx::backend::built::at, rlx::backend::built::Body, rlx::backend::built::Call, rlx::backend::built::data,
    rlx::backend::built::FormCache, rlx::backend::built::integers, rlx::backend::built::Program,
    rlx::backend::built::reals, rlx::backend::built::result, rlx::backend::built::shape_of,
    rlx::backend::built::strided;
using rlx::ir::Value;
using rlx::ops::record;
using enum rlx::DType;

PLAN
const rlx::backend::Backend& device() {
  static const rlx::cpu::BuiltDevice made({FAMILIES});
  return made;
}

FormCache forms;
thread_local std::string last_error;

template <class Action>
auto guarded(Action action, decltype(action()) failed) -> decltype(action()) {
  try {
    return action();
  } catch (const std::exception& e) {
    last_error = e.what();
    return failed;
  }
}
}  // namespace NAME_plan
}  // namespace

struct NAME {
  rlx::backend::built::Program program;
};

NAME* NAME_create(void) { return NAME_create_threads(NAME_threads); }

NAME* NAME_create_threads(int threads) {
  return NAME_plan::guarded(
      [=]() -> ::NAME* {
        rlx::cpu::require_machine("MACHINE");
        auto made = std::unique_ptr<::NAME>(
            new ::NAME{{"NAME", NAME_plan::device(), NAME_plan::forms, threads, ARENA_BYTES}});
        NAME_plan::add_buffers(made->program);
        NAME_plan::add_steps(made->program);
        made->program.finish();
        return made.release();
      },
      nullptr);
}

void NAME_free(NAME* p) { delete p; }

int NAME_run(NAME* p, const void* const* inputs, void* const* outputs) {
  return NAME_run_sized(p, inputs, nullptr, outputs, nullptr);
}

int NAME_run_sized(NAME* p, const void* const* inputs, const size_t* input_bytes, void* const* outputs,
                   const size_t* output_bytes) {
  return NAME_plan::guarded(
      [=] {
        if (p == nullptr) throw rlx::invalid("run: no object; NAME_create makes one, or NAME_error says why not");
        return p->program.run(inputs, outputs, input_bytes, output_bytes), 0;
      },
      1);
}

const char* NAME_error(void) { return NAME_plan::last_error.c_str(); }
)";

inline constexpr std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.22)
project(NAME LANGUAGES C CXX)
find_package(rlx REQUIRED)
# A program that uses the library as well is linked with that alone: -DNAME_LIBRARY=rlx::rlx
set(NAME_LIBRARY rlx::run CACHE STRING "what NAME is linked with")
add_library(NAME STATIC NAME.cpp)
target_compile_features(NAME PUBLIC cxx_std_20)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(NAME PRIVATE NAME_WEIGHTS="${CMAKE_CURRENT_SOURCE_DIR}/NAME.weights")
set_property(SOURCE NAME.cpp APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/NAME.weights)
target_link_libraries(NAME PUBLIC ${NAME_LIBRARY})
)";

}  // namespace rlx::cli
