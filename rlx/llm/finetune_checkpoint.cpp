#include "rlx/llm/finetune_checkpoint.h"

#include <filesystem>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/hash.h"
#include "rlx/base/json_write.h"

namespace rlx::llm {

std::string fingerprint_of(const std::vector<TrainingText>& texts, const FinetuneOptions& o) {
  Hasher hash;
  for (const TrainingText& t : texts) {
    hash.add(uint64_t(t.ids.size()));
    for (const text::TokenId id : t.ids) hash.add(uint64_t(id));
    for (const uint8_t l : t.learnt) hash.add(uint64_t(l));
  }
  JsonWriter out({.indent = 2});
  out.begin_object();
  out.member("texts", int64_t(texts.size()));
  const Hash128 h = hash.finish();
  out.member("texts_hash", cat(h.hi, "-", h.lo));
  out.member("rank", o.adapter.rank);
  out.member("alpha", o.adapter.alpha);
  out.member("targets", o.adapter.targets);
  out.member("adapter_seed", int64_t(o.adapter.seed));
  out.member("batch", o.batch);
  out.member("held_back", o.held_back);
  out.member("seed", int64_t(o.seed));
  out.member("schedule", o.schedule.name);
  out.member("rate", o.schedule.rate);
  out.member("last_rate", o.schedule.last);
  out.member("warmup", o.schedule.warmup);
  out.member("weight_decay", o.weight_decay);
  out.member("clip_norm", o.clip_norm.value_or(0));
  out.member("activation_budget", o.activation_budget);
  out.member("steps", o.steps);
  out.member("epochs", o.epochs);
  out.end_object();
  return out.take();
}

void write_fingerprint(const std::string& checkpoint, const std::string& fingerprint) {
  const std::string path = checkpoint + ".json", text = fingerprint + "\n";
  if (std::filesystem::exists(path) && read_file(path) == text) return;
  std::filesystem::remove(checkpoint);
  write_file(path, text);
}

void check_fingerprint(const std::string& checkpoint, const std::string& fingerprint) {
  const Json there = Json::read(checkpoint + ".json");
  const Json here = Json::parse(fingerprint, "options");
  std::vector<std::string> differ;
  for (const auto [key, value] : here.members()) {
    const auto other = there.find(key);
    if (!other || other->text() != value.text())
      differ.push_back(
          cat(key, " is ", value.text(), " and was ", other ? std::string(other->text()) : "not told"));
  }
  if (!differ.empty())
    throw invalid("finetune: the checkpoint '", checkpoint, "' is of another run: ", join(differ, "; "));
}

}  // namespace rlx::llm
