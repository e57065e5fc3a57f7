// What `rlx build` writes, with words in it for what is known later.
#pragma once

#include <string_view>

namespace rlx::cli {

// NAME stands for the name of the program, INPUTS, OUTPUTS and THREAD_COUNT for their numbers, PORTS for the types.
inline constexpr std::string_view kHeader = R"(/* NAME: a compiled graph. Made by `rlx build`. */
#ifndef NAME_H
#define NAME_H

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
   undefined then. No output may overlap another or an input. */
int NAME_run(NAME*, const void* const* inputs, void* const* outputs);

/* The last error of this thread. */
const char* NAME_error(void);

#ifdef __cplusplus
}
#endif
#endif
)";

inline constexpr std::string_view kSource = R"(#include "NAME.h"

#include <rlx/base/pool.h>
#include <rlx/runtime/archive.h>

#include <algorithm>
#include <string>
#include <vector>

// The program and its weights, as they lie in NAME.rlxp.
__asm__(
    ".section .rodata\n.balign 64\n.global NAME_program\nNAME_program:\n.incbin \"" NAME_PROGRAM "\"\n"
    ".global NAME_program_end\nNAME_program_end:\n.byte 0\n.previous\n");
extern "C" const std::byte NAME_program[], NAME_program_end[];

namespace {
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
}  // namespace

struct NAME {
  rlx::CompiledGraph program;
  std::vector<rlx::TensorView> inputs, outputs;
};

static rlx::TensorView typed(const rlx::Port& port) {
  std::vector<int64_t> dims;
  for (const rlx::Dim d : port.shape.dims()) dims.push_back(d.value());
  return rlx::view_bytes(port.shape.dtype(), nullptr, dims);
}

NAME* NAME_create(void) { return NAME_create_threads(NAME_threads); }

NAME* NAME_create_threads(int threads) {
  return guarded(
      [=]() -> NAME* {
        const int all = rlx::default_pool().threads();
        auto* made = new NAME{rlx::load_compiled({NAME_program, NAME_program_end}, nullptr, "NAME",
                                                 threads > 0 ? std::min(threads, all) : all),
                              {},
                              {}};
        for (const rlx::Port& p : made->program.inputs()) made->inputs.push_back(typed(p));
        for (const rlx::Port& p : made->program.outputs()) made->outputs.push_back(typed(p));
        return made;
      },
      nullptr);
}

void NAME_free(NAME* p) { delete p; }

int NAME_run(NAME* p, const void* const* inputs, void* const* outputs) {
  return guarded(
      [&] {
        std::vector<rlx::Input> in;
        for (size_t i = 0; i < p->inputs.size(); ++i) {
          p->inputs[i].data = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
          in.push_back({p->program.inputs()[i].name, p->inputs[i]});
        }
        for (size_t i = 0; i < p->outputs.size(); ++i) p->outputs[i].data = static_cast<std::byte*>(outputs[i]);
        p->program.run_into(in, p->outputs);
        return 0;
      },
      1);
}

const char* NAME_error(void) { return last_error.c_str(); }
)";

inline constexpr std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.22)
project(NAME LANGUAGES C CXX)
find_package(rlx REQUIRED)
add_library(NAME STATIC NAME.cpp)
target_compile_features(NAME PUBLIC cxx_std_20)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(NAME PRIVATE NAME_PROGRAM="${CMAKE_CURRENT_SOURCE_DIR}/NAME.rlxp")
set_property(SOURCE NAME.cpp APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/NAME.rlxp)
target_link_libraries(NAME PUBLIC rlx::rlx)
)";

}  // namespace rlx::cli
