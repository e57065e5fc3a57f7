#include "rlx/ops/linalg/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

// An axis label: a letter, or below zero for an axis under the dots, -1 being the last of them.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kDots = 0;  // in a parsed term, where the dots are

struct Equation {
  std::vector<Labels> terms;
  Labels result;
};

bool contains(const Labels& labels, Label l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}

std::string letters(const Labels& labels) {
  std::string out;
  for (const Label l : labels) out += l == kDots ? std::string("...") : std::string(1, char(l));
  return out;
}

Labels parse_term(const Infer& c, std::string_view text, const std::string& equation) {
  Labels out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("...")) {
      if (contains(out, kDots)) c.fail("equation '", equation, "': '", text, "' has dots twice");
      out.push_back(kDots);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      out.push_back(text[i]);
    } else {
      c.fail("equation '", equation, "': '", text[i], "' is not a letter; axes are letters or '...'");
    }
  }
  return out;
}

// Parses an equation, which becomes canonical: no blanks, with an arrow.
Equation parse(const Infer& c, std::string& text) {
  std::erase_if(text, [](unsigned char ch) { return std::isspace(ch); });
  const size_t arrow = text.find("->");
  std::string_view inputs = std::string_view(text).substr(0, arrow);
  Equation out;
  for (;;) {
    const size_t comma = inputs.find(',');
    out.terms.push_back(parse_term(c, inputs.substr(0, comma), text));
    if (comma == std::string_view::npos) break;
    inputs.remove_prefix(comma + 1);
  }
  if (int(out.terms.size()) != c.count()) {
    c.fail("equation '", text, "' has ", out.terms.size(), " terms for ", c.count(), " operands");
  }
  if (arrow != std::string::npos) {
    out.result = parse_term(c, std::string_view(text).substr(arrow + 2), text);
  } else {
    std::map<Label, int> uses;  // ordered: the dots, then letters as the alphabet has them
    for (const Labels& term : out.terms) {
      for (const Label l : term) ++uses[l];
    }
    for (const auto& [l, count] : uses) {
      if (count == 1 || l == kDots) out.result.push_back(l);
    }
    text += "->" + letters(out.result);
  }
  for (size_t i = 0; i < out.result.size(); ++i) {
    const Label l = out.result[i];
    const std::string name = letters({l});
    if (contains(Labels(out.result.begin(), out.result.begin() + int64_t(i)), l))
      c.fail("equation '", text, "': the result has '", name, "' twice");
    const bool known =
        std::any_of(out.terms.begin(), out.terms.end(), [&](auto& t) { return contains(t, l); });
    if (!known) c.fail("equation '", text, "': '", name, "' of the result is in no operand");
  }
  return out;
}

// Replaces the dots of a term by labels for `count` axes.
void spell_dots(Labels& term, int count) {
  const auto at = std::find(term.begin(), term.end(), kDots);
  if (at == term.end()) return;
  Labels axes;
  for (int i = -count; i < 0; ++i) axes.push_back(i);
  term.insert(term.erase(at), axes.begin(), axes.end());
}

// Spells the dots out for operands of these types; the result has as many as the largest operand.
void spell_all_dots(const Infer& c, Equation& e, const std::string& text) {
  int most = 0;
  for (size_t i = 0; i < e.terms.size(); ++i) {
    const bool dots = contains(e.terms[i], kDots);
    const int hidden = c.in(int(i)).rank() - int(e.terms[i].size()) + int(dots);
    if (hidden < 0 || (hidden > 0 && !dots)) {
      c.fail("equation '", text, "': term '", letters(e.terms[i]), "' does not fit ", c.operand_name(int(i)),
             ": ", c.in(int(i)), "; it takes one letter per axis");
    }
    most = std::max(most, hidden);
    spell_dots(e.terms[i], hidden);
  }
  if (!contains(e.result, kDots) && most > 0) {
    c.fail("equation '", text,
           "': the dots of the operands are not in the result; sum over named axes instead");
  }
  spell_dots(e.result, most);
}

// A tensor with a name for each axis.
struct Named {
  Expr t;
  Labels labels;
};

// The same with each label once: the diagonal of repeated axes.
Named take_diagonals(Named x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    for (size_t j = x.labels.size(); j-- > i + 1;) {
      if (x.labels[j] != x.labels[i]) continue;
      Dims row(x.labels.size(), Dim(1)), column = row;
      row[i] = x.t.dim(int(i));
      column[j] = x.t.dim(int(j));
      const Expr hit = equal(reshape(index_vector(*x.t.graph, row[i]), row),
                             reshape(index_vector(*x.t.graph, column[j]), column));
      x.t = reduce_sum(where(hit, x.t, scalar_like(x.t, 0)), {int(j)});
      x.labels.erase(x.labels.begin() + int64_t(j));
    }
  }
  return x;
}

// Sums over the axes whose labels are not wanted.
Named sum_out(Named x, const Labels& wanted) {
  std::vector<int> axes;
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (contains(wanted, x.labels[i])) {
      kept.push_back(x.labels[i]);
    } else {
      axes.push_back(int(i));
    }
  }
  if (!axes.empty()) x = {reduce_sum(x.t, axes), kept};
  return x;
}

Named contract(Named a, Named b, const Labels& wanted) {
  Labels for_a = wanted, for_b = wanted;
  for_a.insert(for_a.end(), b.labels.begin(), b.labels.end());
  for_b.insert(for_b.end(), a.labels.begin(), a.labels.end());
  a = sum_out(std::move(a), for_a);
  b = sum_out(std::move(b), for_b);
  DotGeneral::Attrs axes;
  Labels batch, free_a, free_b;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    const Label l = a.labels[i];
    const auto at = std::find(b.labels.begin(), b.labels.end(), l);
    const int j = int(at - b.labels.begin());
    if (at == b.labels.end()) {
      free_a.push_back(l);
    } else if (contains(wanted, l)) {
      axes.lhs_batch.push_back(int(i)), axes.rhs_batch.push_back(j);
      batch.push_back(l);
    } else {
      axes.lhs_contracting.push_back(int(i)), axes.rhs_contracting.push_back(j);
    }
  }
  for (const Label l : b.labels) {
    if (!contains(a.labels, l)) free_b.push_back(l);
  }
  Labels labels = batch;
  labels.insert(labels.end(), free_a.begin(), free_a.end());
  labels.insert(labels.end(), free_b.begin(), free_b.end());
  return {dot_general(a.t, b.t, axes), labels};
}

// The labels that somebody other than operands i and j needs.
Labels wanted_beside(const std::vector<Named>& all, size_t i, size_t j, const Labels& result) {
  Labels out = result;
  for (size_t k = 0; k < all.size(); ++k) {
    if (k != i && k != j) out.insert(out.end(), all[k].labels.begin(), all[k].labels.end());
  }
  return out;
}

// Elements of the product of two operands; a symbolic size counts as a large number.
double product_size(const Named& a, const Named& b, const Labels& wanted) {
  double size = 1;
  const auto count = [&](const Named& x, bool second) {
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (!contains(wanted, x.labels[i]) || (second && contains(a.labels, x.labels[i]))) continue;
      const Dim d = x.t.dim(int(i));
      size *= d.is_static() ? double(d.value()) : 1024.0;
    }
  };
  count(a, false);
  count(b, true);
  return size;
}

}  // namespace

Shapes Einsum::infer(Infer& c, Attrs& a) {
  for (int i = 0; i < c.count(); ++i) {
    c.same_dtype({0, i});
    c.require_numeric(i);
  }
  Equation e = parse(c, a.equation);
  spell_all_dots(c, e, a.equation);
  std::map<Label, Dim> size;
  for (size_t i = 0; i < e.terms.size(); ++i) {
    for (size_t k = 0; k < e.terms[i].size(); ++k) {
      const Label l = e.terms[i][k];
      const Dim d = c.in(int(i)).dim(int(k));
      const auto [at, is_new] = size.emplace(l, d);
      if (is_new) continue;
      if (l < 0 && (d == Dim(1) || at->second == Dim(1))) {
        if (at->second == Dim(1)) at->second = d;
        continue;
      }
      if (decide_equal(at->second, d) == false) {
        c.fail("equation '", a.equation, "': '", l < 0 ? std::string("...") : letters({l}), "' is ",
               at->second, " before and ", d, " in ", c.operand_name(int(i)), ": ", c.in(int(i)));
      }
      at->second = c.same(at->second, d, "sizes");
    }
  }
  Dims dims;
  for (const Label l : e.result) dims.push_back(size.at(l));
  const DType t = c.in(0).dtype();
  return {Shape(c.count() > 1 ? product_dtype(t) : t, std::move(dims))};
}

Exprs Einsum::decompose(const Lower& c, const Attrs& a) {
  Shapes types;
  for (int i = 0; i < c.count(); ++i) types.push_back(c.in(i).shape());
  const Infer types_of(def<Einsum>(), types, nullptr);
  std::string text = a.equation;
  Equation e = parse(types_of, text);
  spell_all_dots(types_of, e, text);

  std::vector<Named> all;
  for (int i = 0; i < c.count(); ++i) {
    Named x = take_diagonals({c.in(i), e.terms[size_t(i)]});
    // An axis of size 1 under the dots broadcasts: it goes, where another operand has it in full.
    for (size_t k = x.labels.size(); k-- > 0;) {
      const auto at = std::find(e.result.begin(), e.result.end(), x.labels[k]);
      if (x.labels[k] >= 0 || x.t.dim(int(k)) != Dim(1)) continue;
      if (c.out().dim(int(at - e.result.begin())) == Dim(1)) continue;
      x.t = squeeze(x.t, int(k));
      x.labels.erase(x.labels.begin() + int64_t(k));
    }
    all.push_back(std::move(x));
  }
  while (all.size() > 1) {
    size_t first = 0, second = 1;
    double best = -1;
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = i + 1; j < all.size(); ++j) {
        const double size = product_size(all[i], all[j], wanted_beside(all, i, j, e.result));
        if (best < 0 || size < best) best = size, first = i, second = j;
      }
    }
    all[first] = contract(all[first], all[second], wanted_beside(all, first, second, e.result));
    all.erase(all.begin() + int64_t(second));
  }
  const Named y = sum_out(all[0], e.result);
  std::vector<int> perm;
  for (const Label l : e.result)
    perm.push_back(int(std::find(y.labels.begin(), y.labels.end(), l) - y.labels.begin()));
  return {perm.empty() ? y.t : transpose(y.t, perm)};
}

std::vector<OpSample<Einsum::Attrs>> Einsum::samples() {
  return {{{"bshd,bthd->bhst"}, {"f32[2,3,2,3]", "f32[2,4,2,3]"}},
          {{"ijk,kl,jm->iml"}, {"f32[2,3,4]", "f32[4,5]", "f32[3,2]"}},
          {{"ii->i"}, {"f64[3,3]"}},
          {{"i i"}, {"f32[3,3]"}},
          {{"ij->ji"}, {"i32[2,3]"}},
          {{"...ij,...jk->...ik"}, {"f64[2,1,2,3]", "f64[4,3,2]"}},
          {{"ba"}, {"f32[1,2]"}},
          {{"i,i->"}, {"f32[0]", "f32[0]"}},
          {{"i,j->ij"}, {"f16[1]", "f16[3]"}},
          {{"iij,j->i"}, {"c64[2,2,3]", "c64[3]"}},
          {{"i...->..."}, {"f32[3,2]"}}};
}

Expr einsum(const std::string& equation, const Exprs& operands) {
  if (operands.empty()) throw invalid("einsum: no operands; it takes one or more");
  return make<Einsum>(*operands[0].graph, {equation}, Values(operands.begin(), operands.end()));
}

}  // namespace rlx::ops
