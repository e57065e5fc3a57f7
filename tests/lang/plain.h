// Plain computations on small matrices, to compare lowered blocks with: loops and nothing else.
#pragma once

#include <cmath>
#include <vector>

#include "rlx/ir/literal.h"

namespace rlx::plain {

struct Matrix {
  int64_t rows, cols;
  std::vector<double> v;

  Matrix(int64_t r, int64_t c) : rows(r), cols(c), v(size_t(r * c)) {}
  Matrix(const Literal& l, int64_t r, int64_t c) : rows(r), cols(c), v(l.to_reals()) {}
  double& at(int64_t i, int64_t j) { return v[size_t(i * cols + j)]; }
  double at(int64_t i, int64_t j) const { return v[size_t(i * cols + j)]; }
  Literal literal(Dims dims) const { return Literal::reals(Shape(DType::f64, std::move(dims)), v); }
};

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.cols; ++j) {
      for (int64_t k = 0; k < a.cols; ++k) y.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return y;
}

template <class F>
Matrix map(Matrix a, F f) {
  for (double& x : a.v) x = f(x);
  return a;
}
inline Matrix relu(const Matrix& a) {
  return map(a, [](double x) { return x > 0 ? x : 0; });
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline Matrix add(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.v.size(); ++i) a.v[i] += b.v[i];
  return a;
}
inline Matrix multiply(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.v.size(); ++i) a.v[i] *= b.v[i];
  return a;
}
inline Matrix add_row(Matrix a, const Literal& row) {
  for (size_t i = 0; i < a.v.size(); ++i) a.v[i] += row.real_at(int64_t(i) % a.cols);
  return a;
}

inline Matrix swiglu(const Matrix& x, const Matrix& up, const Matrix& gate, const Matrix& down) {
  const Matrix g = map(product(x, gate), [](double v) { return v * sigmoid(v); });
  return product(multiply(product(x, up), g), down);
}

inline Matrix rms_norm(const Matrix& x, const Literal& gamma, const Literal& beta, double eps) {
  Matrix y = x;
  for (int64_t i = 0; i < x.rows; ++i) {
    double square = 0;
    for (int64_t j = 0; j < x.cols; ++j) square += x.at(i, j) * x.at(i, j);
    const double r = 1 / std::sqrt(square / double(x.cols) + eps);
    for (int64_t j = 0; j < x.cols; ++j) y.at(i, j) = x.at(i, j) * r * gamma.real_at(j) + beta.real_at(j);
  }
  return y;
}

/// Rows are [batch][position]; the first n_rot lanes of each head turn in pairs (i, i + n_rot / 2) by the
/// angle whose cosine and sine stand in row `position` of the tables.
inline Matrix rotate(Matrix x, int64_t seq, int64_t head_dim, int64_t n_rot, const Matrix& cos,
                     const Matrix& sin) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t h = 0; h < x.cols / head_dim; ++h) {
      for (int64_t i = 0; i < n_rot / 2; ++i) {
        const double c = cos.at(r % seq, i), s = sin.at(r % seq, i);
        double &a = x.at(r, h * head_dim + i), &b = x.at(r, h * head_dim + i + n_rot / 2);
        const double first = a * c - b * s;
        b = a * s + b * c;
        a = first;
      }
    }
  }
  return x;
}

/// Causal attention of [batch * seq, heads * d] queries over [batch * seq, kv * d] keys and values; adjacent
/// query heads share a key head.
inline Matrix causal_attention(const Matrix& q, const Matrix& k, const Matrix& v, int64_t batch, int64_t seq,
                               int64_t heads, int64_t kv, int64_t d) {
  Matrix y(q.rows, q.cols);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kh = h * kv / heads;
      for (int64_t i = 0; i < seq; ++i) {
        std::vector<double> w(size_t(i + 1));
        double total = 0;
        for (int64_t j = 0; j <= i; ++j) {
          double s = 0;
          for (int64_t l = 0; l < d; ++l) s += q.at(b * seq + i, h * d + l) * k.at(b * seq + j, kh * d + l);
          total += w[size_t(j)] = std::exp(s / std::sqrt(double(d)));
        }
        for (int64_t j = 0; j <= i; ++j) {
          for (int64_t l = 0; l < d; ++l)
            y.at(b * seq + i, h * d + l) += w[size_t(j)] / total * v.at(b * seq + j, kh * d + l);
        }
      }
    }
  }
  return y;
}

inline Literal causal_attention(const Literal& q, const Literal& k, const Literal& v, int64_t batch,
                                int64_t seq, int64_t heads, int64_t kv, int64_t d) {
  return causal_attention(Matrix(q, batch * seq, heads * d), Matrix(k, batch * seq, kv * d),
                          Matrix(v, batch * seq, kv * d), batch, seq, heads, kv, d)
      .literal({batch, seq, heads * d});
}

}  // namespace rlx::plain
