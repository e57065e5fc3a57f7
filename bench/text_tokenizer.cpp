// Encoding, decoding and loading of tokenizers.
//
//   bench_text_tokenizer [NAME...]              over the test data, its own case texts repeated to 10 MB
//   bench_text_tokenizer DOCUMENTS.json FILE    over a JSON list of texts, with the tokenizer in FILE
//   bench_text_tokenizer DOCUMENTS.json FILE encode    only the rate of encoding
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "rlx/base/file.h"
#include "rlx/base/options.h"
#include "rlx/text/json.h"
#include "rlx/text/tokenizer.h"

namespace {

using namespace rlx;

constexpr size_t kBytes = 10'000'000;

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(const std::function<void()>& f, int rounds = 5) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(seconds(f));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure(const std::string& name, const std::string& file, const std::vector<std::string>& documents,
             bool encode_only = false) {
  const std::string json = read_file(file);
  const text::Tokenizer tokenizer = text::Tokenizer::from_file(file);
  size_t bytes = 0;
  for (const std::string& d : documents) bytes += d.size();
  const double mb = double(bytes) / 1e6;
  const text::EncodeOptions plain{.add_special = false};

  // A tokenizer remembers words, so each pass gets one that has not seen the text; loading it is not timed.
  const auto fresh = [&](const text::EncodeOptions& options, int threads) {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) {
      const text::Tokenizer unused = text::Tokenizer::from_file(file);
      times.push_back(seconds([&] { (void)unused.encode_batch(documents, options, threads); }));
    }
    std::sort(times.begin(), times.end());
    return times[1];
  };
  const double one = fresh(plain, 1);
  bench::report({name + "/encode", mb / one, "MB/s", 0, 0, "", ">= 20"});
  if (encode_only) return;
  bench::report({name + "/encode_2_threads", mb / fresh(plain, 2), "MB/s"});
  const text::EncodeOptions with_offsets{.add_special = false, .offsets = true};
  bench::report({name + "/encode_offsets", mb / fresh(with_offsets, 1), "MB/s"});
  bench::report({name + "/encode_again",
                 mb / median([&] { (void)tokenizer.encode_batch(documents, plain, 1); }), "MB/s"});

  const auto encoded = tokenizer.encode_batch(documents, plain, 1);
  size_t decoded = 0;
  const double back = median([&] {
    decoded = 0;
    for (const auto& e : encoded) decoded += tokenizer.decode(e.ids).size();
  });
  bench::report({name + "/decode", double(decoded) / 1e6 / back, "MB/s", 0, 0, "", ">= 200"});
  bench::report({name + "/load", 1e3 * median([&] { (void)text::Tokenizer::from_file(file); }), "ms"});
  bench::report({name + "/file", double(json.size()) / 1e6, "MB"});

  // Words that never end, and ones that merge all the way: time per byte against the average above.
  std::string unbroken;
  for (const std::string& d : documents) {
    for (const char c : d)
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) unbroken.push_back(c);
    if (unbroken.size() > 1'000'000) break;
  }
  std::string tokens;  // any tokens next to each other
  for (uint32_t x = 1; tokens.size() < 1'000'000; x = x * 1664525 + 1013904223) {
    const text::TokenId id = text::TokenId((uint64_t(x) * tokenizer.vocab_size()) >> 32);
    if (!tokenizer.id_to_token(id).empty() && !tokenizer.is_special(id))
      tokens += tokenizer.decode(std::vector{id});
  }
  const std::pair<const char*, std::string> hard[] = {{"repeated", std::string(100'000, 'a')},
                                                      {"repeated_space", std::string(100'000, ' ')},
                                                      {"unbroken", unbroken},
                                                      {"any_tokens", tokens}};
  for (const auto& [what, text] : hard) {
    if (text.empty()) continue;
    const double s = median([&] { (void)tokenizer.encode(text, plain); }, 3);
    bench::report(
        {name + "/" + what, s / double(text.size()) / (one / double(bytes)), "x mean", 0, 0, "", "<= 5"});
  }
}

// Merges of which each waits for the one to its right (a x, a ax, a aax, ...): nothing can be cut, and a
// window learns nothing before its end.
void measure_chain() {
  std::string vocab = R"("a":0,"x":1,"ax":2)", merges = R"(["a","x"])", token = "ax";
  for (int i = 3; i < 2000; ++i) {
    merges += R"(,["a",")" + token + R"("])";
    token.insert(token.begin(), 'a');
    vocab += ",\"" + token + "\":" + std::to_string(i);
  }
  const text::Tokenizer t = text::Tokenizer::from_json(R"({"model":{"type":"BPE","vocab":{)" + vocab +
                                                       R"(},"merges":[)" + merges + "]}}");
  std::string chains;
  while (chains.size() < 1'000'000) chains += std::string(1500, 'a') + "x";
  bench::report({"text/chain_of_merges",
                 1e9 * median([&] { (void)t.encode(chains); }, 3) / double(chains.size()), "ns/byte", 0, 0,
                 "", "<= 200"});
}

}  // namespace

int main(int argc, char** argv) {
  if ((argc == 3 || argc == 4) && std::filesystem::exists(argv[1]) && std::filesystem::exists(argv[2])) {
    const text::Value list = text::parse_json(read_file(argv[1]), argv[1]);
    std::vector<std::string> documents;
    for (const text::Value& v : list.as_list()) documents.push_back(v.as_string());
    measure("text/" + std::filesystem::path(argv[2]).stem().string(), argv[2], documents, argc == 4);
    return 0;
  }
  if (bench::wanted(argc, argv, "text/chain_of_merges")) measure_chain();
  const std::string data = option("RLX_DATA").value_or("../shared/data") + "/tokenizers/";
  for (const char* kind : {"bpe_gpt2", "bpe_llama2", "bpe_llama3", "bpe_qwen", "unigram", "wordpiece_bert"}) {
    const std::string name = std::string("text/") + kind;
    if (!bench::wanted(argc, argv, name) || !std::filesystem::exists(data + kind)) continue;
    const text::Value cases = text::parse_json(read_file(data + kind + "/cases.json"), "cases.json");
    std::vector<std::string> documents(1);
    size_t total = 0;
    while (total < kBytes) {
      for (const text::Value& c : cases.as_list()) {
        const std::string& t = c.as_dict().find("text")->as_string();
        if (documents.back().size() > 4000) documents.emplace_back();
        documents.back() += t + "\n";
        total += t.size() + 1;
      }
    }
    measure(name, data + kind + "/tokenizer.json", documents);
  }
}
