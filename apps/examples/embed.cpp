// How alike two texts are: embed MODEL TEXT TEXT
#include <cstdio>
#include <exception>

#include "rlx/llm/embedding.h"

int main(int argc, char** argv) try {
  if (argc < 4) return std::puts("usage: embed MODEL TEXT TEXT"), 2;
  rlx::llm::Embedder model = rlx::llm::Embedder::open(argv[1]);
  const std::vector<std::string> texts{argv[2], argv[3]};
  const std::vector<std::vector<float>> v = model.embed(texts);
  float cosine = 0;  // vectors have length 1
  for (size_t i = 0; i < v[0].size(); ++i) cosine += v[0][i] * v[1][i];
  std::printf("%zu dimensions, cosine %.3f\n", v[0].size(), double(cosine));
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
