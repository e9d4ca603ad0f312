// Reads the text form of a jaxpr, the exact inverse of print. Untrusted text is safe: depth, length
// and numbers of sizes are bounded, sizes and avals are checked, and the checker accepts the
// result. Names are bound once and before use (J1, J2), primitives are found (J3), the stated avals
// are those that the rules infer (J4, J7), literals fit (J5), and the Builder puts equations in
// order (J6). tests/fuzz confirms this with the checker.
//
// Programs repeat themselves. Types, parameters and comments that were read once are found again by
// their text, and a rule's answer for one equation holds for others of the same types.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include <plait/base/internal_error.h>
#include "ir/close.h"
#include "ir/names.h"
#include "ir/scanner.h"
#include "ir/source_comment.h"

namespace plait {
namespace {

constexpr int max_depth = 100;
constexpr std::size_t max_length = std::size_t(1) << 30, max_sizes = 1000;

class Parser : Scanner {
 public:
  explicit Parser(std::string_view text) : Scanner(text) { literal_types_.fill(-1); }

  Jaxpr whole() {
    if (text_.size() > max_length) fail("at most " + std::to_string(max_length) + " characters");
    Jaxpr result = jaxpr(0);
    if (peek() != '\0') fail("the end of the text");
    return result;
  }

 private:
  // A size expression: up to a comma, a closing bracket, or a comparison.
  Dim dim() {
    skip();
    std::size_t end = at_;
    int depth = 0;
    while (end < text_.size()) {
      const char c = text_[end];
      if (c == '(') ++depth;
      if (c == ')' && depth-- == 0) break;
      if (depth == 0 && (c == ',' || c == ']' || c == '<' || c == '}' || c == '\n')) break;
      if (depth == 0 && c == ' ' && end > at_ && text_.substr(end).starts_with(" . ")) break;
      ++end;
    }
    if (end == at_) fail("a size");
    try {
      const Dim result = Dim::parse(text_.substr(at_, end - at_));
      at_ = end;
      return result;
    } catch (const UserError& error) {
      refuse(error.problem(), error.fix());
    }
  }
  Shape shape(char close) {
    Shape result;
    if (peek() != close) {
      do result.push_back(dim());
      while (accept(","));
    }
    expect(std::string_view(&close, 1));
    return result;
  }
  DType dtype() {
    const std::size_t start = (skip(), at_);
    const std::optional<DType> found = dtype_from_name(word("a dtype"));
    if (!found) fail_at(start, "a dtype");
    return *found;
  }
  // The end of the brackets that open here, if they close on this line and hold no jaxpr; otherwise
  // the start.
  std::size_t end_of_brackets() const {
    int depth = 0;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '[') ++depth;
      if (c == ']' && --depth == 0) return i + 1;
      if (c == '\'')
        while (++i < text_.size() && text_[i] != '\'') i += text_[i] == '\\';
      if (c == '{' || c == '\n' || c == '#' || (c == '=' && depth == 0)) break;
    }
    return at_;
  }
  // The index of a type in types_.
  int aval() {
    skip();
    std::size_t end = end_of_brackets();
    if (end < text_.size() && text_[end] == '*') ++end;
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
  Aval read_aval() {
    Aval result;
    while (result.stack < 100 && accept("stack[")) ++result.stack;
    result.dtype = dtype();
    expect("[");
    result.shape = shape(']');
    for (Dim dim : result.shape)
      if (dim.is_constant() && dim.constant() < 0) fail("a size >= 0");
    result.weak = star();
    for (int i = 0; i < result.stack; ++i) expect("]");
    return result;
  }
  // The mark of a weak dtype follows it directly, because a line may end here.
  bool star() {
    const bool found = at_ < text_.size() && text_[at_] == '*';
    at_ += found;
    return found;
  }

  Literal literal() {
    Literal result;
    const std::size_t start = (skip(), at_);
    // The dtype follows the value, whose text is read once its kind is known.
    std::size_t colon = text_.find(':', at_);
    if (colon == std::string_view::npos) fail("a literal such as 2.0:f32");
    at_ = colon + 1;
    result.dtype = dtype();
    result.weak = star();
    const std::size_t end = at_;
    at_ = start;
    if (is_complex(result.dtype)) {
      expect("(");
      result.real = number();
      expect(",");
      result.imaginary = number();
      expect(")");
    } else if (is_floating(result.dtype)) {
      result.real = number();
    } else if (result.dtype == DType::bool_) {
      if (accept("true"))
        result.integer = 1;
      else
        expect("false");
    } else {
      skip();
      const char* first = text_.data() + at_;
      std::uint64_t bits = 0;
      const auto [stop, error] = result.dtype == DType::uint64
                                     ? std::from_chars(first, text_.data() + colon, bits)
                                     : std::from_chars(first, text_.data() + colon, result.integer);
      if (error != std::errc()) fail("an integer");
      if (result.dtype == DType::uint64) result.integer = std::int64_t(bits);
      at_ = stop - text_.data();
    }
    if (at_ != colon) fail("`:`");
    at_ = end;
    if (!(cast(result, result.dtype, result.weak) == result))
      fail_at(start, "a value that fits " + std::string(name_of(result.dtype)));
    return result;
  }

  ParamValue param(int depth) {
    const char c = peek();
    if (c == '{') return jaxpr(depth + 1);
    if (c == '[') {
      expect("[");
      std::vector<Jaxpr> list;
      if (peek() != ']') {
        do list.push_back(jaxpr(depth + 1));
        while (accept(","));
      }
      expect("]");
      return list;
    }
    if (c == '(' && is_list()) {
      expect("(");
      return shape(')');
    }
    if (c == '\'') return quoted();
    if (c == '@')
      fail("a value that text can hold; a host function is known only in the process that made it");
    if (at_word("true") || at_word("false")) return accept("true") || (expect("false"), false);
    const std::string_view value = text_.substr(at_, text_.find_first_of(",]\n", at_) - at_);
    if (dtype_from_name(value)) return dtype();
    if (value == "nan" || value == "inf" || value == "-inf" || value == "-nan") return number();
    const bool numeric =
        !value.empty() && value.find_first_not_of("+-.0123456789e") == std::string_view::npos;
    if (numeric && value.find_first_of(".e") != std::string_view::npos) return number();
    return dim();
  }
  // "(1,2)" is a list; "(n+1)*m" is a size that starts with a parenthesis.
  bool is_list() {
    int depth = 0;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) {
        const char after = i + 1 < text_.size() ? text_[i + 1] : '\0';
        return after == ',' || after == ']' || after == ' ' || after == '\n';
      }
    }
    return false;
  }

  // Parameters, and their number if they were read before or may recur.
  struct Numbered {
    Params params;
    std::optional<int> number;
  };
  Numbered params(int depth) {
    if (ahead(0) != "[") return {Params(), 0};
    const std::size_t start = at_, end = end_of_brackets();
    const auto known = params_.find(text_.substr(start, end - start));
    if (known != params_.end()) {
      at_ = end;
      return known->second;
    }
    std::vector<Params::Entry> entries;
    expect("[");
    do {
      const std::size_t place = (skip(), at_);
      std::string key(word("a parameter"));
      if (std::ranges::any_of(entries, [&](const auto& entry) { return entry.first == key; }))
        fail_at(place, "a parameter other than " + key + ", which is given already");
      expect("=");
      entries.emplace_back(std::move(key), param(depth));
    } while (accept(","));
    expect("]");
    Numbered result{Params(std::move(entries)), std::nullopt};
    if (at_ != end) return result;
    result.number = int(params_.size()) + 1;
    params_.emplace(text_.substr(start, end - start), result);
    return result;
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

  Source comment() {
    const std::size_t end = std::min(text_.size(), text_.find('\n', at_));
    std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
    at_ = end;
    const auto [known, is_new] = comments_.try_emplace(text);
    if (is_new) known->second = source_of_comment(text);
    return known->second;
  }

  const Primitive& primitive() {
    const std::size_t start = (skip(), at_);
    const auto [known, is_new] = primitives_.try_emplace(word("a primitive"));
    if (is_new) known->second = find_primitive(known->first);
    if (!known->second) refuse_primitive(start);
    return *known->second;
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
  std::vector<Aval> infer_at(std::size_t place, const Primitive& called,
                             std::span<const Aval> inputs, const Params& parameters) {
    try {
      return infer(called, inputs, parameters);
    } catch (const InternalError& error) {  // a rule does not check its parameters
      fail_at(place, "an equation that is possible: " + problem_of(error));
    } catch (const UserError& error) {
      at_ = place;
      refuse(error.problem(), error.fix());
    }
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

  Jaxpr jaxpr(int depth) {
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
  std::unordered_map<std::string_view, Numbered> params_;
  std::unordered_set<std::u32string> checked_;  // signatures of equations that rules accept
  char32_t num_constraints_ = 0;                // sets of them
  std::unordered_map<std::string_view, Source> comments_;
  std::unordered_map<std::string_view, const Primitive*> primitives_;
};

}  // namespace

Jaxpr parse(std::string_view text) { return Parser(text).whole(); }

}  // namespace plait
