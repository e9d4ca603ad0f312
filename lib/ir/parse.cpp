// Reads the text form of a jaxpr, the exact inverse of print. Untrusted text is safe: depth, length
// and numbers of sizes are bounded, sizes and avals are checked, and the checker accepts the
// result. Names are bound once and before use (J1, J2), primitives are found (J3), the stated avals
// are those that the rules infer (J4, J7), literals fit (J5), and the Builder puts equations in
// order (J6). tests/fuzz confirms this with the checker.
//
// Programs repeat themselves. Types that were read once are found again by their text (terms.h),
// and a rule's answer for one equation holds for others of the same types.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/jaxpr.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "ir/close.h"
#include "ir/names.h"
#include "ir/terms.h"

namespace plait {
namespace {

class Parser final : Terms {
 public:
  explicit Parser(std::string_view text) : Terms(text) { literal_types_.fill(-1); }

  Jaxpr whole() {
    if (text_.size() > max_length) fail("at most " + std::to_string(max_length) + " characters");
    Jaxpr result = jaxpr(0);
    if (peek() != '\0') fail("the end of the text");
    return result;
  }

 private:
  // The index of a type in types_.
  int aval() {
    skip();
    std::size_t end = end_of_brackets();
    if (end < text_.size() && text_[end] == '*') ++end;
    if (end < text_.size() && text_[end] == '{') end = std::min(text_.find('}', end), end) + 1;
    const std::size_t start = at_;
    const std::string_view text = text_.substr(start, end - start);
    const auto known = avals_.find(text);
    if (known != avals_.end()) {
      at_ = end;
      return known->second;
    }
    types_.push_back(read_aval());
    return avals_[text_.substr(start, at_ - start)] = int(types_.size()) - 1;
  }
  int type_of(const Literal& literal) {
    int& known = literal_types_[std::size_t(literal.dtype) * 2 + literal.weak];
    if (known < 0) {
      known = int(types_.size());
      types_.push_back(literal.aval());
    }
    return known;
  }

  Atom atom(const Names& names) {
    const char c = peek();
    if (!is_letter(c) && c != '_') return literal();
    // "nan" may be a var; the literal has a colon.
    for (std::string_view word : {"true", "false", "inf", "nan"})
      if (c == word[0] && at_word(word) && ahead(word.size()) == ":") return literal();
    const std::size_t start = at_;
    const std::optional<Var> var = names.find(word("a var"));
    if (!var) fail_at(start, "a var that is bound");
    return *var;
  }

  const Primitive& primitive() {
    const std::size_t start = (skip(), at_);
    const Primitive* const known = primitive_or_none();
    if (!known) refuse_primitive(start);
    return *known;
  }
  // Lists other undefined primitives too: one library may define them all.
  [[noreturn]] void refuse_primitive(std::size_t start) {
    constexpr std::size_t most = 10;
    std::vector<std::string_view> others;
    const std::string_view first = text_.substr(start, at_ - start);
    while ((at_ = text_.find(" = ", at_)) != std::string_view::npos && others.size() < most) {
      std::size_t end = at_ += 3;
      while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
      const std::string_view name = text_.substr(at_, end - at_);
      if (name != first && !name.empty() && !find_primitive(name) &&
          std::find(others.begin(), others.end(), name) == others.end())
        others.push_back(name);
    }
    at_ = start;
    std::string problem = "expected a primitive that is defined" + found();
    for (std::size_t i = 0; i < others.size(); ++i)
      problem += (i ? ", " : "; nor are defined: ") + std::string(others[i]);
    refuse(problem, "load the library or module that defines it first");
  }

  // A jaxpr being read, and buffers for reading equations, reused for the next one.
  struct Body {
    OpenJaxpr open;
    Names names;
    std::vector<int> types;    // of every var
    char32_t constraints = 0;  // the number of the set of constraints that rules may assume
    struct Output {
      std::string_view name;
      std::size_t place;
      int type;
    };
    std::vector<Output> outputs;
    std::vector<Atom> inputs;
    std::u32string signature;
  };

  Var add_var(Body& body, std::string_view name, std::size_t place, int type, int defined_by) {
    const Var var = body.open.add_var(types_[std::size_t(type)], defined_by);
    body.types.push_back(type);
    if (!body.names.bind(name, var))
      fail_at(place, "a name other than " + std::string(name) + ", which is bound already");
    return var;
  }

  void equation(Body& body, int depth) {
    body.outputs.clear();
    while (peek() != '=') {
      const std::size_t place = at_;
      const std::string_view name = word("a var");
      expect(":");
      body.outputs.push_back({name, place, aval()});
    }
    expect("=");
    const std::size_t start = (skip(), at_);
    const Primitive& called = primitive();
    Numbered parameters = params(depth);
    operands(body);
    const Source source = ahead(0) == "#" ? comment() : Source();
    check_types(body, start, called, parameters);
    const int number = int(body.open.equations.size());
    Equation& equation = body.open.equations.emplace_back();
    equation.primitive = &called;
    equation.inputs.assign(body.inputs.begin(), body.inputs.end());
    equation.params = std::move(parameters.params);
    equation.source = source;
    equation.outputs.reserve(body.outputs.size());
    for (const auto& [name, place, type] : body.outputs)
      equation.outputs.push_back(add_var(body, name, place, type, number));
  }
  // Reads to the end of the line.
  void operands(Body& body) {
    body.inputs.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == '#' || c == '}') break;
      if (c == ' ')
        ++at_;
      else
        body.inputs.push_back(atom(body.names));
    }
  }
  int type_of(const Body& body, const Atom& atom) {
    return atom.is_var() ? body.types[std::size_t(atom.var().id)] : type_of(atom.literal());
  }

  // Checks that the stated types are those that the rule infers. A rule runs once for the same
  // primitive, parameters and types.
  void check_types(Body& body, std::size_t place, const Primitive& called,
                   const Numbered& parameters) {
    std::u32string& signature = body.signature;
    signature = {body.constraints, char32_t(called.index()), char32_t(body.inputs.size())};
    for (const Atom& atom : body.inputs) signature += char32_t(type_of(body, atom));
    for (const Body::Output& output : body.outputs) signature += char32_t(output.type);
    if (parameters.number) {
      signature += char32_t(*parameters.number);
      if (checked_.contains(signature)) return;
    }
    std::vector<Aval> avals;
    for (const Atom& atom : body.inputs) avals.push_back(types_[std::size_t(type_of(body, atom))]);
    const std::vector<Aval> inferred = infer_at(place, called, avals, parameters.params);
    if (inferred.size() != body.outputs.size())
      fail_at(place, std::to_string(inferred.size()) + " outputs of " + std::string(called.name()));
    for (std::size_t i = 0; i < inferred.size(); ++i)
      if (!(inferred[i] == types_[std::size_t(body.outputs[i].type)]))
        fail_at(place, "output " + std::string(body.outputs[i].name) + " of type " +
                           inferred[i].to_string());
    if (parameters.number) checked_.insert(signature);
  }

  std::vector<Constraint> constraints() {
    std::vector<Constraint> result;
    if (!at_word("where")) return result;
    expect("where");
    std::size_t count = 0;
    do {
      const Dim left = dim();
      expect("<=");
      const Constraint constraint{left, dim()};
      if (std::ranges::find(result, constraint) == result.end()) result.push_back(constraint);
      if (++count > max_sizes) fail("at most " + std::to_string(max_sizes) + " constraints");
    } while (accept(","));
    return result;
  }

  Jaxpr jaxpr(int depth) override {
    if (depth > max_depth) fail("at most " + std::to_string(max_depth) + " nested jaxprs");
    Body body;
    expect("{");
    expect("lambda");
    std::vector<Dim> sizes;
    while (peek() != ';') {
      const std::size_t place = at_;
      const std::string_view name = word("the name of a size");
      if (name.find('.') != std::string_view::npos) fail_at(place, "the name of a size");
      const Dim size = Dim::size(name);
      if (std::find(sizes.begin(), sizes.end(), size) != sizes.end())
        fail_at(place, "a size other than " + size.to_string() + ", which is bound already");
      sizes.push_back(size);
      if (sizes.size() > max_sizes) fail("at most " + std::to_string(max_sizes) + " sizes");
    }
    expect(";");
    while (peek() != '.' && !at_word("where")) {
      const std::size_t place = at_;
      const std::string_view name = word("a binder");
      expect(":");
      body.open.binders.push_back(add_var(body, name, place, aval(), -1));
    }
    body.open.constraints = constraints();
    if (!body.open.constraints.empty()) body.constraints = ++num_constraints_;
    const GrantedConstraints granted(body.open.constraints);
    expect(".");
    expect("let");
    while (!at_word("in") || ahead(2) == ":") equation(body, depth);
    expect("in");
    expect("(");
    std::vector<Atom> outputs;
    while (peek() != ')') {
      outputs.push_back(atom(body.names));
      if (!accept(",")) break;
    }
    expect(")");
    expect("}");
    const Jaxpr result = close(std::move(body.open), std::move(outputs), sizes);
    if (result->sizes.size() != sizes.size())
      fail("every size to be bound: " + result->sizes.back().to_string() + " is not");
    return result;
  }

  std::vector<Aval> types_;
  std::unordered_map<std::string_view, int> avals_;  // indices in types_
  std::array<int, 2 * num_dtypes> literal_types_;    // the same, by dtype and weakness
  std::unordered_set<std::u32string> checked_;       // signatures of equations that rules accept
  char32_t num_constraints_ = 0;                     // sets of them
};

}  // namespace

Jaxpr parse(std::string_view text) { return Parser(text).whole(); }

}  // namespace plait
