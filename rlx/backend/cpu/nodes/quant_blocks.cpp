#include "rlx/backend/cpu/nodes/quant_blocks.h"

#include "rlx/backend/cpu/isa.h"

namespace rlx::cpu {

Support accepts_blocks(const Request& r, const std::string& text) {
  const auto scheme = quant::scheme_from_text(text);
  if (!scheme || !scheme->is_gguf()) return Support::no(text, " keeps scales beside its codes");
  if (QuantMatrix::kind_of(*scheme->format) == nullptr) return Support::no(text, " has no packed product");
  if (r.in[0].dtype() != DType::f32) return Support::no("x is ", r.in[0].dtype());
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

Blocks::Blocks(const std::string& text, int64_t slabs, int64_t n, int64_t k)
    : text_(text),
      scheme_(*quant::scheme_from_text(text)),
      slabs_(slabs),
      n_(n),
      k_(k),
      slab_(quant::code_bytes(scheme_, k, n)) {}

Packing Blocks::packing() const {
  Packing packing{.operand = 1};
  packing.form = cat("blocks ", isa_name(current_isa()), " ", text_, " ", slabs_, "x", n_, "x", k_);
  packing.bytes = slabs_ * slab_;
  packing.make = [b = *this](Team team, const std::byte* data) -> std::shared_ptr<const void> {
    auto made = std::make_shared<std::vector<QuantMatrix>>();
    for (int64_t i = 0; i < b.slabs_; ++i)
      made->push_back(QuantMatrix::pack(team, b.format(), data + i * b.slab_, b.n_, b.k_));
    return {made, made->data()};
  };
  return packing;
}

PackedNow Blocks::now() const {
  const size_t head = round_up(size_t(slabs_) * sizeof(QuantMatrix)), one = lent_bytes();
  return {head + size_t(slabs_) * one,
          [b = *this, head, one](Team team, const std::byte* data, std::byte* memory) -> const void* {
            auto* const made = reinterpret_cast<QuantMatrix*>(memory);
            for (int64_t i = 0; i < b.slabs_; ++i)
              new (made + i) QuantMatrix(QuantMatrix::pack(team, b.format(), data + i * b.slab_, b.n_, b.k_,
                                                           memory + head + size_t(i) * one));
            return made;
          }};
}

QuantProduct block_product(const Shape& x, const Shape& y, ops::Activations activations) {
  const int64_t k = x.dim(-1).value();
  QuantProduct p{.m = x.elements() / k, .x_stride = k};
  p.y_stride = y.dim(-1).value();
  p.exact = activations == ops::Activations::exact;
  return p;
}

size_t workspace_of(const QuantProduct& p) { return p.exact ? 0 : rounded_rows_bytes(p.m, p.x_stride); }

std::string_view activations_note(const QuantProduct& p) { return p.exact ? "" : ", activations in 8 bits"; }

}  // namespace rlx::cpu
