#include "fibre.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

// Registers that a callee keeps go to the stack, then the stacks change places. No signal mask is touched: a switch is some nanoseconds.
extern "C" void emulated_switch(void** save, void* to);
__asm__(
    ".text\n"
    ".type emulated_switch, @function\n"
    "emulated_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size emulated_switch, .-emulated_switch\n");

namespace emulated {

Fibre::Fibre() {
  void* const p =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<char*>(p);
  mprotect(stack_, kGuard, PROT_NONE);
}
Fibre::~Fibre() { munmap(stack_, kBytes); }

void Fibre::start(void (*run)()) {
  uintptr_t top = reinterpret_cast<uintptr_t>(stack_ + kBytes) & ~uintptr_t(63);
  void** at = reinterpret_cast<void**>(top - 64);
  *--at = nullptr;  // `run` does not return; its stack is aligned as behind a call
  *--at = reinterpret_cast<void*>(run);
  for (int i = 0; i < 6; ++i) *--at = nullptr;  // what the switch takes up
  own_ = at;
}
void Fibre::resume() { emulated_switch(&others_, own_); }
void Fibre::leave() { emulated_switch(&own_, others_); }
bool Fibre::holds(const void* address) const {
  const char* const p = static_cast<const char*>(address);
  return p >= stack_ && p < stack_ + kGuard;
}

}  // namespace emulated
