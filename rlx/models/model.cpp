#include "rlx/models/model.h"

#include "rlx/models/architecture.h"

namespace rlx::models {

Model::Model(io::ModelFile file) : file_(std::move(file)) {
  ConfigSource source(file_);
  architecture_ = &architecture_of(source);
  config_.architecture = architecture_->name;
  architecture_->configure(source, config_);
  source.require_flag({"", "attention.causal"}, !config_.encoder);
  source.finish();
}

ModelGraph Model::graph(const GraphOptions& options) const {
  const auto refuse = [&](const auto&... what) { throw invalid("model '", file_.path, "': ", what...); };
  if (options.capacity < 0 || options.batch < 1)
    refuse("a graph with capacity ", options.capacity, " and batch ", options.batch,
           "; capacity must be 0 or more, batch 1 or more");
  if (options.capacity > 0 && config_.encoder)
    refuse("capacity is ", options.capacity, ", and the encoder '", config_.architecture, "' has no states");
  if (options.capacity > 0 && options.mask)
    refuse("the form with states has no mask; positions of -1 tell padding");
  const DType type = options.cache_type;
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    refuse("keys and values cannot be kept in ", type, "; f32, f16 or bf16 expected");
  Net net(file_, *architecture_, config_, options);
  architecture_->build(net);
  return net.take();
}

Model open_model(const std::string& path) { return Model(io::ModelFile::open(path)); }

std::vector<std::string> architecture_names() {
  std::vector<std::string> out;
  for (const Architecture* a : architectures()) out.emplace_back(a->name);
  return out;
}

}  // namespace rlx::models
