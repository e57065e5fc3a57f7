#include "rlx/backend/cuda/compile/function.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "rlx/backend/cuda/compile/timings.h"
#include "rlx/base/error.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr int kMaxDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

constexpr int kCooperative = 2;                // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
constexpr int kProgrammaticSerialization = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

thread_local bool apart = false;
thread_local AskedTexts* noting = nullptr;

}  // namespace

Apart::Apart() : before_(apart) { apart = true; }
Apart::~Apart() { apart = before_; }

AskedTexts::AskedTexts() : outer_(noting) { noting = this; }
AskedTexts::~AskedTexts() { noting = outer_; }

void AskedTexts::add(const FunctionRef& f) {
  const std::string& text = f->source().text;
  for (const auto& known : texts_) {
    if (known.get() == &text) return;
  }
  texts_.emplace_back(f, &text);
}

Functions::Functions(std::string architecture, const Gpu* gpu)
    : architecture_(std::move(architecture)), gpu_(gpu) {
  overlaps_ = gpu_ != nullptr && gpu_->major() >= 9 && option("RLX_CUDA_OVERLAP").value_or("1") != "0";
}

void Function::launch(Stream_* stream, Grid grid, Grid block, size_t shared_bytes, void** parameters,
                      Together together) const {
  if (grid.x <= 0 || grid.y <= 0 || grid.z <= 0) return;
  owner_.load(*this);
  const Driver& d = owner_.gpu_->use();
  if (shared_bytes > shared_bytes_) {
    check(d.FuncSetAttribute(handle_, kMaxDynamicShared, int(shared_bytes)), "asking for shared memory");
    shared_bytes_ = shared_bytes;
  }
  LaunchAttribute how{.id = together == Together::yes ? kCooperative : kProgrammaticSerialization};
  how.value[0] = 1;
  const LaunchConfig config{unsigned(grid.x),
                            unsigned(grid.y),
                            unsigned(grid.z),
                            unsigned(block.x),
                            unsigned(block.y),
                            unsigned(block.z),
                            unsigned(shared_bytes),
                            stream,
                            &how,
                            together == Together::yes || (owner_.overlaps() && !apart) ? 1u : 0u};
  const Result r = d.LaunchKernelEx(&config, handle_, parameters, nullptr);
  if (r != 0) check(r, cat("the launch of ", source_.entry).c_str());
}

FunctionRef Functions::get(Source source) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Function>& at = known_[source.entry + "\n" + source.text];
  if (!at) {
    at = std::make_shared<Function>(*this, std::move(source));
    waiting_.push_back(at.get());
  }
  if (noting) noting->add(at);
  return at;
}

std::vector<Source> Functions::sources() {
  const std::lock_guard lock(mutex_);
  std::vector<Source> out;
  for (const auto& [text, function] : known_) out.push_back(function->source());
  return out;
}

size_t Functions::compile_waiting() {
  const std::lock_guard lock(mutex_);
  return compile_locked();
}

// The compiler reads one text after the other and then works on all of them at once: those that take long are read first.
size_t Functions::compile_locked() {
  std::vector<Function*> work = std::move(waiting_);
  std::stable_sort(work.begin(), work.end(), [](const Function* a, const Function* b) {
    return a->source_.expected_work() > b->source_.expected_work();
  });
  const Timed timed(cat("all of ", work.size(), " kernels"));
  waiting_.clear();
  std::vector<std::string> done(work.size());
  std::vector<std::exception_ptr> failed(work.size());
  std::atomic<size_t> next{0};
  const auto compile_some = [&] {
    for (size_t i; (i = next++) < work.size();) {
      try {
        done[i] = compile(work[i]->source_, architecture_);
      } catch (...) {
        failed[i] = std::current_exception();
      }
    }
  };
  const size_t threads = std::min<size_t>(work.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(compile_some);
  compile_some();
  for (std::thread& t : others) t.join();
  std::exception_ptr first;
  for (size_t i = 0; i < work.size(); ++i) {
    if (!failed[i]) {
      cubins_[work[i]] = std::move(done[i]);
      continue;
    }
    waiting_.push_back(work[i]);
    if (!first) first = failed[i];
  }
  if (first) std::rethrow_exception(first);
  return work.size();
}

void Functions::load(const Function& f) {
  const std::lock_guard lock(mutex_);
  if (f.handle_) return;
  RLX_CHECK(gpu_ != nullptr, "kernel ", f.source_.entry, " has no GPU to run on");
  auto cubin = cubins_.find(&f);
  if (cubin == cubins_.end()) {
    try {
      compile_locked();
    } catch (const Error&) {
      // Told when it is the one that is needed.
      if (!cubins_.contains(&f)) throw;
    }
    cubin = cubins_.find(&f);
  }
  const Driver& d = gpu_->use();
  const Timed timed(cat("loading ", f.source_.entry));
  Module_* module = nullptr;
  const auto load_and_find = [&] {
    const Result r = d.ModuleLoadData(&module, cubin->second.data());
    return r != 0 ? r : d.ModuleGetFunction(&f.handle_, module, f.source_.entry.c_str());
  };
  if (load_and_find() != 0) {
    // What was kept may come from another compiler of the same version, or be whole and wrong.
    cubin->second = compile(f.source_, architecture_, Kept::is_refused);
    if (const Result r = load_and_find(); r != 0) check(r, cat("loading ", f.source_.entry).c_str());
  }
  cubins_.erase(cubin);
}

}  // namespace rlx::cuda
