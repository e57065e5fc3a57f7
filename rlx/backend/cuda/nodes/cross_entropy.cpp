// Cross entropy of rows against labels, its gradient, and both with the casts around them (groups/groups.h).
#include "rlx/backend/cuda/kernels/cross_entropy.h"

#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/loss/cross_entropy.h"

namespace rlx::cuda {
namespace {

/// What a node asks for: numbers of operands and results, -1 where there is none.
struct Losses {
  int logits = -1, labels = -1, d_loss = -1, loss = -1, gradient = -1;
  DType wide = DType::f32;  // of losses
  std::string problem;
};

constexpr size_t kKeptBytes = 110 << 10;  // of a row in shared memory: two blocks a processor

bool is_short(DType t) { return t == DType::f16 || t == DType::bf16; }

/// The body of a group: casts to f32, losses, gradients, casts from f32.
class Reader {
 public:
  explicit Reader(const ir::Graph& body) : body_(body) {}

  Losses run() {
    for (const ir::Node* n : body_.nodes()) {
      if (n->op->traits.leaf || n->is<ops::Cast>()) continue;
      if (n->is<ops::SoftmaxCrossEntropyWithLogits>()) {
        take(out_.loss, result_of(n->result()));
      } else if (n->is<ops::SoftmaxCrossEntropyBackward>()) {
        take(out_.d_loss, operand_of(n->inputs[2]));
        take(out_.gradient, result_of(behind_cast(*n)));
      } else {
        return {.problem = cat("no loss is made by ", n->op->name)};
      }
      take(out_.logits, operand_of(before_cast(n->inputs[0])));
      take(out_.labels, operand_of(n->inputs[1]));
      out_.wide = n->shapes[0].dtype();
    }
    const int results = int(out_.loss >= 0) + int(out_.gradient >= 0);
    if (out_.problem.empty() && results != int(body_.outputs().size())) out_.problem = "other results";
    return out_;
  }

 private:
  // One number for all nodes.
  void take(int& to, int number) {
    if (number < 0 || (to >= 0 && to != number))
      out_.problem = "operands or results are not those of one loss";
    to = number;
  }
  int operand_of(ir::Value v) const {
    const auto leaves = body_.leaves();
    const auto it = std::find(leaves.begin(), leaves.end(), v.node);
    return it == leaves.end() ? -1 : int(it - leaves.begin());
  }
  int result_of(ir::Value v) const {
    const auto& outputs = body_.outputs();
    const auto it = std::find(outputs.begin(), outputs.end(), v);
    return it == outputs.end() ? -1 : int(it - outputs.begin());
  }
  ir::Value before_cast(ir::Value v) const {
    const ir::Node& n = body_.node(v);
    const bool widens =
        n.is<ops::Cast>() && n.shapes[0].dtype() == DType::f32 && is_short(body_.shape(n.inputs[0]).dtype());
    return widens ? n.inputs[0] : v;
  }
  ir::Value behind_cast(const ir::Node& n) const {
    for (const ir::Use& u : n.uses) {
      if (u.user != ir::kNoNode && body_.node(u.user).is<ops::Cast>() && n.uses.size() == 1)
        return body_.node(u.user).result();
    }
    return n.result();
  }

  const ir::Graph& body_;
  Losses out_;
};

Losses losses_of(const Request& r) {
  if (r.node.is<ops::Fused>()) {
    const ir::Graph& body = *r.node.as<ops::Fused>().body;
    return body.name() == kLossGroup ? Reader(body).run() : Losses{.problem = "no group of losses"};
  }
  if (r.node.is<ops::SoftmaxCrossEntropyWithLogits>())
    return {.logits = 0, .labels = 1, .loss = 0, .wide = r.out[0].dtype()};
  return {.logits = 0, .labels = 1, .d_loss = 2, .gradient = 0, .wide = r.out[0].dtype()};
}

Support accepts(const Request& r) {
  const Losses s = losses_of(r);
  if (!s.problem.empty()) return Support::no(s.problem);
  const Arg &x = r.in[size_t(s.logits)], &labels = r.in[size_t(s.labels)];
  const auto known = [](DType t) { return t == DType::f32 || is_short(t); };
  if (!known(x.dtype()) || !known(s.wide)) return Support::no("logits are ", x.dtype());
  if (s.gradient >= 0 && !known(r.out[size_t(s.gradient)].dtype())) return Support::no("no such gradient");
  if (x.shape.elements() == 0) return Support::no("there are no logits");
  if (!is_integer(labels.dtype())) return Support::no("labels are ", labels.dtype());
  if (!x.is_row_major() || !labels.is_row_major()) return Support::no("an operand is strided");
  if (x.shape.dim(1).value() >= int64_t(1) << 30) return Support::no("rows are too long");
  for (const Arg& y : r.out) {
    if (!y.is_row_major()) return Support::no("a result is strided");
  }
  return Support::yes();
}

class CrossEntropyStep final : public Step {
 public:
  explicit CrossEntropyStep(const Request& r) : device_(device_of(r)), s_(losses_of(r)) {
    const Arg& x = r.in[size_t(s_.logits)];
    const DType y = s_.gradient >= 0 ? r.out[size_t(s_.gradient)].dtype() : x.dtype();
    rows_ = x.shape.dim(0).value(), columns_ = x.shape.dim(1).value();
    stride_ = s_.d_loss >= 0 ? r.in[size_t(s_.d_loss)].layout.strides[0] : 0;
    threads_ = columns_ >= 8192 ? 512 : columns_ >= 2048 ? 256 : 64;
    bytes_[0] = dtype_size(x.dtype()), bytes_[1] = dtype_size(y);
    if (s_.gradient >= 0 && size_t(columns_) * bytes_[0] <= kKeptBytes)
      shared_ = size_t(columns_) * bytes_[0];
    blocks_ = std::min<int64_t>(
        2048 / threads_, shared_memory_of(device_.functions().architecture()) / int64_t(shared_ + 1024));
    vector_ = int(16 / std::max(bytes_[0], bytes_[1]));
    while (columns_ % vector_ != 0) vector_ /= 2;
    const auto flag = [](bool b) { return b ? "true" : "false"; };
    head_ =
        cat("typedef ", memory_type(x.dtype()), " X;\ntypedef ", memory_type(r.in[size_t(s_.labels)].dtype()),
            " Label;\ntypedef ", memory_type(s_.wide), " Wide;\ntypedef ", memory_type(y),
            " Y;\nconstexpr int kColumns = ", columns_, ", kThreads = ", threads_,
            ";\nconstexpr bool kLoss = ", flag(s_.loss >= 0), ", kGradient = ", flag(s_.gradient >= 0),
            ", kKept = ", flag(shared_ > 0), ", kFast = ", flag(is_short(x.dtype()) || is_short(y)), ";\n");
    wide_ = load(vector_);
    fault_ = new_fault(
        cat("softmax_cross_entropy: element % of labels is out of range; it must be at least 0 and below ",
            columns_));
    note = cat(s_.loss < 0       ? "gradient"
               : s_.gradient < 0 ? "loss"
                                 : "loss and gradient",
               " in one, ", threads_, " threads for each row");
  }

  void run(const Launch& l) const override {
    const std::byte* const x = l.in[s_.logits];
    std::byte* const y = s_.gradient >= 0 ? l.out[s_.gradient] : nullptr;
    const auto fits = [&](const std::byte* p, size_t bytes) {
      return is_aligned(p, bytes * size_t(vector_));
    };
    const FunctionRef& f =
        fits(x, bytes_[0]) && fits(y, bytes_[1]) ? wide_ : narrow_.get([&] { return load(1); });
    const std::byte* const d = s_.d_loss >= 0 ? l.in[s_.d_loss] : nullptr;
    std::byte* const loss = s_.loss >= 0 ? l.out[s_.loss] : nullptr;
    const Stream& q = stream_of(l);
    const bool stays = shared_ > 0 && &f == &wide_ && bytes_[0] * size_t(vector_) == 16;
    const int64_t blocks = stays ? std::min(rows_, int64_t(q.gpu.multiprocessors()) * blocks_) : rows_;
    (*f)(q.handle, {blocks}, {threads_}, shared_, x, l.in[s_.labels], d, stride_, loss, y, rows_, q.fault,
         fault_);
  }

 private:
  FunctionRef load(int vector) const {
    return device_.functions().get(
        {"cross_entropy", cat(head_, "constexpr int kVector = ", vector, ";\n", kCrossEntropy)});
  }

  const Device& device_;
  Losses s_;
  int64_t rows_ = 0, columns_ = 0, stride_ = 0, threads_ = 0, blocks_ = 1;  // blocks: of a processor
  size_t bytes_[2] = {}, shared_ = 0;
  int vector_ = 1;
  std::string head_;
  uint64_t fault_ = 0;
  FunctionRef wide_;
  OnFirstUse<FunctionRef> narrow_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<CrossEntropyStep>(r); }

}  // namespace

void add_cross_entropy(KernelTable& table) {
  table.add<ops::Fused>({"loss_group", accepts, prepare});
  table.add<ops::SoftmaxCrossEntropyWithLogits>({"cross_entropy", accepts, prepare});
  table.add<ops::SoftmaxCrossEntropyBackward>({"cross_entropy_backward", accepts, prepare});
}

}  // namespace rlx::cuda
