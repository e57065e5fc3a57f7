// Every word for an activation, with values of transformers 5.23 in f64.
#include "rlx/models/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/evaluate.h"

namespace rlx::models {
namespace {

TEST(Activations, HaveTheValuesOfTheirWords) {
  const std::map<std::string, std::vector<double>> expected{
      {"silu", {-7.37300952e-05, -0.14227762, -0.188770334, 0.467731441, 2.31035455, 10.9998163}},
      {"swish", {-7.37300952e-05, -0.14227762, -0.188770334, 0.467731441, 2.31035455, 10.9998163}},
      {"gelu", {-0, -0.00404969409, -0.154268769, 0.530625443, 2.48447584, 11}},
      {"gelu_python", {-0, -0.00404969409, -0.154268769, 0.530625443, 2.48447584, 11}},
      {"gelu_10", {-0, -0.00404969409, -0.154268769, 0.530625443, 2.48447584, 10}},
      {"gelu_new", {-0, -0.00363739208, -0.15428599, 0.530570135, 2.48491573, 11}},
      {"gelu_fast", {-0, -0.00363739208, -0.15428599, 0.530570135, 2.48491573, 11}},
      {"gelu_accurate", {-0, -0.00363739208, -0.15428599, 0.530570135, 2.48491573, 11}},
      {"gelu_pytorch_tanh", {-0, -0.00363739208, -0.15428599, 0.530570135, 2.48491573, 11}},
      {"gelu_python_tanh", {-0, -0.00363739208, -0.15428599, 0.530570135, 2.48491573, 11}},
      {"quick_gelu", {-1.61864178e-08, -0.0180713097, -0.149611563, 0.536893952, 2.46501383, 10.9999999}},
      {"laplace", {0, 0, 9.38338117e-06, 0.489950255, 1, 1}},
      {"leaky_relu", {-0.12, -0.03, -0.005, 0.7, 2.5, 11}},
      {"linear", {-12, -3, -0.5, 0.7, 2.5, 11}},
      {"mish", {-7.37303217e-05, -0.145647461, -0.220743775, 0.561148378, 2.4713923, 11}},
      {"relu", {0, 0, 0, 0.7, 2.5, 11}},
      {"relu2", {0, 0, 0, 0.49, 6.25, 121}},
      {"relu6", {0, 0, 0, 0.7, 2.5, 6}},
      {"sigmoid", {6.1441746e-06, 0.0474258732, 0.377540669, 0.668187772, 0.92414182, 0.999983299}},
      {"tanh", {-1, -0.995054754, -0.462117157, 0.604367777, 0.986614298, 0.999999999}},
      {"hardswish", {-0, -0, -0.208333333, 0.431666667, 2.29166667, 11}},
      {"sqrtsoftplus", {0.00247874837, 0.220425388, 0.688532486, 1.05032664, 1.60589219, 3.31662731}},
  };
  const Literal x = Literal::of<double>({6}, {-12.0, -3.0, -0.5, 0.7, 2.5, 11.0});
  for (const auto& [word, values] : expected) {
    const Activation f = find_activation(word);
    ASSERT_TRUE(f) << word;
    const std::vector<double> got =
        test::numbers({x}, [&](const ir::Exprs& in) -> ir::Expr { return f(in[0]); });
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got[i], values[i], 1e-8 * std::max(1.0, std::abs(values[i])))
          << word << " of x[" << i << "]";
  }
  EXPECT_EQ(find_activation("prelu"), nullptr);  // has weights
  // Each word that a message offers is one of these.
  const std::string all = activation_words() + ", ";
  for (size_t at = 0, end; (end = all.find(", ", at)) != all.npos; at = end + 2)
    EXPECT_TRUE(expected.contains(all.substr(at, end - at))) << all.substr(at, end - at);
}

}  // namespace
}  // namespace rlx::models
