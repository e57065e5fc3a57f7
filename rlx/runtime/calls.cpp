// Other forms of a run: by position, as bytes, with values that stay.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "rlx/ir/call.h"
#include "rlx/runtime/attempt.h"
#include "rlx/runtime/core.h"

namespace rlx {
namespace {

bool is_short_real(DType t) { return t == DType::f16 || t == DType::bf16 || t == DType::f32; }

// Why bytes of this type cannot be a value of the declared one; empty when they can.
std::string bytes_refused(std::string_view name, std::span<const std::byte> bytes, DType dtype,
                          const Shape& declared) {
  if (!declared.is_static()) return cat("'", name, "' is ", declared, "; bytes alone do not tell its size");
  if (dtype != declared.dtype() && !(is_short_real(dtype) && is_short_real(declared.dtype())))
    return cat("'", name, "' is ", declared, ", the value is ", dtype,
               "; only f16, bf16 and f32 stand for each other");
  const Shape given = declared.with_dtype(dtype);
  if (int64_t(bytes.size()) == given.size_bytes()) return {};
  return cat("'", name, "' is ", given, ", which is ", given.size_bytes(), " bytes; got ", bytes.size());
}

// Such bytes as a literal of the declared type.
Literal declared_literal(std::span<const std::byte> bytes, DType dtype, const Shape& declared) {
  const Literal value = Literal::copy_of(declared.with_dtype(dtype), bytes);
  return dtype == declared.dtype() ? value : value.cast(declared.dtype());
}

const Port* find_port(const std::vector<Port>& ports, std::string_view name) {
  const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
  return it == ports.end() ? nullptr : &*it;
}

std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> out;
  for (const Port& p : ports) out.push_back(p.name);
  return out;
}

std::string not_among(const std::vector<Port>& ports, std::string_view what, std::string_view name) {
  const std::string near = nearest_name(std::string(name), names_of(ports));
  return cat("'", name, "' is not ", what, near.empty() ? "" : cat("; did you mean '", near, "'"));
}

// The output a handle is refreshed from: by name, or out0, out1, ..
std::optional<size_t> output_of_handle(const std::vector<Port>& outputs, std::string_view name) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return i;
  }
  size_t index = 0;
  if (!name.starts_with("out")) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index >= outputs.size())
    return std::nullopt;
  return index;
}

}  // namespace

Outputs CompiledGraph::run_slots(std::span<const TensorView> values) {
  const auto& ports = inputs();
  if (values.size() != ports.size())
    throw invalid("run_slots: ", values.size(), " values for ", ports.size(), " inputs of graph '",
                  graph().name(), "'");
  Input list[16];
  if (values.size() > std::size(list)) {
    std::vector<Input> many;
    for (size_t i = 0; i < values.size(); ++i) many.push_back({ports[i].name, values[i]});
    return run(std::span<const Input>(many));
  }
  for (size_t i = 0; i < values.size(); ++i) list[i] = {ports[i].name, values[i]};
  return run(std::span<const Input>(list, values.size()));
}

std::vector<const std::byte*> CompiledGraph::run_raw(std::span<const Input> inputs) {
  const Outputs out = run(inputs);
  std::vector<const std::byte*> addresses;
  for (size_t i = 0; i < out.size(); ++i) addresses.push_back(out[i].data);
  return addresses;
}

std::vector<TypedBytes> CompiledGraph::run_typed(std::span<const TypedInput> values) {
  std::vector<Literal> literals;
  std::vector<Input> list;
  std::vector<std::string> problems;
  literals.reserve(values.size());
  for (const TypedInput& in : values) {
    const Port* port = find_port(inputs(), in.name);
    std::string wrong = port ? bytes_refused(in.name, in.bytes, in.dtype, port->shape)
                             : not_among(inputs(), "an input", in.name);
    if (wrong.empty()) {
      literals.push_back(declared_literal(in.bytes, in.dtype, port->shape));
      list.push_back({in.name, view(literals.back())});
    } else {
      problems.push_back(std::move(wrong));
    }
  }
  if (!problems.empty()) {
    for (const Port& p : inputs()) {
      const auto is_it = [&](const TypedInput& in) { return in.name == p.name; };
      if (std::ranges::none_of(values, is_it) && !handles_.contains(p.name))
        problems.push_back(cat("input '", p.name, "' (", p.shape, ") is missing"));
    }
    throw invalid("run_typed: ", join(problems, "; "), "; graph '", graph().name(), "' takes ",
                  inputs().empty() ? "none" : join(names_of(inputs())));
  }
  const Outputs out = run(std::span<const Input>(list));
  std::vector<TypedBytes> results;
  for (size_t i = 0; i < out.size(); ++i) {
    TypedBytes& to = results.emplace_back();
    to.dtype = out[i].dtype;
    to.bytes.assign(out[i].data, out[i].data + out[i].bytes());
  }
  return results;
}

void CompiledGraph::set_param_typed(const std::string& name, std::span<const std::byte> bytes, DType dtype) {
  const Port* port = find_port(params(), name);
  if (!port)
    throw invalid("set_param_typed: ", not_among(params(), "a param", name),
                  "; known: ", params().empty() ? "none" : join(names_of(params())));
  if (const std::string wrong = bytes_refused(name, bytes, dtype, port->shape); !wrong.empty())
    throw invalid("set_param_typed: ", wrong);
  set_param(name, declared_literal(bytes, dtype, port->shape));
}

Attempt<NamedLiterals> CompiledGraph::try_run(const NamedLiterals& inputs) {
  return attempt([&] { return run(inputs); });
}

void CompiledGraph::bind_handle(const std::string& name, Literal value) {
  check_alone("bind_handle");
  const Port* input = find_port(inputs(), name);
  const auto output = output_of_handle(outputs(), name);
  if (!input && !output) {
    std::vector<std::string> known;
    for (const Port& p : inputs()) known.push_back(p.name);
    for (const Port& p : outputs()) known.push_back(p.name);
    throw invalid("bind_handle: '", name, "' is no input and no output of graph '", graph().name(),
                  "'; it has ", join(known));
  }
  const Shape& declared = input ? input->shape : outputs()[*output].shape;
  if (!ir::may_be(declared, value.shape()))
    throw invalid("bind_handle: '", name, "' is ", declared, ", the value is ", value.shape());
  handles_.insert_or_assign(name, std::move(value));
}

const Literal& CompiledGraph::read_handle(const std::string& name) const {
  check_alone("read_handle");
  const auto it = handles_.find(name);
  if (it == handles_.end()) throw invalid("read_handle: '", name, "' is not bound; bind it with bind_handle");
  return it->second;
}

void CompiledGraph::release_handle(const std::string& name) {
  check_alone("release_handle");
  if (handles_.erase(name) == 0) throw invalid("release_handle: '", name, "' is not bound");
}

void CompiledGraph::set_active_extent(std::optional<std::pair<int64_t, int64_t>> rows) {
  check_alone("set_active_extent");
  if (rows && (rows->first < 0 || rows->first > rows->second))
    throw invalid("set_active_extent: ", rows->first, " of ", rows->second, " rows; 0 to ", rows->second,
                  " expected");
  active_rows_ = rows;
}

// Cuts inputs that are as long as the extent says to the rows that count. One that no input has is a mistake, unless all are of
// fixed sizes.
void CompiledGraph::cut_to_active(std::vector<Input>& inputs) const {
  const auto [actual, upper] = *active_rows_;
  bool is_known = false;
  std::vector<std::string> others;
  for (Input& in : inputs) {
    const Port* port = find_port(this->inputs(), in.name);
    if (!port || port->shape.rank() == 0 || in.value.rank == 0 || port->shape.dim(0).is_static()) continue;
    is_known = is_known || in.value.dims[0] == upper;
    if (in.value.dims[0] != upper) others.push_back(cat("'", in.name, "' has ", in.value.dims[0]));
    if (in.value.dims[0] == upper) in.value.dims[0] = actual;
  }
  if (!is_known && !others.empty())
    throw invalid("set_active_extent: no input has ", upper, " rows along a symbolic first axis; ",
                  join(others));
}

// Inputs from handles where they are not given, cut to the rows that count; handles of outputs afterwards, from where `run` says that the
// results are.
void CompiledGraph::run_extended(std::span<const Input> given, const RunPlain& run) {
  std::vector<Input> list(given.begin(), given.end());
  for (const auto& [name, value] : handles_) {
    const bool is_given =
        std::any_of(given.begin(), given.end(), [&](const Input& in) { return in.name == name; });
    if (!is_given && find_port(inputs(), name)) list.push_back({name, view(value)});
  }
  if (active_rows_) cut_to_active(list);
  // The plain run, with what made this one special set aside.
  struct Aside {
    CompiledGraph& f;
    decltype(handles_) handles;
    decltype(active_rows_) rows;
    explicit Aside(CompiledGraph& g)
        : f(g), handles(std::exchange(g.handles_, {})), rows(std::exchange(g.active_rows_, {})) {}
    ~Aside() { f.handles_ = std::move(handles), f.active_rows_ = rows; }
  } aside(*this);
  const std::span<const TensorView> out = run(list);
  for (auto& [name, value] : aside.handles) {
    const auto output = output_of_handle(outputs(), name);
    if (output) value = Literal::copy_of(out[*output].shape(), {out[*output].data, out[*output].bytes()});
  }
}

}  // namespace rlx
