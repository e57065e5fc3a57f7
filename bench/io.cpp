// Opening large model files, and the speed of the scalar block decoders and encoders.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/bench.h"
#include "rlx/base/philox.h"
#include "rlx/base/text.h"
#include "rlx/io/gguf.h"
#include "rlx/io/safetensors.h"
#include "rlx/quant/format.h"

namespace rlx::bench {
namespace {

constexpr int64_t kTensorBytes = 100'000'000;
constexpr int kTensors = 1000;

// A file whose header describes 1,000 tensors of 100 MB; the data is a hole.
struct SparseModel {
  std::string path = (std::filesystem::temp_directory_path() / cat("rlx-bench-", ::getpid())).string();

  SparseModel(const std::string& header, uint64_t data) {
    std::ofstream(path, std::ios::binary).write(header.data(), std::streamsize(header.size()));
    std::filesystem::resize_file(path, header.size() + data);
  }
  ~SparseModel() { std::filesystem::remove(path); }
};

std::string tensor_name(int i) { return cat("blk.", i / 10, ".ffn_part_", i % 10, ".weight"); }

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, uint64_t(text.size()));
  out += text;
}

std::string gguf_header(int tokens) {
  std::string out = "GGUF";
  put(out, uint32_t(3)), put(out, uint64_t(kTensors)), put(out, uint64_t(1));
  put_text(out, "tokenizer.ggml.tokens");
  put(out, uint32_t(io::GgufType::array)), put(out, uint32_t(io::GgufType::string)),
      put(out, uint64_t(tokens));
  for (int i = 0; i < tokens; ++i) put_text(out, cat("token", i));
  for (int i = 0; i < kTensors; ++i) {
    put_text(out, tensor_name(i));
    put(out, uint32_t(2)), put(out, uint64_t(5000)), put(out, uint64_t(5000)), put(out, uint32_t(0));
    put(out, uint64_t(i) * kTensorBytes);
  }
  out.resize((out.size() + 31) / 32 * 32);
  return out;
}

std::string safetensors_header() {
  std::string json = "{";
  for (int i = 0; i < kTensors; ++i) {
    json += cat(i ? "," : "", "\"", tensor_name(i),
                "\":{\"dtype\":\"F32\",\"shape\":[5000,5000],\"data_offsets\":[", i * kTensorBytes, ",",
                (i + 1) * kTensorBytes, "]}");
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string out;
  put(out, uint64_t(json.size()));
  return out + json;
}

double resident_kib() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return double(resident) * double(::sysconf(_SC_PAGESIZE)) / 1024;
}

template <class Open>
void bench_open(const std::string& name, const std::string& header, Open open) {
  const SparseModel model(header, uint64_t(kTensors) * kTensorBytes);
  {
    (void)open(model.path);  // code and page cache are warm, as for the second start of a program
    const double heap = double(mallinfo2().uordblks), resident = resident_kib();
    const auto file = open(model.path);
    report({.name = name + " heap",
            .value = (double(mallinfo2().uordblks) - heap) / 1024,
            .unit = "KiB",
            .goal = "< 2048"});
    report({.name = name + " resident", .value = resident_kib() - resident, .unit = "KiB", .goal = "< 2048"});
  }
  const double seconds = interleaved({[&] { (void)open(model.path); }})[0];
  report({.name = name, .value = seconds * 1e3, .unit = "ms", .goal = "< 5"});
}

void bench_format(const quant::BlockFormat& format, int argc, char** argv) {
  std::vector<float> values(1 << 18);
  for (size_t i = 0; i < values.size(); ++i) values[i] = uniform_from_bits(philox_block(1, 1, i)[0]) - 0.5f;
  std::vector<std::byte> packed(size_t(quant::encoded_bytes(format, int64_t(values.size()))));
  const double megabytes = double(values.size()) * 4e-6;
  const std::string encode = cat("quant_encode ", format.name), decode = cat("quant_decode ", format.name);
  quant::encode(format, values, packed);
  if (wanted(argc, argv, encode)) {
    const double t = interleaved({[&] { quant::encode(format, values, packed); }}, 0.02, 5)[0];
    report({.name = encode, .value = megabytes / t, .unit = "MB/s f32"});
  }
  if (wanted(argc, argv, decode)) {
    const double t = interleaved({[&] { quant::decode(format, packed, values); }}, 0.02, 5)[0];
    report({.name = decode, .value = megabytes / t, .unit = "MB/s f32"});
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  if (wanted(argc, argv, "gguf_open 100GB"))
    bench_open("gguf_open 100GB", gguf_header(0),
               [](const std::string& path) { return io::GgufFile::open(path); });
  if (wanted(argc, argv, "gguf_open 100GB 128k tokens")) {
    bench_open("gguf_open 100GB 128k tokens", gguf_header(128000),
               [](const std::string& path) { return io::GgufFile::open(path); });
  }
  if (wanted(argc, argv, "safetensors_open 100GB")) {
    bench_open("safetensors_open 100GB", safetensors_header(),
               [](const std::string& path) { return io::SafetensorsFile::open(path); });
  }
  for (const quant::BlockFormat& format : quant::formats()) {
    if (format.encode && !format.is_plain()) bench_format(format, argc, argv);
  }
}
