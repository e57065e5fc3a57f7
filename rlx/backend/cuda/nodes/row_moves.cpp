#include "rlx/backend/cuda/nodes/row_moves.h"

#include <algorithm>

#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/row_moves.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {

using ops::HeadLayout;

Lanes lanes_of(const Arg& x, const ops::RopeAttrs& a) {
  const std::vector<int64_t> n = sizes_of(x.shape), s = x.layout.strides;
  if (a.layout == HeadLayout::bshd) return {n, s};
  if (a.layout == HeadLayout::bhsd) return {{n[0], n[2], n[1], n[3]}, {s[0], s[2], s[1], s[3]}};
  const size_t last = n.size() - 1;
  return {{last == 2 ? n[0] : 1, n[last - 1], n[last] / a.head_dim, a.head_dim},
          {last == 2 ? s[0] : 0, s[last - 1], a.head_dim, 1}};
}

std::string problem_of(const RowMove& m) {
  if (m.dtype != DType::f32 && m.dtype != DType::f16 && m.dtype != DType::bf16)
    return cat("rows of ", m.dtype);
  if (m.x.sizes[3] > 1 && m.x.strides[3] != 1) return "lanes are not neighbours";
  if (m.turns && m.x.sizes[3] % 2 != 0) return "an odd number of lanes";
  if (m.turns && m.positions != kNoMember && !is_integer(m.position_type))
    return cat("positions are ", m.position_type);
  if (m.starts != kNoMember && m.starts_type != DType::i32 && m.starts_type != DType::i64)
    return cat("starts are ", m.starts_type);
  if (m.rows() * m.x.sizes[3] >= int64_t(1) << 31) return "2^31 elements or more";
  return {};
}

int64_t width_of(const RowMove& m, bool wide) {
  const int64_t v = 16 / int64_t(dtype_size(m.dtype)), lanes = m.x.sizes[3];
  bool fits = wide && !m.interleaved && (m.turns ? lanes / 2 : lanes) % v == 0;
  if (m.turns) fits = fits && m.table_columns % v == 0;
  for (int i = 0; i < 3; ++i)
    fits = fits && m.x.strides[size_t(i)] % v == 0 && m.to_strides[size_t(i)] % v == 0;
  return fits && m.column % v == 0 ? v : 1;
}

namespace {

std::string offset(const std::vector<int64_t>& strides) {
  return cat("i64(batch) * ", strides[0], " + i64(row) * ", strides[1], " + i64(head) * ", strides[2]);
}

std::string pointer(const MemberName& name, Member a, DType t) {
  return cat("reinterpret_cast<", memory_type(t), "*>(", name(a), ")");
}

}  // namespace

std::string move_text(const RowMove& m, int64_t v, const MemberName& name) {
  std::string body, shift;
  if (m.starts != kNoMember) {
    body += cat("    i64 start = i64(", pointer(name, m.starts, m.starts_type),
                "[1]);\n    start = start < 0 ? 0 : start > ", m.room, " ? ", m.room, " : start;\n");
    shift = cat(" + start * ", m.to_strides[1]);
  }
  body +=
      cat("    auto* const to = ", pointer(name, m.to, m.dtype), " + ", offset(m.to_strides), shift, ";\n");
  if (!m.turns) return body + cat("    store(to + lane, load<", v, ">(from + lane));\n");
  std::string place = "row";
  if (m.positions != kNoMember) {
    body += cat("    const u32 which = ", m.positions_by_batch ? cat("batch * ", m.x.sizes[1], "u + ") : "",
                "row;\n    const i64 place = i64(", pointer(name, m.positions, m.position_type),
                "[which]);\n    if (place < 0 || place >= ", m.table_rows,
                ") { *p.fault = (p.number << 40) + u64(which); return; }\n");
    place = "place";
  }
  const int64_t lanes = m.x.sizes[3];
  const std::string at = cat(" + i64(", place, ") * ", m.table_columns, " + lane");
  return body + cat("    turn<", v, ">(from, to, ",
                    m.interleaved ? "2 * lane, 2 * lane + 1" : cat("lane, lane + ", lanes / 2), ", ",
                    pointer(name, m.cosines, m.table_type), at, ", ", pointer(name, m.sines, m.table_type),
                    at, ", ", m.inverse ? "-1.0f" : "1.0f", ");\n");
}

std::vector<Member> members_of(const std::vector<RowMove>& moves) {
  std::vector<Member> out;
  for (const RowMove& m : moves) {
    for (const Member a : {m.from, m.to, m.starts, m.cosines, m.sines, m.positions}) {
      if (a != kNoMember && std::find(out.begin(), out.end(), a) == out.end()) out.push_back(a);
    }
  }
  return out;
}

uint64_t fault_of(const std::vector<RowMove>& moves) {
  uint64_t out = 0;
  for (const RowMove& m : moves) {
    if (m.positions != kNoMember)
      out = new_fault(cat("rope: element % of positions is out of range; it must be at least 0 and below ",
                          m.table_rows));
  }
  return out;
}

RowMoves::RowMoves(const Device& device, std::vector<RowMove> moves)
    : device_(device), moves_(std::move(moves)) {
  std::erase_if(moves_, [](const RowMove& m) { return m.rows() * m.x.sizes[3] == 0; });
  members_ = members_of(moves_), fault_ = fault_of(moves_);
  wide_ = load(true);
  narrow_ = load(false);
  if (makes_phases(device.functions()) && !moves_.empty()) phase_ = load_phase();
}

std::string RowMoves::function_text(bool wide, int64_t& threads) const {
  const auto name = [&](Member a) {
    return cat("p.m", std::find(members_.begin(), members_.end(), a) - members_.begin());
  };
  std::string fields, body;
  for (size_t i = 0; i < members_.size(); ++i) fields += cat("  char* m", i, ";\n");
  threads = 0;
  for (const RowMove& m : moves_) {
    const int64_t v = width_of(m, wide), lanes = m.x.sizes[3], each = (m.turns ? lanes / 2 : lanes) / v;
    const int64_t count = m.rows() * each;
    threads += count;
    body += cat("  if (e < ", count, ") {\n    const int lane = int(e % ", each, "u) * ", v,
                ";\n    const u32 over = e / ", each, "u, head = over % ", m.x.sizes[2], "u, above = over / ",
                m.x.sizes[2], "u, row = above % ", m.x.sizes[1], "u, batch = above / ", m.x.sizes[1], "u;\n");
    body += cat("    const auto* const from = ", pointer(name, m.from, m.dtype), " + ", offset(m.x.strides),
                " + ", m.column, ";\n", move_text(m, v, name));
    body += cat("    return;\n  }\n  e -= ", count, ";\n");
  }
  return cat("struct Words {\n", fields, "  u64* fault;\n  u64 number;\n};\n", kRowMoves,
             "inline void move_one(const Words& p, u32 e) {\n", body, "}\n");
}

RowMoves::Loaded RowMoves::load(bool wide) const {
  int64_t threads = 0;
  const std::string text = cat(function_text(wide, threads),
                               "extern \"C\" __global__ void __launch_bounds__(256) row_moves(Words p) {\n",
                               "  move_one(p, blockIdx.x * 256 + threadIdx.x);\n}\n");
  return {moves_.empty() ? nullptr : device_.functions().get({"row_moves", text}), blocks_for(threads)};
}

PhaseRef RowMoves::load_phase() const {
  int64_t threads = 0;
  Phase out{.text = function_text(true, threads)};
  // Warps of all blocks before others of the same block.
  out.text += cat("inline void run(const Words& p, Ring&, u8*) {\n  for (u32 e = (threadIdx.x / 32 * ",
                  "kBlocks + blockIdx.x) * 32 + threadIdx.x % 32; e < ", threads,
                  "; e += kBlocks * kChainThreads) move_one(p, e);\n}\n");
  return std::make_shared<const Phase>(std::move(out));
}

void RowMoves::run(const Launch& l) const {
  if (moves_.empty()) return;
  const Stream& s = *static_cast<Stream*>(l.stream);
  std::vector<uint64_t> words;
  uint64_t all = 0;
  for (const Member m : members_) {
    words.push_back(reinterpret_cast<uintptr_t>(m >= 0 ? l.in[m] : l.out[-1 - m]));
    all |= words.back();
  }
  words.push_back(reinterpret_cast<uintptr_t>(s.fault));
  words.push_back(fault_);
  const Loaded& use = all % 16 == 0 ? wide_ : narrow_;
  const auto launch = [&use, params = words, &s] {
    void* parameters[] = {const_cast<uint64_t*>(params.data()), nullptr};
    use.function->launch(s.handle, use.grid, {256}, 0, parameters);
  };
  if (Chain* const chain = phase_ && &use == &wide_ ? chain_of(l) : nullptr) {
    chain->add(phase_, std::move(words), launch);
  } else {
    stream_of(l);  // behind what waits
    launch();
  }
}

}  // namespace rlx::cuda
