#include "rlx/backend/cpu/kernels/group_norm.h"

#include <cstring>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

std::vector<ChannelNorm> shapes() {
  std::vector<ChannelNorm> out;
  for (const auto& [batch, channels, places, groups] : std::vector<std::array<int64_t, 4>>{{2, 6, 35, 3},
                                                                                           {1, 4, 1, 1},
                                                                                           {3, 5, 100, 5},
                                                                                           {2, 64, 200, 8},
                                                                                           {1, 33, 67, 11},
                                                                                           {0, 4, 3, 2},
                                                                                           {2, 12, 16, 2}}) {
    for (const ChannelNormKind kind : {ChannelNormKind::groups, ChannelNormKind::channels}) {
      out.push_back({.kind = kind,
                     .batch = batch,
                     .channels = channels,
                     .places = places,
                     .groups = groups,
                     .epsilon = 1e-3f});
    }
  }
  return out;
}

// The elements that are normalised together, as lists of indices.
std::vector<std::vector<int64_t>> sets(const ChannelNorm& p) {
  std::vector<std::vector<int64_t>> out;
  const int64_t per = p.channels / p.groups;
  const bool groups = p.kind == ChannelNormKind::groups;
  out.resize(size_t(p.batch * (groups ? p.groups : p.places)));
  for (int64_t i = 0; i < p.batch * p.channels * p.places; ++i) {
    const int64_t n = i / (p.channels * p.places), c = i / p.places % p.channels;
    out[size_t(groups ? n * p.groups + c / per : n * p.places + i % p.places)].push_back(i);
  }
  return out;
}

struct Reference {
  std::vector<double> y, dx, dgamma, dbeta;
};
Reference reference(const ChannelNorm& p, const Array<float>& x, const Array<float>& gamma,
                    const Array<float>& beta, const Array<float>& dy) {
  Reference r{std::vector<double>(size_t(x.size())), std::vector<double>(size_t(x.size())),
              std::vector<double>(size_t(p.channels)), std::vector<double>(size_t(p.channels))};
  for (const auto& set : sets(p)) {
    const double n = double(set.size());
    double mean = 0, variance = 0, mean_g = 0, mean_gh = 0;
    for (const int64_t i : set) mean += double(x[i]) / n;
    for (const int64_t i : set) variance += (double(x[i]) - mean) * (double(x[i]) - mean) / n;
    const double scale = 1 / std::sqrt(variance + double(p.epsilon));
    const auto h = [&](int64_t i) { return (double(x[i]) - mean) * scale; };
    for (const int64_t i : set) {
      const int64_t c = i / p.places % p.channels;
      r.y[size_t(i)] = double(gamma[c]) * h(i) + double(beta[c]);
      mean_g += double(gamma[c]) * double(dy[i]) / n;
      mean_gh += double(gamma[c]) * double(dy[i]) * h(i) / n;
      r.dgamma[size_t(c)] += double(dy[i]) * h(i);
      r.dbeta[size_t(c)] += double(dy[i]);
    }
    for (const int64_t i : set) {
      const int64_t c = i / p.places % p.channels;
      r.dx[size_t(i)] = scale * (double(gamma[c]) * double(dy[i]) - mean_g - h(i) * mean_gh);
    }
  }
  return r;
}

TEST(ChannelNorm, forward_and_gradients_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (ChannelNorm p : shapes()) {
      const int64_t n = p.batch * p.channels * p.places;
      const Array<float> x = random_array(n, 1, -1, 3, 1), gamma = random_array(p.channels, 2),
                         beta = random_array(p.channels, 3), dy = random_array(n, 4, -1, 1, 1);
      const Reference want = reference(p, x, gamma, beta, dy);
      Array<float> y(n, 3), dx(n, 3), dgamma(p.channels), dbeta(p.channels);
      p.x = x.data(), p.gamma = gamma.data(), p.beta = beta.data(), p.y = y.data();
      channel_norm(team, p);
      test::expect_near(y.data(), want.y.data(), n, 1e-5, "y");
      const ChannelNormBackward b{p, dy.data(), dx.data(), dgamma.data(), dbeta.data()};
      std::vector<std::byte> workspace(channel_norm_backward_workspace(b, team.threads()) + 64);
      channel_norm_backward(team, b, workspace.data());
      // One element to normalise: the deviation is all rounding, and its inverse about 30.
      test::expect_near(dx.data(), want.dx.data(), n, 1e-4, "dx");
      const double sums = 1e-6 * (4 + std::sqrt(double(p.batch * p.places)));
      test::expect_near(dgamma.data(), want.dgamma.data(), p.channels, 4 * sums, "dgamma");
      test::expect_near(dbeta.data(), want.dbeta.data(), p.channels, sums, "dbeta");
    }
  });
}

TEST(ChannelNorm, parameters_may_be_left_out) {
  test::at_every_level([](Team team) {
    for (ChannelNorm p : shapes()) {
      const int64_t n = p.batch * p.channels * p.places;
      Array<float> x = random_array(n, 5), ones(p.channels), zeros(p.channels), y(n), z(n), dx(n), dz(n);
      for (int64_t c = 0; c < p.channels; ++c) ones[c] = 1;
      p.x = x.data(), p.y = y.data();
      channel_norm(team, p);
      ChannelNormBackward b{.forward = p, .dy = x.data(), .dx = dx.data()};
      std::vector<std::byte> workspace(channel_norm_backward_workspace(b, team.threads()) + 64);
      channel_norm_backward(team, b, workspace.data());
      b.forward.gamma = ones.data(), b.forward.beta = zeros.data(), b.forward.y = z.data(), b.dx = dz.data();
      channel_norm(team, b.forward);
      channel_norm_backward(team, b, workspace.data());
      test::expect_near(y.data(), z.data(), n, 0, "y");
      test::expect_near(dx.data(), dz.data(), n, 0, "dx");
    }
  });
}

TEST(ChannelNorm, threads_do_not_change_bits) {
  Pool one(1), three(3);
  for (ChannelNorm p : shapes()) {
    const int64_t n = p.batch * p.channels * p.places;
    const Array<float> x = random_array(n, 6), dy = random_array(n, 7);
    Array<float> out[2] = {Array<float>(n + 2 * p.channels), Array<float>(n + 2 * p.channels)};
    for (int i = 0; i < 2; ++i) {
      p.x = x.data();
      const ChannelNormBackward b{p, dy.data(), out[i].data(), out[i].data() + n,
                                  out[i].data() + n + p.channels};
      std::vector<std::byte> workspace(channel_norm_backward_workspace(b, 3) + 64);
      channel_norm_backward(Team(i == 0 ? one : three), b, workspace.data());
    }
    ASSERT_EQ(std::memcmp(out[0].data(), out[1].data(), size_t(out[0].size()) * 4), 0);
  }
}

}  // namespace
}  // namespace rlx::cpu
