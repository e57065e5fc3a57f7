// Random graphs of whole numbers in every element type: sums are exact in any order, so that every way to run one gives the same
// numbers to the last bit. Sizes lie around the widths of vectors and may be 0; operands are views of one another. The same seed
// gives the same program in every run of one binary.
#pragma once

#include <random>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"

namespace rlx::test {

class WholeProgram {
 public:
  WholeProgram(uint64_t seed, int statements) : engine_(seed) {
    const Sizes common = sizes();
    for (int64_t i = draw(1, 3); i > 0; --i) leaf(type(), coin() ? common : sizes());
    for (int tries = 0; int(lines_.size()) < statements && tries < 4 * statements; ++tries) step();
  }

  /// The last value and some others, each by a name of its own.
  ir::Graph graph() {
    std::vector<std::string> results{cat("o0=", last().text)};
    for (int64_t i = draw(2, 6); i > 0; --i) results.push_back(cat("o", results.size(), "=", pick().text));
    return ir::parse_graph(text(join(results, ", ")), ops::table());
  }
  /// For the leaves of the graph, in order.
  const Literals& leaves() const { return values_; }

 private:
  using Sizes = std::vector<int64_t>;
  using Words = std::vector<std::string_view>;
  struct Value {
    std::string text;
    Shape shape;
    std::string type() const { return cat(shape.dtype()); }
    bool real() const { return is_float(shape.dtype()); }
    bool integer() const { return is_integer(shape.dtype()); }
    bool complex() const { return is_complex(shape.dtype()); }
    bool condition() const { return shape.dtype() == DType::bool_; }
    int64_t size(int axis) const { return shape.dim(axis).value(); }
    Sizes sizes() const {
      Sizes out;
      for (int i = 0; i < shape.rank(); ++i) out.push_back(size(i));
      return out;
    }
  };

  int64_t draw(int64_t low, int64_t high) { return low + int64_t(engine_() % uint64_t(high - low + 1)); }
  bool coin() { return draw(0, 1) == 0; }
  bool one_in(int64_t n) { return draw(1, n) == 1; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[size_t(draw(0, int64_t(list.size()) - 1))];
  }
  std::string_view one_of(const Words& words) { return words[size_t(draw(0, int64_t(words.size()) - 1))]; }
  static std::string list(const Sizes& s) { return cat("[", join(s, ","), "]"); }
  static std::string dims(const Sizes& s) { return cat("(", join(s, ","), ")"); }
  static std::string number(const Value& like, int v) {
    return cat("full(shape=", like.type(), "[], value=", v, ".0)");
  }

  std::string type() {
    return std::string(one_of(Words{"bool", "u8", "i8", "i16", "i32", "i64", "u32", "f16", "bf16", "f32",
                                    "f32", "f32", "f64", "c64"}));
  }
  Sizes sizes() {
    static const Sizes small = {1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33};
    static const Sizes large = {63, 64, 65, 127, 129, 255, 256, 257, 1023, 1024, 1025};
    Sizes out;
    int64_t total = 1;
    const int64_t rank = one_in(4) ? draw(4, 6) : draw(0, 3);
    for (int64_t i = 0; i < rank; ++i) {
      int64_t n = one_in(40) ? 0 : one_in(4) ? one_of(large) : one_of(small);
      if (total * n > 3000) n = 1;
      total *= std::max<int64_t>(n, 1);
      out.push_back(n);
    }
    return out;
  }

  Value leaf(const std::string& type, const Sizes& sizes, int64_t low = -5, int64_t high = 5) {
    const Shape shape = parse_shape(cat(type, list(sizes)));
    const bool condition = shape.dtype() == DType::bool_;
    const bool positive = condition || shape.dtype() == DType::u8 || shape.dtype() == DType::u32;
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < shape.elements(); ++i)
      numbers.push_back(draw(positive ? std::max<int64_t>(low, 0) : low, condition ? 1 : high));
    values_.push_back(Literal::integers(Shape(DType::i64, shape.dims()), numbers).cast(shape.dtype()));
    leaves_.push_back(cat(one_in(4) ? "param " : "", "x", leaves_.size(), ": ", shape));
    pool_.push_back({cat("x", leaves_.size() - 1), shape});
    return last();
  }

  std::string text(const std::string& results) const {
    return cat("graph @whole(", join(leaves_, ", "), ") {\n  ", join(lines_, "\n  "), "\n  return ", results,
               "\n}");
  }
  /// Appends a statement; false when the operator refuses it, or its results are large.
  bool add(const std::string& call, int results = 1) {
    const std::string name = cat("v", lines_.size());
    lines_.push_back(cat(name, results > 1 ? cat(":", results) : "", " = ", call));
    try {
      const ir::Graph g = ir::parse_graph(text(name), ops::table());
      const Shapes& shapes = g.node(g.outputs()[0]).shapes;
      for (const Shape& s : shapes) {
        if (s.elements() > 8000) throw invalid("large");
      }
      for (size_t i = 0; i < shapes.size(); ++i) pool_.push_back({i ? cat(name, "#", i) : name, shapes[i]});
      return true;
    } catch (const Error&) {
      lines_.pop_back();
      return false;
    }
  }

  const Value& last() const { return pool_.back(); }
  Value pick() {
    const auto n = int64_t(pool_.size());
    return pool_[size_t(coin() ? draw(0, n - 1) : draw(std::max<int64_t>(0, n - 5), n - 1))];
  }
  int axis_of(const Value& v) { return int(draw(0, v.shape.rank() - 1)); }

  // Keeps numbers small enough for sums of them to be exact.
  void tame() {
    const Value v = last();
    if (v.real()) add(cat("clamp(", v.text, ", lo=-9.0, hi=9.0)"));
    if (v.complex())
      add(cat("make_complex(clamp(real(", v.text, "), lo=-3.0, hi=3.0), clamp(imag(", v.text,
              "), lo=-3.0, hi=3.0))"));
  }
  Value as(Value v, const std::string& type) {
    if (v.type() == type) return v;
    if (v.complex()) {
      if (!add(cat("real(", v.text, ")"))) return v;
      v = last();
    }
    if (!add(cat("cast(", v.text, ", to=", type, ")"))) return v;
    tame();
    return last();
  }
  /// Something of the same type that broadcasts with v: another value, v turned around, or a leaf.
  Value partner(const Value& v) {
    const Sizes s = v.sizes();
    for (int tries = 0; tries < 4; ++tries) {
      const Value other = pick();
      const Sizes o = other.sizes();
      bool fits = true;
      for (size_t i = 1; i <= std::min(s.size(), o.size()); ++i) {
        const int64_t a = s[s.size() - i], b = o[o.size() - i];
        fits = fits && (a == b || a == 1 || b == 1);
      }
      if (fits) return as(other, v.type());
    }
    if (coin() && add(cat("flip(", v.text, ")"))) return last();
    Sizes part = s;
    for (int64_t& n : part) n = coin() ? 1 : n;
    if (!part.empty()) part.erase(part.begin(), part.begin() + draw(0, int64_t(part.size())));
    return leaf(v.type(), part);
  }

  void step() {
    const Value v = pick();
    switch (draw(0, 9)) {
      case 0:
      case 1:
        return binary(v, one_in(6) ? v : partner(v));
      case 2:
        return unary(v);
      case 3:
      case 4:
        return view(v);
      case 5:
        as(v, type());
        return;
      case 6:
        return reduce(v);
      case 7:
        return product(v);
      default:
        return move(v);
    }
  }

  void binary(const Value& a, const Value& b) {
    const auto call = [&](std::string_view op) { return add(cat(op, "(", a.text, ", ", b.text, ")")); };
    if (a.condition()) return void(call(one_of(Words{"logical_and", "bitwise_or", "logical_xor"})));
    if (!a.complex() && one_in(5)) {
      add(cat("compare(", a.text, ", ", b.text, ", kind=", one_of(Words{"eq", "ne", "lt", "le", "gt", "ge"}),
              ")"));
    } else if (a.integer()) {
      call(one_of(Words{"add", "sub", "mul", "max", "min", "div", "rem", "bitwise_and", "bitwise_xor",
                        "shift_left", "shift_right"}));
    } else if (call(one_of(a.complex() ? Words{"add", "sub", "mul"}
                                       : Words{"add", "sub", "mul", "max", "min"}))) {
      tame();
    }
  }
  void unary(const Value& v) {
    const Words any = {"neg", "abs", "sign"}, whole = {"neg", "neg", "abs", "sign", "bitwise_not"},
                real = {"neg", "abs", "sign", "relu", "floor", "ceil", "round", "is_nan"};
    if (v.condition()) return void(add(cat("logical_not(", v.text, ")")));
    if (v.complex()) {
      if (add(cat(one_of(Words{"neg", "conjugate", "real", "imag", "complex_norm_sq"}), "(", v.text, ")")))
        tame();
    } else if (one_in(6)) {
      add(cat("clamp(", v.text, ", lo=0.0, hi=", draw(1, 5), ".0)"));
    } else {
      add(cat(one_of(v.integer() ? whole : v.real() ? real : any), "(", v.text, ")"));
    }
  }
  void view(const Value& v) {
    const Sizes s = v.sizes();
    const auto rank = int64_t(s.size());
    Sizes a, b, c;
    switch (draw(0, 4)) {
      case 0:
        for (int64_t i = 0; i < rank; ++i) a.push_back(i);
        std::shuffle(a.begin(), a.end(), engine_);
        return void(add(cat("transpose(", v.text, ", perm=", list(a), ")")));
      case 1:
        return void(add(cat("flip(", v.text, rank ? cat(", axes=[", axis_of(v), "]") : "", ")")));
      case 2:
        for (const int64_t n : s)
          a.push_back(draw(0, n)), b.push_back(draw(a.back(), n)), c.push_back(draw(1, 3));
        return void(
            add(cat("slice(", v.text, ", start=", dims(a), ", limit=", dims(b), ", stride=", list(c), ")")));
      case 3:
        a = s;
        if (rank > 1) {
          const auto i = size_t(draw(0, rank - 2));
          a[i] *= a[i + 1], a.erase(a.begin() + long(i) + 1);
        }
        return void(add(cat("reshape(", v.text, ", shape=", dims(a), ")")));
      default:
        a = s;
        for (int64_t& n : a) n = n == 1 && coin() ? one_of(Sizes{2, 3, 17}) : n;
        if (rank < 6) a.insert(a.begin(), draw(1, 4));
        return void(add(cat("expand(", v.text, ", shape=", dims(a), ")")));
    }
  }
  void reduce(const Value& v) {
    Sizes axes;
    for (int i = 0; i < v.shape.rank(); ++i) {
      if (coin()) axes.push_back(i);
    }
    const std::string_view kind = v.complex()   ? "sum"
                                  : v.integer() ? one_of(Words{"sum", "max", "min", "prod"})
                                                : one_of(Words{"sum", "max", "min"});
    const std::string rest =
        cat("(", v.text, ", axes=", list(axes), ", keep_dim=", coin() ? "true" : "false");
    if (add(v.condition() ? cat(coin() ? "any" : "all", rest, ")")
                          : cat("reduce", rest, ", kind=", kind, ")")))
      tame();
  }
  // A product with a leaf or with itself turned, and what may be joined to it.
  void product(const Value& v) {
    const int rank = v.shape.rank();
    if (v.condition() || rank < 2) return;
    Sizes w = v.sizes();
    w[size_t(rank) - 2] = w.back(), w.back() = one_of(Sizes{1, 3, 8, 16, 17, 33});
    if (coin()) w.erase(w.begin(), w.end() - 2);
    const Value other = leaf(v.type(), w, -3, 3);
    if (!add(cat("matmul(", v.text, ", ", other.text, ")"))) return;
    for (int64_t i = draw(0, 3); i > 0; --i) {
      const Value y = last();
      const Sizes s = y.sizes();
      if (coin()) {
        add(cat("add(", y.text, ", ", leaf(y.type(), coin() ? s : Sizes{s.back()}).text, ")"));
      } else {
        add(cat("max(", y.text, ", ", number(y, 1), ")"));
      }
    }
    tame();
  }
  void move(const Value& v) {
    const int rank = v.shape.rank();
    if (rank == 0) return;
    const int axis = axis_of(v);
    const int64_t n = v.size(axis);
    const std::string at = cat(", axis=", axis), flag = coin() ? "true" : "false";
    switch (draw(0, 9)) {
      case 0:
        return void(add(cat("concat(", v.text, ", ", v.text, at, ")")));
      case 1: {
        Sizes low, high;
        for (int i = 0; i < rank; ++i) low.push_back(draw(0, 2)), high.push_back(draw(0, 2));
        return void(add(cat("pad(", v.text, ", low=", dims(low), ", high=", dims(high), ")")));
      }
      case 2:
        if (n == 0) return;
        return void(add(cat("gather(", v.text, ", ",
                            leaf(coin() ? "i32" : "u8", {draw(0, 5)}, 0, std::min<int64_t>(n, 200) - 1).text,
                            at, ")")));
      case 3:
        return void(add(cat("sort(", v.text, at, ", descending=", flag, ")"), 2));
      case 4:
        if (n > 0) add(cat("top_k(", v.text, at, ", k=", draw(1, std::min<int64_t>(n, 20)), ")"), 2);
        return;
      case 5:
        return void(add(cat(coin() ? "argmax(" : "argmin(", v.text, at, ", keep_dim=", flag, ")")));
      case 6:
        if (add(cat("cumsum(", v.text, at, ", reverse=", flag, ")"))) tame();
        return;
      case 7:
        return void(add(cat(coin() ? "cummax(" : "cummin(", v.text, at, ", reverse=", flag, ")"), 2));
      case 8:
        return void(
            add(cat("where(", leaf("bool", v.sizes()).text, ", ", v.text, ", ", partner(v).text, ")")));
      default:
        return void(add(cat("windows(", v.text, ", kernel_size=[", draw(1, 3), "], padding=[1])")));
    }
  }

  std::mt19937_64 engine_;
  std::vector<std::string> leaves_, lines_;
  std::vector<Value> pool_;
  Literals values_;
};

}  // namespace rlx::test
