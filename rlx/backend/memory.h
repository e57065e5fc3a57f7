// The memory that the steps of a backend work on, and the line in which work reaches it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace rlx::backend {

class Executable;
struct Frame;

class Memory {
 public:
  virtual ~Memory() = default;
  /// Whether callers see what steps see: then nothing is copied between them.
  virtual bool on_host() const { return false; }
  /// At least 64-byte alignment, not cleared; throws an environment error when there is none.
  virtual std::byte* allocate(size_t bytes) const = 0;
  virtual void release(std::byte*) const noexcept = 0;
  /// Memory of the host that copies to and from this one are fast with.
  virtual const Memory& staging() const = 0;

  // Done when they return.
  virtual void upload(std::byte* to, const std::byte* from, size_t bytes) const = 0;
  virtual void download(std::byte* to, const std::byte* from, size_t bytes) const = 0;
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) const = 0;
  virtual void clear(std::byte* at, size_t bytes) const = 0;
};

/// The memory of this process.
const Memory& host_memory();

/// A piece of memory with an owner.
class Block {
 public:
  Block() = default;
  Block(const Memory& memory, size_t bytes)
      : memory_(&memory), data_(memory.allocate(bytes)), bytes_(bytes) {}
  Block(Block&& o) noexcept { *this = std::move(o); }
  Block& operator=(Block&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Block() {
    if (data_) memory_->release(data_);
  }

  std::byte* get() const { return data_; }
  size_t size() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  const Memory* memory_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// A line of work: what is put into it happens in order. For one thread at a time.
class Queue {
 public:
  virtual ~Queue() = default;
  /// From and to memory of the host. What is uploaded may change once the call returns; what is downloaded is there after `wait`.
  virtual void upload(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void download(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void run(const Executable&, const Frame&) = 0;
  /// Returns when all of it is done; an error of queued work is thrown here.
  virtual void wait() = 0;
};

/// Where work is done at once, by the calling thread.
std::unique_ptr<Queue> make_host_queue();

}  // namespace rlx::backend
