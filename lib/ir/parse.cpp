// Reads the text form of a jaxpr, the exact inverse of print. Untrusted text is safe: depth and
// length are bounded, sizes and avals are checked, and what comes out has passed the checker.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <charconv>
#include <cmath>
#include <map>

namespace plait {
namespace {

constexpr int max_depth = 100;
constexpr std::size_t max_length = std::size_t(1) << 30;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Jaxpr whole() {
    if (text_.size() > max_length) fail("at most " + std::to_string(max_length) + " characters");
    Jaxpr result = jaxpr(0);
    if (peek() != '\0') fail("the end of the text");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) {
    int line = 1, column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    std::string found(text_.substr(std::min(at_, text_.size()), 20));
    found = found.substr(0, found.find('\n'));
    throw ValueError("parse: line " + std::to_string(line) + ", column " + std::to_string(column) +
                         ": expected " + expected +
                         (found.empty() ? ", and the text ends" : ", found `" + found + "`"),
                     "give text as print writes it");
  }

  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')
        ++at_;
      else if (text_[at_] == '#')
        at_ = std::min(text_.size(), text_.find('\n', at_));
      else
        return;
    }
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("`" + std::string(token) + "`");
  }
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '\'';
  }
  std::string word(const char* what) {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
    // A dot belongs to a word only inside it.
    while (end > at_ && text_[end - 1] == '.') --end;
    if (end == at_ || end > text_.size() || std::isdigit(static_cast<unsigned char>(text_[at_])))
      fail(what);
    std::string result(text_.substr(at_, end - at_));
    at_ = end;
    return result;
  }
  bool at_word(std::string_view expected) {
    skip();
    return text_.substr(at_, expected.size()) == expected &&
           (at_ + expected.size() >= text_.size() || !is_word(text_[at_ + expected.size()]));
  }

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
    const Dim result = Dim::parse(text_.substr(at_, end - at_));
    at_ = end;
    return result;
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
    if (!found) at_ = start, fail("a dtype");
    return *found;
  }
  Aval aval() {
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
  // The mark of a weak dtype stands right behind it: a line may end here.
  bool star() {
    const bool found = at_ < text_.size() && text_[at_] == '*';
    at_ += found;
    return found;
  }
  std::string_view ahead(std::size_t offset) const {
    return at_ + offset < text_.size() ? text_.substr(at_ + offset, 1) : "";
  }

  double number() {
    skip();
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() && error != std::errc::result_out_of_range) fail("a number");
    at_ = end - text_.data();
    return value;
  }
  Literal literal() {
    Literal result;
    const std::size_t start = (skip(), at_);
    // The dtype stands behind the value, so the value's text is read once its kind is known.
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
      at_ = start, fail("a value that fits " + std::string(name_of(result.dtype)));
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
    if (c == '\'') {
      const std::size_t end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) fail("a closing quote");
      std::string value(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return value;
    }
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
  // "(1,2)" is a list; "(n+1)*m" is a size that starts with a bracket.
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

  Jaxpr jaxpr(int depth) {
    if (depth > max_depth) fail("at most " + std::to_string(max_depth) + " nested jaxprs");
    Builder builder;
    std::map<std::string, Var, std::less<>> vars;
    auto bind_var = [&](const std::string& name, Var var) {
      if (!vars.emplace(name, var).second)
        fail("a name other than " + name + ", which is bound already");
    };
    auto atom = [&]() -> Atom {
      const char c = peek();
      const std::size_t start = at_;
      if (std::isalpha(static_cast<unsigned char>(c)) && !at_word("true") && !at_word("false") &&
          !at_word("inf") && !at_word("nan")) {
        const std::string name = word("a var");
        const auto found = vars.find(name);
        if (found == vars.end()) at_ = start, fail("a var that is bound");
        return found->second;
      }
      // Vars may be called "inf" or "nan" too: a literal has a colon.
      if (std::isalpha(static_cast<unsigned char>(c)) && ahead(3) != ":" &&
          (at_word("inf") || at_word("nan"))) {
        const auto found = vars.find(word("a var"));
        if (found == vars.end()) at_ = start, fail("a var that is bound");
        return found->second;
      }
      return literal();
    };
    expect("{");
    expect("lambda");
    std::vector<Dim> sizes;
    while (peek() != ';') {
      const Dim size = Dim::size(word("the name of a size"));
      sizes.push_back(size);
    }
    expect(";");
    while (peek() != '.' && !at_word("where")) {
      const std::string name = word("a binder");
      expect(":");
      bind_var(name, builder.add_binder(aval()));
    }
    std::vector<Constraint> constraints;
    if (at_word("where")) {
      expect("where");
      do {
        const Dim left = dim();
        expect("<=");
        constraints.push_back({left, dim()});
        builder.add_constraint(constraints.back());
      } while (accept(","));
    }
    const GrantedConstraints granted(constraints);
    expect(".");
    expect("let");
    while (!at_word("in") || ahead(2) == ":") {
      std::vector<std::pair<std::string, Aval>> outputs;
      while (peek() != '=') {
        const std::string name = word("a var");
        expect(":");
        outputs.emplace_back(name, aval());
      }
      expect("=");
      const std::size_t start = (skip(), at_);
      const std::string name = word("a primitive");
      const Primitive* primitive = find_primitive(name);
      if (!primitive) at_ = start, fail("a primitive that is defined");
      std::vector<Params::Entry> params;
      if (at_ < text_.size() && text_[at_] == '[') {
        expect("[");
        do {
          const std::string key = word("a parameter");
          expect("=");
          params.emplace_back(key, param(depth));
        } while (accept(","));
        expect("]");
      }
      // Inputs go to the end of the line.
      std::vector<Atom> inputs;
      auto more = [&] {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        return at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '#' && text_[at_] != '}';
      };
      while (more()) inputs.push_back(atom());
      std::vector<Var> bound;
      try {
        bound = builder.add(*primitive, std::move(inputs), Params(std::move(params)), {});
      } catch (const InternalError& error) {  // a rule takes its parameters for granted
        at_ = start;
        fail("an equation that is possible: " + error.problem());
      }
      if (bound.size() != outputs.size())
        at_ = start, fail(std::to_string(bound.size()) + " outputs of " + name);
      for (std::size_t i = 0; i < bound.size(); ++i) {
        if (!(builder.aval(bound[i]) == outputs[i].second))
          at_ = start,
          fail("output " + outputs[i].first + " of type " + builder.aval(bound[i]).to_string());
        bind_var(outputs[i].first, bound[i]);
      }
    }
    expect("in");
    expect("(");
    std::vector<Atom> outputs;
    while (peek() != ')') {
      outputs.push_back(atom());
      if (!accept(",")) break;
    }
    expect(")");
    expect("}");
    const Jaxpr result = builder.close(std::move(outputs), sizes);
    if (result->sizes.size() != sizes.size())
      fail("every size to be bound: " + result->sizes.back().to_string() + " is not");
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Jaxpr parse(std::string_view text) {
  const Jaxpr jaxpr = Parser(text).whole();
  try {
    check(jaxpr);
  } catch (const InternalError& error) {
    throw ValueError("parse: " + error.problem(), "give text as print writes it");
  }
  return jaxpr;
}

}  // namespace plait
