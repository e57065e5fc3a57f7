#include "grid.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "fibre.h"
#include "memory.h"

namespace emulated {
namespace {

constexpr unsigned kWarp = 32, kBarriers = 16;
// Addresses of 32 bits: shared memory of the kernel, then that of the launch, all below 2^18 as descriptors of tiles need it, and above 24 bits the rank of
// a block in its cluster, from 1 on; 0 is the own block. They are multiples of what the pointers are.
constexpr unsigned kWindow = 1024, kRankShift = 24, kAlignment = 1024;
constexpr size_t kSharedMost = 227 << 10, kSharedGuard = 4096;
constexpr unsigned char kCanary = 0xa5;

enum class State : unsigned char { ready, meets, at_barrier, in_cluster, pauses, done };

struct Copy {
  void* to;
  const void* from;
  unsigned bytes, there;
  unsigned group;
};

struct Thread {
  State state = State::done;
  Index index{};
  unsigned lane = 0, warp = 0, block = 0;
  // meets
  unsigned mask = 0;
  void* own = nullptr;
  void (*complete)(void* const*, unsigned) = nullptr;
  const char* what = nullptr;
  // at_barrier
  unsigned barrier = 0, result = 0;
  unsigned group = 0;  // of copies
  std::vector<Copy> copies;
  Fibre* fibre = nullptr;  // from its first step to its last
};

struct Barrier {
  unsigned arrived = 0, values = 0, count = 0;
};

struct Block {
  Index index{};
  std::vector<Thread*> threads;
  std::vector<unsigned> ready;  // threads of each warp that can go on
  std::vector<unsigned> meets;  // and that wait for lanes
  std::vector<unsigned> lanes;  // of each warp that have not ended, as a mask
  unsigned alive = 0;
  Barrier barriers[kBarriers];
  unsigned barriers_used = 0;        // the highest number
  std::vector<char> fixed, dynamic;  // its shared memory while another block of the cluster runs
};

class Scheduler {
 public:
  std::string run(const Launch&);

  // What threads ask for.
  void meet(unsigned mask, void* own, void (*complete)(void* const*, unsigned), const char* what);
  unsigned barrier(unsigned id, unsigned count, bool value, bool waits);
  void cluster_arrive();
  void cluster_wait();
  void pause(const char* what);
  void moved() { ++moves_; }
  unsigned shared_address(const void*);
  void* shared(unsigned address, unsigned bytes);
  unsigned map_rank(unsigned address, unsigned rank);
  void copy(void* to, const void* from, unsigned bytes, unsigned there);
  void commit() { ++now_->group; }
  void wait(unsigned left);
  [[noreturn]] void fail(const std::string& text);
  void fault(int signal, void* address);

  static Scheduler* current;
  sigjmp_buf way_out;

 private:
  unsigned random(unsigned below) {
    seed_ ^= seed_ << 13, seed_ ^= seed_ >> 7, seed_ ^= seed_ << 17;
    return below <= 1 ? 0 : unsigned(seed_ >> 20) % below;
  }
  std::string run_cluster(Index first);
  void begin_block(Block&, Index index, unsigned rank);
  void check_block(Block&);
  bool run_some(unsigned block);
  void resume(Thread&);
  void enter(unsigned block);
  void wake(Thread& t) {
    t.state = State::ready;
    ++blocks_[t.block].ready[t.warp];
  }
  void sleep(State);
  void release(Block&, unsigned id);
  void turn_cluster();
  void finished(Thread&);
  void try_meeting(Block&, unsigned warp, unsigned mask);
  [[noreturn]] void stuck();
  std::string where() const;
  static void thread_main();

  const Launch* launch_ = nullptr;
  Machine machine_{};
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Fibre*> free_;
  std::vector<Block> blocks_;
  Thread* now_ = nullptr;
  unsigned in_ = 0;  // the block whose shared memory is in place
  unsigned cluster_arrived_ = 0, cluster_waiting_ = 0;
  unsigned long long moves_ = 0, woken_ = 0, seed_ = 0;
  size_t fixed_bytes_ = 0;
  unsigned fixed_window_ = 0, dynamic_window_ = 0;
  char* dynamic_ = nullptr;
  std::unique_ptr<char[]> dynamic_memory_;
  std::string problem_;
};

Scheduler* Scheduler::current = nullptr;

std::string text(Index i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}
unsigned volume(Index i) { return i.x * i.y * i.z; }

std::string Scheduler::where() const {
  return "kernel " + launch_->name + ", block " + text(blocks_[now_->block].index) + ", thread " +
         text(now_->index);
}

void Scheduler::fail(const std::string& what) {
  problem_ = where() + ": " + what;
  siglongjmp(way_out, 1);
}

void Scheduler::thread_main() {
  Scheduler& s = *current;
  s.launch_->kernel.run(s.launch_->parameters);
  Thread& t = *s.now_;
  s.finished(t);
  // The next thread that begins takes this stack, which the cache still has.
  Fibre* const own = t.fibre;
  t.fibre = nullptr;
  s.free_.push_back(own);
  own->leave();
  std::abort();
}

void Scheduler::finished(Thread& t) {
  ++moves_;
  t.state = State::done;
  Block& b = blocks_[t.block];
  --b.alive;
  b.lanes[t.warp] &= ~(1u << t.lane);
  // Those who wait for all of a block, or for lanes of its warp, wait for one less.
  for (unsigned id = 0; b.barriers_used > id; ++id)
    if (b.barriers[id].arrived > 0) release(b, id);
  const unsigned first = t.warp * kWarp;
  for (unsigned lane = 0; b.meets[t.warp] > 0 && lane < kWarp && first + lane < b.threads.size(); ++lane) {
    const Thread& other = *b.threads[first + lane];
    if (other.state == State::meets && (other.mask >> t.lane & 1)) {
      try_meeting(b, t.warp, other.mask);
    }
  }
  turn_cluster();
}

void Scheduler::sleep(State s) {
  Thread* const t = now_;
  t->state = s;
  t->fibre->leave();
}

// All lanes of the mask that are still there have come with the same wish: the wish is met.
void Scheduler::try_meeting(Block& b, unsigned warp, unsigned mask) {
  if (b.meets[warp] < unsigned(__builtin_popcount(mask & b.lanes[warp]))) return;
  void* all[kWarp] = {};
  const unsigned first = warp * kWarp;
  void (*complete)(void* const*, unsigned) = nullptr;
  unsigned there = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(mask >> lane & 1) || first + lane >= b.threads.size()) continue;
    Thread& t = *b.threads[first + lane];
    if (t.state == State::done) continue;
    if (t.state != State::meets || t.mask != mask || (complete && t.complete != complete)) return;
    complete = t.complete;
    all[lane] = t.own;
    there |= 1u << lane;
  }
  if (!complete) return;
  b.meets[warp] -= unsigned(__builtin_popcount(there));
  complete(all, there);
  ++moves_;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (there >> lane & 1) wake(*b.threads[first + lane]);
}

void Scheduler::meet(unsigned mask, void* own, void (*complete)(void* const*, unsigned), const char* what) {
  Thread& t = *now_;
  if (!(mask >> t.lane & 1)) fail(std::string(what) + ": the mask does not name the lane itself");
  t.mask = mask, t.own = own, t.complete = complete, t.what = what;
  t.state = State::meets;
  ++blocks_[t.block].meets[t.warp];
  try_meeting(blocks_[t.block], t.warp, mask);
  t.fibre->leave();
}

void Scheduler::release(Block& b, unsigned id) {
  Barrier& at = b.barriers[id];
  const unsigned wanted = at.count ? at.count : b.alive;
  if (at.arrived < wanted) return;
  const unsigned values = at.values;
  at = {};
  ++moves_;
  for (Thread* t : b.threads) {
    if (t->state != State::at_barrier || t->barrier != id) continue;
    t->result = values;
    wake(*t);
  }
}

unsigned Scheduler::barrier(unsigned id, unsigned count, bool value, bool waits) {
  if (id >= kBarriers) fail("a block has 16 barriers, not number " + std::to_string(id));
  Thread& t = *now_;
  Barrier& at = blocks_[t.block].barriers[id];
  if (at.arrived > 0 && at.count != count)
    fail("threads come to barrier " + std::to_string(id) + " with different counts");
  blocks_[t.block].barriers_used = std::max(blocks_[t.block].barriers_used, id + 1);
  at.count = count;
  ++at.arrived;
  at.values += value;
  if (waits) t.state = State::at_barrier, t.barrier = id, t.what = "a barrier of the block";
  release(blocks_[t.block], id);
  if (waits) t.fibre->leave();
  return t.result;
}

void Scheduler::cluster_arrive() { ++cluster_arrived_; }
void Scheduler::cluster_wait() {
  Thread& t = *now_;
  t.state = State::in_cluster;
  t.what = "a barrier of the cluster";
  ++cluster_waiting_;
  turn_cluster();
  t.fibre->leave();
}
void Scheduler::turn_cluster() {
  if (cluster_waiting_ == 0) return;
  unsigned alive = 0;
  for (const Block& b : blocks_) alive += b.alive;
  if (cluster_waiting_ < alive) return;
  if (cluster_arrived_ < cluster_waiting_) fail("barrier.cluster.wait without an arrival of every thread");
  cluster_arrived_ = cluster_waiting_ = 0;
  ++moves_;
  for (Block& b : blocks_)
    for (Thread* t : b.threads)
      if (t->state == State::in_cluster) wake(*t);
}

void Scheduler::pause(const char* what) {
  now_->what = what;
  sleep(State::pauses);
}

unsigned Scheduler::shared_address(const void* given) {
  const char* const p = static_cast<const char*>(given);
  if (p >= launch_->kernel.shared_begin && p < launch_->kernel.shared_end)
    return fixed_window_ + unsigned(p - launch_->kernel.shared_begin);
  if (p >= dynamic_ && p <= dynamic_ + kSharedMost) return dynamic_window_ + unsigned(p - dynamic_);
  fail("an address that is not of shared memory is taken for one");
}

void* Scheduler::shared(unsigned address, unsigned bytes) {
  const unsigned rank = address >> kRankShift, place = address & ((1u << kRankShift) - 1);
  if (rank > blocks_.size()) fail("an address of a block that is not in the cluster");
  const bool dynamic = place >= dynamic_window_;
  const size_t at = size_t(place) - (dynamic ? dynamic_window_ : fixed_window_),
               all = dynamic ? launch_->shared_bytes : fixed_bytes_;
  if (at > all || at + bytes > all)
    fail("shared memory has " + std::to_string(all) +
         (dynamic ? " bytes of the launch" : " bytes of the kernel") + "; " + std::to_string(bytes) + " at " +
         std::to_string(at) + " are asked for");
  if (bytes > 0 && bytes <= 16 && place % (bytes & (~bytes + 1)) != 0)
    fail(std::to_string(bytes) + " bytes of shared memory at " + std::to_string(at) +
         ", which is no multiple");
  if (rank == 0 || rank - 1 == in_) return (dynamic ? dynamic_ : launch_->kernel.shared_begin) + at;
  Block& other = blocks_[rank - 1];
  if (other.alive == 0) fail("a block of the cluster whose shared memory is used has ended");
  return (dynamic ? other.dynamic : other.fixed).data() + at;
}
unsigned Scheduler::map_rank(unsigned address, unsigned rank) {
  return (address & ((1u << kRankShift) - 1)) | (rank + 1) << kRankShift;
}

void Scheduler::copy(void* to, const void* from, unsigned bytes, unsigned there) {
  if (there > bytes) fail("cp.async: more bytes are read than copied");
  if (reinterpret_cast<size_t>(to) % bytes != 0 || (there > 0 && reinterpret_cast<size_t>(from) % bytes != 0))
    fail("cp.async: " + std::to_string(bytes) + " bytes at an address that is no multiple");
  const bool now = random(2) == 0;
  const Copy c{to, from, bytes, there, now_->group};
  if (now) {
    std::memcpy(to, from, there);
    std::memset(static_cast<char*>(to) + there, 0, bytes - there);
    return;
  }
  now_->copies.push_back(c);
}
void Scheduler::wait(unsigned left) {
  Thread& t = *now_;
  size_t kept = 0;
  for (size_t i = 0; i < t.copies.size(); ++i) {
    const Copy c = t.copies[i];
    if (c.group + left >= t.group) {  // of the last groups, or of one that is not committed
      t.copies[kept++] = c;
      continue;
    }
    std::memcpy(c.to, c.from, c.there);
    std::memset(static_cast<char*>(c.to) + c.there, 0, c.bytes - c.there);
  }
  t.copies.resize(kept);
}

void Scheduler::resume(Thread& t) {
  now_ = &t;
  machine_.thread = t.index;
  machine_.lane = t.lane;
  --blocks_[t.block].ready[t.warp];
  if (!t.fibre) {
    if (free_.empty()) {
      fibres_.push_back(std::make_unique<Fibre>());
      free_.push_back(fibres_.back().get());
    }
    t.fibre = free_.back();
    free_.pop_back();
    t.fibre->start(thread_main);
  }
  t.fibre->resume();
}

// One warp goes on, chosen by chance: each of its threads as far as it comes alone.
bool Scheduler::run_some(unsigned number) {
  Block& b = blocks_[number];
  unsigned warps = 0;
  for (const unsigned r : b.ready) warps += r > 0;
  if (warps == 0) return false;
  unsigned chosen = random(warps), warp = 0;
  for (;; ++warp) {
    if (b.ready[warp] > 0 && chosen-- == 0) break;
  }
  if (in_ != number) enter(number);
  const unsigned first = warp * kWarp, count = std::min(kWarp, unsigned(b.threads.size()) - first);
  const bool backwards = random(2) != 0;
  for (unsigned i = 0; i < count; ++i) {
    Thread& t = *b.threads[first + (backwards ? count - 1 - i : i)];
    if (t.state == State::ready) resume(t);
  }
  return true;
}

// Shared memory of a block takes its place in the window; that of the one before is kept.
void Scheduler::enter(unsigned number) {
  Block &old = blocks_[in_], &next = blocks_[number];
  char* const fixed = launch_->kernel.shared_begin;
  old.fixed.assign(fixed, fixed + fixed_bytes_);
  old.dynamic.assign(dynamic_, dynamic_ + launch_->shared_bytes);
  std::copy(next.fixed.begin(), next.fixed.end(), fixed);
  std::copy(next.dynamic.begin(), next.dynamic.end(), dynamic_);
  in_ = number;
  machine_.block = next.index;
  machine_.rank = number;
}

void Scheduler::begin_block(Block& b, Index index, unsigned rank) {
  const Index size = launch_->block;
  const unsigned count = volume(size), warps = (count + kWarp - 1) / kWarp;
  b.index = index;
  b.threads.resize(count);
  b.ready.assign(warps, 0);
  b.meets.assign(warps, 0);
  b.lanes.assign(warps, 0);
  b.alive = count;
  for (Barrier& at : b.barriers) at = {};
  b.barriers_used = 0;
  while (threads_.size() < (rank + 1) * size_t(count)) threads_.push_back(std::make_unique<Thread>());
  for (unsigned i = 0; i < count; ++i) {
    Thread& t = *threads_[rank * size_t(count) + i];
    t.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    t.lane = i % kWarp, t.warp = i / kWarp, t.block = rank;
    t.group = 0;
    t.copies.clear();
    b.threads[i] = &t;
    t.fibre = nullptr;
    b.lanes[t.warp] |= 1u << t.lane;
    wake(t);
  }
}

void Scheduler::stuck() {
  std::string out;
  int told = 0;
  for (const Block& b : blocks_) {
    for (const Thread* t : b.threads) {
      if (t->state == State::done) continue;
      if (told++ >= 4) continue;
      out += (told > 1 ? "; " : "") + std::string("block ") + text(b.index) + " thread " + text(t->index) +
             " waits at " + (t->what ? t->what : "?");
      if (t->state == State::meets) {
        char mask[16];
        std::snprintf(mask, sizeof mask, "0x%08x", t->mask);
        out += std::string(" for ") + mask;
      }
    }
  }
  problem_ = "kernel " + launch_->name + ": threads wait for each other for ever (" + std::to_string(told) +
             "): " + out;
  siglongjmp(way_out, 1);
}

void Scheduler::check_block(Block& b) {
  for (size_t i = 0; i < kSharedGuard; ++i) {
    if (static_cast<unsigned char>(dynamic_[launch_->shared_bytes + i]) == kCanary) continue;
    problem_ = "kernel " + launch_->name + ", block " + text(b.index) + ": byte " + std::to_string(i) +
               " behind the " + std::to_string(launch_->shared_bytes) +
               " bytes of shared memory of the launch was written";
    siglongjmp(way_out, 1);
  }
}

std::string Scheduler::run_cluster(Index first) {
  const Index c = launch_->kernel.cluster;
  blocks_.resize(volume(c));
  cluster_arrived_ = 0;
  std::memset(launch_->kernel.shared_begin, 0xff, fixed_bytes_);
  std::memset(dynamic_, 0xff, launch_->shared_bytes);
  for (unsigned rank = 0; rank < blocks_.size(); ++rank) {
    const Index index{first.x + rank % c.x, first.y + rank / c.x % c.y, first.z + rank / (c.x * c.y)};
    begin_block(blocks_[rank], index, rank);
    if (blocks_.size() > 1) {
      blocks_[rank].fixed.assign(fixed_bytes_, char(0xff));
      blocks_[rank].dynamic.assign(launch_->shared_bytes, char(0xff));
    }
  }
  in_ = 0;
  machine_.block = blocks_[0].index;
  machine_.rank = 0, machine_.ranks = unsigned(blocks_.size());
  for (;;) {
    bool ran = false;
    const unsigned turn = random(unsigned(blocks_.size()));
    for (unsigned i = 0; i < blocks_.size(); ++i)
      while (run_some((i + turn) % unsigned(blocks_.size()))) ran = true;
    if (ran) continue;
    unsigned alive = 0, pausing = 0;
    const bool news = moves_ != woken_;
    for (const Block& b : blocks_) {
      alive += b.alive;
      for (Thread* t : b.threads) {
        if (t->state != State::pauses) continue;
        ++pausing;
        if (news) wake(*t);
      }
    }
    if (alive == 0) break;
    if (pausing == 0 || !news) stuck();
    woken_ = moves_;
  }
  for (unsigned rank = 0; rank < blocks_.size(); ++rank) {
    if (rank != in_) continue;
    check_block(blocks_[rank]);
  }
  return "";
}

// ---- as functions, for kernels ----
#define FORWARD(name) [](auto... x) { return Scheduler::current->name(x...); }

void on_signal(int number, siginfo_t* info, void*) { Scheduler::current->fault(number, info->si_addr); }

void Scheduler::fault(int number, void* address) {
  if (now_ == nullptr) _exit(139);
  std::string what =
      number == SIGFPE ? "a division of integers by 0" : "reads or writes " + describe(address);
  if (now_->fibre && now_->fibre->holds(address)) what = "its stack has no more room";
  problem_ = where() + ": " + what;
  siglongjmp(way_out, 1);
}

/// Faults of kernels come here while a launch runs.
class Signals {
 public:
  Signals() {
    static char stack[64 << 10];
    stack_t alternate{};
    alternate.ss_sp = stack, alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, &before_stack_);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < 3; ++i) sigaction(kCaught[i], &action, &before_[i]);
  }
  ~Signals() {
    for (size_t i = 0; i < 3; ++i) sigaction(kCaught[i], &before_[i], nullptr);
    sigaltstack(&before_stack_, nullptr);
  }

 private:
  static constexpr int kCaught[] = {SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction before_[3];
  stack_t before_stack_{};
};

std::string Scheduler::run(const Launch& launch) {
  launch_ = &launch;
  const Kernel& k = launch.kernel;
  fixed_bytes_ = size_t(k.shared_end - k.shared_begin);
  if (!dynamic_memory_) {
    dynamic_memory_ = std::make_unique<char[]>(kSharedMost + kSharedGuard + 8192);
    const char* const seed = std::getenv("EMULATED_SEED");
    seed_ = 0x9e3779b97f4a7c15ull * (1 + (seed ? std::strtoull(seed, nullptr, 10) : 0));
  }
  // Shared memory begins at a multiple of 16 and of nothing more, unless the kernel says so.
  const size_t alignment = std::max(16u, k.dynamic_alignment);
  const auto place = [](const char* p) { return unsigned(reinterpret_cast<size_t>(p) % kAlignment); };
  dynamic_ = dynamic_memory_.get() + kAlignment - place(dynamic_memory_.get()) +
             (alignment >= kAlignment ? 0 : alignment);
  fixed_window_ = kWindow + place(k.shared_begin);
  dynamic_window_ =
      (fixed_window_ + unsigned(fixed_bytes_) + kAlignment - 1) / kAlignment * kAlignment + place(dynamic_);
  std::memset(dynamic_ + launch.shared_bytes, kCanary, kSharedGuard);
  machine_ = {};
  machine_.block_size = launch.block, machine_.grid = launch.grid;
  machine_.dynamic = dynamic_;
  machine_.meet = FORWARD(meet);
  machine_.barrier = FORWARD(barrier);
  machine_.cluster_arrive = FORWARD(cluster_arrive);
  machine_.cluster_wait = FORWARD(cluster_wait);
  machine_.pause = FORWARD(pause);
  machine_.moved = FORWARD(moved);
  machine_.shared_address = FORWARD(shared_address);
  machine_.shared = FORWARD(shared);
  machine_.map_rank = FORWARD(map_rank);
  machine_.copy = FORWARD(copy);
  machine_.commit = FORWARD(commit);
  machine_.wait = FORWARD(wait);
  machine_.fail = [](const char* what) { Scheduler::current->fail(what); };
  *k.machine = &machine_;
  problem_.clear();
  blocks_.clear();
  free_.clear();
  for (const auto& f : fibres_) free_.push_back(f.get());
  cluster_waiting_ = 0;
  const Index c = k.cluster, g = launch.grid;
  if (g.x % c.x || g.y % c.y || g.z % c.z)
    return "the grid " + text(g) + " is no multiple of the cluster " + text(c);
  const Signals signals;
  if (sigsetjmp(way_out, 1) != 0) {
    now_ = nullptr;
    return problem_;
  }
  for (unsigned z = 0; z < g.z; z += c.z)
    for (unsigned y = 0; y < g.y; y += c.y)
      for (unsigned x = 0; x < g.x; x += c.x) run_cluster({x, y, z});
  now_ = nullptr;
  return "";
}

}  // namespace

std::string run(const Launch& launch) {
  static std::mutex mutex;
  static Scheduler* const scheduler = new Scheduler;  // never destroyed: fibres outlive the order of statics
  const std::lock_guard lock(mutex);
  Scheduler::current = scheduler;
  const size_t most = kSharedMost, fixed = size_t(launch.kernel.shared_end - launch.kernel.shared_begin);
  const unsigned threads = volume(launch.block);
  if (threads == 0 || threads > 1024)
    return "kernel " + launch.name + ": a block of " + std::to_string(threads) + " threads";
  if (launch.kernel.most_threads && threads > launch.kernel.most_threads)
    return "kernel " + launch.name + ": " + std::to_string(threads) + " threads, but its bounds say " +
           std::to_string(launch.kernel.most_threads);
  if (fixed > (48 << 10) || fixed + launch.shared_bytes > most)
    return "kernel " + launch.name + ": " + std::to_string(fixed) + " and " +
           std::to_string(launch.shared_bytes) + " bytes of shared memory are too many";
  return scheduler->run(launch);
}

}  // namespace emulated
