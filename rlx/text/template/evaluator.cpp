#include "rlx/text/template/evaluator.h"

#include "rlx/text/template/builtins.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/loop_variable.h"

namespace rlx::text::jinja {

namespace {

constexpr int kMaxDepth = 1000;  // of nested evaluations; each takes a few hundred bytes of stack
constexpr int kMaxCalls = 50;    // of macros inside macros
constexpr int64_t kMaxRange = 100'000;

/// Variables of one scope. Loops and macros open a new one; `if` does not, as in Jinja.
struct Scope : std::enable_shared_from_this<Scope> {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}
  Dict variables;
  std::shared_ptr<Scope> parent;
};
using ScopePtr = std::shared_ptr<Scope>;

enum class Flow { normal, break_, continue_ };

class Evaluator {
 public:
  Evaluator(const Dict& variables, const std::tm& now)
      : now_(now), globals_(std::make_shared<Scope>(nullptr)) {
    add_globals();
    for (const auto& [name, value] : variables) globals_->variables.set_key(name, value);
  }
  // Macros hold the scope they were written in, which holds them; namespaces can hold themselves. Emptying
  // both breaks the circles, and keeps a long chain of namespaces from being freed by recursion.
  ~Evaluator() {
    for (const auto& n : namespaces_) n->values = {};
    for (const auto& l : loops_) l->forget();
    for (const auto& s : captured_) s->variables = {};
  }
  Evaluator(const Evaluator&) = delete;

  std::string run(const Block& block) {
    std::string out;
    execute(block, std::make_shared<Scope>(globals_), out);
    return out;
  }

 private:
  struct Deeper {
    Deeper(Evaluator& e, Place place) : evaluator(e) {
      if (++evaluator.depth_ > kMaxDepth)
        throw error_at(place, cat("evaluation nests deeper than ", kMaxDepth, " levels"));
    }
    ~Deeper() { --evaluator.depth_; }
    Evaluator& evaluator;
  };

  Budget& budget() { return runtime_.budget; }

  void add_globals() {
    const auto add = [&](std::string_view name, Function f) {
      globals_->variables.set(name, make_function(std::move(f)));
    };
    add("raise_exception", [](CallArguments& a) -> Value {
      const std::string message = a.required_string("message");
      throw invalid("template: ", message);
    });
    add("strftime_now", [this](CallArguments& a) -> Value {
      const std::string format = a.required_string("format");
      a.finish();
      if (format.empty()) return Value("");
      // Python's time has no zone here, and says nothing of it.
      std::string zoneless;
      for (size_t i = 0; i < format.size(); ++i) {
        const bool directive = format[i] == '%' && i + 1 < format.size();
        const char letter = directive ? format[++i] : format[i];
        if (directive && (letter == 'z' || letter == 'Z')) continue;
        if (directive) zoneless.push_back('%');
        zoneless.push_back(letter);
      }
      std::string out(zoneless.size() * 16 + 256, '\0');
      out.resize(std::strftime(out.data(), out.size(), zoneless.c_str(), &now_));
      return Value(std::move(out));
    });
    add("range", [this](CallArguments& a) { return range(a); });
    add("dict", [this](CallArguments& a) { return checked([&] { return Value(new_dict(a)); }, a.place()); });
    add("namespace", [this](CallArguments& a) -> Value {
      auto n = std::make_shared<Namespace>();
      n->values = new_dict(a);
      namespaces_.push_back(n);
      return Value(std::shared_ptr<Object>(n));
    });
    add("cycler", [this](CallArguments& a) -> Value { return cycler(a); });
    add("joiner", [](CallArguments& a) -> Value {
      const std::string separator = a.string("sep", ", ");
      a.finish();
      return make_function([separator, used = std::make_shared<bool>(false)](CallArguments& call) -> Value {
        call.finish();
        return Value(std::exchange(*used, true) ? separator : std::string());
      });
    });
  }

  // dict(mapping, name=value): the mapping is an object, or a list of pairs.
  Dict new_dict(CallArguments& a) {
    Dict d;
    const auto set = [&](const Value& key, const Value& value) {
      if (!Dict::is_key(key)) throw error_at(a.place(), cat(key.kind_name(), " cannot be a key"));
      d.set_key(key, value);
    };
    if (const Value* from = a.positional.empty() ? nullptr : a.optional("mapping")) {
      if (from->is_dict()) {
        d = from->as_dict();
      } else {
        for (const Value& pair : elements(*from, a.place(), budget())) {
          const List both = elements(pair, a.place(), budget());
          if (both.size() != 2)
            throw error_at(a.place(),
                           cat("'", a.callee(), "' needs an object or pairs, got ", both.size(), " values"));
          set(both[0], both[1]);
        }
      }
    }
    for (const auto& [key, value] : a.rest_by_name()) set(key, value);
    a.finish();
    return d;
  }

  // An object with `current`, `next()` and `reset()`.
  Value cycler(CallArguments& a) {
    const auto items = std::make_shared<List>(a.rest());
    a.finish();
    if (items->empty()) throw error_at(a.place(), "'cycler' needs an argument");
    auto n = std::make_shared<Namespace>();
    namespaces_.push_back(n);
    const auto at = std::make_shared<size_t>(0);
    Namespace* self = n.get();  // lives as long as the rendering
    n->values.set("current", (*items)[0]);
    n->values.set("next", make_function([=](CallArguments& call) -> Value {
                    call.finish();
                    const Value now = (*items)[*at];
                    *at = (*at + 1) % items->size();
                    self->values.set("current", (*items)[*at]);
                    return now;
                  }));
    n->values.set("reset", make_function([=](CallArguments& call) -> Value {
                    call.finish();
                    *at = 0;
                    self->values.set("current", (*items)[0]);
                    return Value();
                  }));
    return Value(std::shared_ptr<Object>(n));
  }

  Value range(CallArguments& a) {
    const size_t given = a.positional.size();
    int64_t start = 0, stop = a.integer("start", 0), step = 1;
    if (given > 1) start = stop, stop = a.integer("stop", 0);
    if (given > 2) step = a.integer("step", 1);
    a.finish();
    if (given == 0) throw error_at(a.place(), "'range' needs an argument");
    if (step == 0) throw error_at(a.place(), "'range' cannot have step 0");
    List out;
    // The span is taken as unsigned: it can be larger than any int64.
    const uint64_t span = step > 0 ? (stop > start ? uint64_t(stop) - uint64_t(start) : 0)
                                   : (start > stop ? uint64_t(start) - uint64_t(stop) : 0);
    const uint64_t stride = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
    const uint64_t count = span == 0 ? 0 : (span - 1) / stride + 1;
    if (count > uint64_t(kMaxRange))
      throw error_at(a.place(), cat("'range' of ", count, " items; at most ", kMaxRange));
    budget().items(a.place(), size_t(count));
    for (uint64_t i = 0; i < count; ++i) out.emplace_back(start + int64_t(i) * step);
    return make_sequence(Sequence::Kind::range, std::move(out),
                         cat("range(", start, ", ", stop, step == 1 ? "" : cat(", ", step), ")"));
  }

  // Statements.

  Flow execute(const Block& block, const ScopePtr& scope, std::string& out) {
    for (const auto& statement : block) {
      const Flow flow = execute(*statement, scope, out);
      if (flow != Flow::normal) return flow;
    }
    return Flow::normal;
  }

  void write(std::string& out, std::string_view text, Place place) {
    if (out.size() + text.size() > Budget::kMaxText) budget().text(place, out.size() + text.size());
    budget().step(place, 1 + text.size() / 64);
    out.append(text);
  }

  Flow execute(const Stmt& s, const ScopePtr& scope, std::string& out) {
    const Deeper deeper(*this, s.place);
    budget().step(s.place);
    switch (s.kind) {
      case StmtKind::text:
        write(out, s.text, s.place);
        break;
      case StmtKind::output:
        write(out, to_text(evaluate(*s.expr, scope), s.expr->place, budget()), s.place);
        break;
      case StmtKind::choose:
        return choose(s, scope, out);
      case StmtKind::loop:
        return loop(s, scope, out);
      case StmtKind::assign:
        assign(s, scope);
        break;
      case StmtKind::capture: {
        std::string text;
        const Flow flow = execute(s.bodies[0], std::make_shared<Scope>(scope), text);
        if (flow != Flow::normal) return flow;
        scope->variables.set(s.target.name, s.expr ? filtered(*s.expr, Value(std::move(text)), scope)
                                                   : Value(std::move(text)));
        break;
      }
      case StmtKind::macro:
        scope->variables.set(s.text, macro(s, scope));
        break;
      case StmtKind::call: {
        const Value caller = macro(s, scope);
        write(out, to_text(call(*s.expr, scope, &caller), s.place, budget()), s.place);
        break;
      }
      case StmtKind::filter: {
        std::string text;
        const Flow flow = execute(s.bodies[0], std::make_shared<Scope>(scope), text);
        if (flow != Flow::normal) return flow;
        write(out, to_text(filtered(*s.expr, Value(std::move(text)), scope), s.place, budget()), s.place);
        break;
      }
      case StmtKind::scope: {
        const auto inner = std::make_shared<Scope>(scope);
        for (size_t i = 0; i < s.names.size(); ++i)
          inner->variables.set(s.names[i], evaluate(*s.conditions[i], scope));
        return execute(s.bodies[0], inner, out);
      }
      case StmtKind::break_:
        return Flow::break_;
      case StmtKind::continue_:
        return Flow::continue_;
    }
    return Flow::normal;
  }

  // A filter chain written without its input: the text takes the place of the empty name.
  Value filtered(const Expr& chain, Value text, const ScopePtr& scope) {
    const auto inner = std::make_shared<Scope>(scope);
    inner->variables.set("", std::move(text));
    return evaluate(chain, inner);
  }

  Flow choose(const Stmt& s, const ScopePtr& scope, std::string& out) {
    for (size_t i = 0; i < s.conditions.size(); ++i)
      if (truth(evaluate(*s.conditions[i], scope))) return execute(s.bodies[i], scope, out);
    return s.bodies.size() > s.conditions.size() ? execute(s.bodies.back(), scope, out) : Flow::normal;
  }

  void assign(const Stmt& s, const ScopePtr& scope) {
    Value value = evaluate(*s.expr, scope);
    if (s.attribute.empty()) return bind(s.target, std::move(value), *scope, s.place);
    const Value target = lookup(s.target.name, scope);
    if (!target.is_object() || !target.as_object()->set(s.attribute, std::move(value)))
      throw error_at(s.place,
                     cat("'", s.target.name, "' is not a namespace; only its attributes can be set"));
  }

  void bind(const Target& target, Value value, Scope& scope, Place place) {
    if (!target.name.empty()) return scope.variables.set(target.name, std::move(value));
    const List parts = elements(value, place, budget());
    if (parts.size() != target.parts.size())
      throw error_at(place,
                     cat("cannot unpack ", parts.size(), " values into ", target.parts.size(), " names"));
    for (size_t i = 0; i < parts.size(); ++i) bind(target.parts[i], parts[i], scope, place);
  }

  Flow loop(const Stmt& s, const ScopePtr& scope, std::string& out) {
    return loop_over(s, evaluate(*s.expr, scope), scope, out, 0);
  }

  // `depth` counts the calls of a recursive loop by itself.
  Flow loop_over(const Stmt& s, const Value& over, const ScopePtr& scope, std::string& out, int depth) {
    List items = elements(over, s.expr->place, budget());
    if (s.condition) {
      List kept;
      for (Value& v : items) {
        const auto inner = std::make_shared<Scope>(scope);
        bind(s.target, v, *inner, s.place);
        if (truth(evaluate(*s.condition, inner))) kept.push_back(std::move(v));
      }
      items.swap(kept);
    }
    if (items.empty()) return s.bodies.size() > 1 ? execute(s.bodies[1], scope, out) : Flow::normal;
    LoopVariable::Recurse recurse;
    if (s.recursive)
      recurse = [this, &s, scope, depth](CallArguments& a) { return again(s, scope, a, depth + 1); };
    const auto variable =
        std::make_shared<LoopVariable>(std::move(items), depth, std::move(recurse), budget());
    loops_.push_back(variable);
    for (; !variable->done(); variable->next()) {
      budget().step(s.place, 5);
      const auto inner = std::make_shared<Scope>(scope);
      bind(s.target, variable->item(), *inner, s.place);
      inner->variables.set("loop", Value(std::shared_ptr<Object>(variable)));
      if (execute(s.bodies[0], inner, out) == Flow::break_) break;
    }
    // Kept only where the template kept it, which may be in a circle.
    if (loops_.back() == variable && variable.use_count() == 2) loops_.pop_back();
    return Flow::normal;
  }

  Value again(const Stmt& s, const ScopePtr& scope, CallArguments& a, int depth) {
    const Value over = a.required("iterable");
    a.finish();
    if (++calls_ > kMaxCalls)
      throw error_at(a.place(), cat("a recursive loop calls itself deeper than ", kMaxCalls, " levels"));
    std::string text;
    loop_over(s, over, scope, text, depth);
    --calls_;
    return Value(std::move(text));
  }

  // A macro, or the body of a call block, as something to call. The statement outlives the rendering.
  Value macro(const Stmt& s, const ScopePtr& scope) {
    if (captured_.empty() || captured_.back() != scope) captured_.push_back(scope);
    return make_function([this, &s, scope = scope.get()](CallArguments& a) -> Value {
      if (++calls_ > kMaxCalls)
        throw error_at(a.place(), cat("macros call each other deeper than ", kMaxCalls, " levels"));
      const auto inner = std::make_shared<Scope>(scope->shared_from_this());
      for (const Parameter& p : s.parameters) {
        const Value* given = a.optional(p.name);
        inner->variables.set(p.name, given         ? *given
                                     : p.otherwise ? evaluate(*p.otherwise, inner)
                                                   : Value::undefined(p.name));
      }
      // What a body does not name it does not take.
      if (s.uses_varargs) inner->variables.set("varargs", Value::tuple(a.rest()));
      if (s.uses_caller) {
        const Value* caller = a.by_name("caller");
        inner->variables.set("caller", caller ? *caller : Value::undefined("caller"));
      }
      if (s.uses_kwargs) inner->variables.set("kwargs", Value(a.rest_by_name()));
      a.finish();
      std::string text;
      execute(s.bodies[0], inner, text);
      --calls_;
      return Value(std::move(text));
    });
  }

  // Expressions.

  Value lookup(std::string_view name, const ScopePtr& scope) const {
    for (const Scope* s = scope.get(); s; s = s->parent.get())
      if (const Value* v = s->variables.find(name)) return *v;
    return Value::undefined(name);
  }

  Value evaluate(const Expr& e, const ScopePtr& scope) {
    const Deeper deeper(*this, e.place);
    budget().step(e.place);
    const auto part = [&](size_t i) { return evaluate(*e.parts[i], scope); };
    switch (e.kind) {
      case ExprKind::literal:
        return e.value;
      case ExprKind::name:
        return lookup(e.text, scope);
      case ExprKind::list:
      case ExprKind::tuple:
        return list(e, scope);
      case ExprKind::dict:
        return dict(e, scope);
      case ExprKind::attribute:
        return attribute(part(0), e);
      case ExprKind::subscript:
        return subscript(part(0), part(1), e.place);
      case ExprKind::slice: {
        const auto bound = [&](size_t i) { return e.parts[i] ? part(i) : Value(); };
        return slice(part(0), bound(1), bound(2), bound(3), e.place, budget());
      }
      case ExprKind::call:
        return call(e, scope, nullptr);
      case ExprKind::filter: {
        const Value input = part(0);
        CallArguments a = arguments(e, scope, e.text);
        return apply_filter(e.text, input, a, runtime_);
      }
      case ExprKind::test: {
        const Value input = part(0);
        CallArguments a = arguments(e, scope, e.text);
        return Value(apply_test(e.text, input, a, runtime_));
      }
      case ExprKind::negate:
        return negated(part(0), e.place);
      case ExprKind::positive:
        return arithmetic("+", Value(0), part(0), e.place, budget());
      case ExprKind::logical_not:
        return Value(!truth(part(0)));
      case ExprKind::logical_and: {
        Value left = part(0);
        return truth(left) ? part(1) : left;
      }
      case ExprKind::logical_or: {
        Value left = part(0);
        return truth(left) ? left : part(1);
      }
      case ExprKind::binary:
        return arithmetic(e.text, part(0), part(1), e.place, budget());
      case ExprKind::compare:
        return compare(e, scope);
      case ExprKind::conditional:
        if (truth(part(0))) return part(1);
        return e.parts[2] ? part(2) : Value::undefined("the else of a conditional");
    }
    return Value();
  }

  Value list(const Expr& e, const ScopePtr& scope) {
    List out;
    for (const ExprPtr& p : e.parts) out.push_back(evaluate(*p, scope));
    return checked(
        [&] { return e.kind == ExprKind::tuple ? Value::tuple(std::move(out)) : Value(std::move(out)); },
        e.place);
  }

  Value dict(const Expr& e, const ScopePtr& scope) {
    Dict out;
    for (size_t i = 0; i + 1 < e.parts.size(); i += 2) {
      const Value key = evaluate(*e.parts[i], scope);
      if (!Dict::is_key(key)) throw error_at(e.parts[i]->place, cat(key.kind_name(), " cannot be a key"));
      out.set_key(key, evaluate(*e.parts[i + 1], scope));
    }
    return checked([&] { return Value(std::move(out)); }, e.place);
  }

  // Making a value that nests too deep is refused by Value itself, which does not know the place.
  template <class Make>
  Value checked(Make make, Place place) {
    try {
      return make();
    } catch (const Error& e) {
      throw error_at(place, e.message());
    }
  }

  Value attribute(const Value& object, const Expr& e) {
    if (object.is_undefined())
      throw error_at(e.place, cat("'", object.undefined_name(), "' is undefined, so it has no attribute '",
                                  e.text, "'"));
    if (object.is_object()) return object.as_object()->get(e.text);
    // The groups of `groupby` are pairs with names.
    if (object.is_tuple() && object.as_list().size() == 2 && (e.text == "grouper" || e.text == "list"))
      return object.as_list()[e.text == "list"];
    Value method = checked([&] { return find_method(object, e.text, runtime_); }, e.place);
    return method.is_undefined() ? item(object, Value(e.text), e.place) : method;
  }

  Value subscript(const Value& object, const Value& key, Place place) {
    Value found = item(object, key, place);
    if (found.is_undefined() && key.is_string())
      return checked([&] { return find_method(object, key.as_string(), runtime_); }, place);
    return found;
  }

  CallArguments arguments(const Expr& e, const ScopePtr& scope, std::string_view callee) {
    CallArguments a(callee, e.place);
    for (const Argument& argument : e.arguments) {
      Value v = evaluate(*argument.value, scope);
      if (argument.spread == Argument::Spread::list) {
        for (Value& item : elements(v, e.place, budget())) a.positional.push_back(std::move(item));
      } else if (argument.spread == Argument::Spread::dict) {
        if (!v.is_dict()) throw error_at(e.place, cat("'**' needs an object, got ", v.kind_name()));
        for (const auto& [key, item] : v.as_dict()) {
          if (!key.is_string()) throw error_at(e.place, cat("the name of an argument is ", key.kind_name()));
          a.named.emplace_back(key.as_string(), item);
        }
      } else if (argument.name.empty()) {
        a.positional.push_back(std::move(v));
      } else {
        a.named.emplace_back(argument.name, std::move(v));
      }
    }
    return a;
  }

  Value call(const Expr& e, const ScopePtr& scope, const Value* caller) {
    const Expr& callee = *e.parts[0];
    const Value function = evaluate(callee, scope);
    const std::string name = callee.text.empty() ? "this value" : callee.text;
    if (!function.is_object()) {
      throw error_at(e.place, function.is_undefined()
                                  ? cat("'", name, "' is not a known function or method")
                                  : cat("'", name, "' is ", function.kind_name(), " and cannot be called"));
    }
    CallArguments a = arguments(e, scope, name);
    if (caller) a.named.emplace_back("caller", *caller);
    return function.as_object()->call(a);
  }

  Value compare(const Expr& e, const ScopePtr& scope) {
    Value left = evaluate(*e.parts[0], scope);
    for (size_t i = 0; i < e.ops.size(); ++i) {
      Value right = evaluate(*e.parts[i + 1], scope);
      if (!holds(e.ops[i], left, right, e.place)) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }

  bool holds(std::string_view op, const Value& a, const Value& b, Place place) {
    if (op == "==") return equal(a, b, place, budget());
    if (op == "!=") return !equal(a, b, place, budget());
    if (op == "in") return contains(b, a, place, budget());
    if (op == "not in") return !contains(b, a, place, budget());
    const int o = order(a, b, place, budget());
    return op == "<" ? o < 0 : op == ">" ? o > 0 : op == "<=" ? o <= 0 : o >= 0;
  }

  Runtime runtime_;
  std::tm now_;
  ScopePtr globals_;
  std::vector<ScopePtr> captured_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<LoopVariable>> loops_;
  int depth_ = 0, calls_ = 0;
};

}  // namespace

std::string evaluate(const Block& block, const Dict& variables, const std::tm& now) {
  return Evaluator(variables, now).run(block);
}

}  // namespace rlx::text::jinja
