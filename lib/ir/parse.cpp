// Reads the text form of a jaxpr, the exact inverse of print. Untrusted text is safe: depth, length
// and numbers of sizes are bounded, sizes and avals are checked, and what comes out is what the
// checker accepts: names are bound once and before use (J1, J2), primitives are found (J3), the
// stated avals are those that the rules infer (J4, J7), literals fit (J5), and the Builder puts
// equations in order (J6). tests/fuzz asks the checker whether that is so.
//
// Programs repeat themselves: types, parameters and comments that were read once are found again by
// their text.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "ir/names.h"
#include "ir/source_comment.h"

namespace plait {
namespace {

constexpr int max_depth = 100;
constexpr std::size_t max_length = std::size_t(1) << 30, max_sizes = 1000;

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
  [[noreturn]] void refuse(const std::string& problem,
                           const std::string& fix = "give text as print writes it") {
    int line = 1, column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    throw ValueError("parse: line " + std::to_string(line) + ", column " + std::to_string(column) +
                         ": " + problem,
                     fix);
  }
  [[noreturn]] void fail(const std::string& expected) { refuse("expected " + expected + found()); }
  std::string found() const {
    std::string found(text_.substr(std::min(at_, text_.size()), 20));
    found = found.substr(0, found.find('\n'));
    return found.empty() ? ", and the text ends" : ", found `" + found + "`";
  }
  [[noreturn]] void fail_at(std::size_t at, const std::string& expected) {
    at_ = at;
    fail(expected);
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
  std::string_view word(const char* what) {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
    // A dot belongs to a word only inside it.
    while (end > at_ && text_[end - 1] == '.') --end;
    if (end == at_ || is_digit(text_[at_])) fail(what);
    const std::string_view result = text_.substr(at_, end - at_);
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
  // The end of the brackets that open here, of what stands on one line and holds no jaxpr; the
  // start where there is none.
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
  const Aval& aval() {
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
    Aval read = read_aval();
    return avals_.insert_or_assign(text_.substr(start, at_ - start), std::move(read)).first->second;
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
  std::string quoted() {
    std::string value;
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '\'') {
        at_ = i + 1;
        return value;
      }
      if (c == '\\' && ++i < text_.size()) c = text_[i] == 'n' ? '\n' : text_[i];
      value += c;
    }
    fail("a closing quote");
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

  Params params(int depth) {
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
    Params result(std::move(entries));
    if (at_ == end) params_.emplace(text_.substr(start, end - start), result);
    return result;
  }

  Atom atom(const Names& names) {
    const char c = peek();
    if (!is_letter(c) && c != '_') return literal();
    // "nan" may be a var; as a literal it has a colon.
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
  // Names the others that are not defined, too: what defines one may define all.
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

  // What reading an equation needs, kept for the next one.
  struct Scratch {
    std::vector<std::pair<std::string_view, std::size_t>> outputs;  // names, where they stand
    std::vector<Aval> stated, inputs;
  };

  void equation(Builder& builder, Names& names, Scratch& scratch, int depth) {
    auto& [outputs, stated, avals] = scratch;
    outputs.clear(), stated.clear(), avals.clear();
    while (peek() != '=') {
      const std::size_t place = at_;
      outputs.emplace_back(word("a var"), place);
      expect(":");
      stated.push_back(aval());
    }
    expect("=");
    const std::size_t start = (skip(), at_);
    const Primitive& called = primitive();
    Params parameters = ahead(0) == "[" ? params(depth) : Params();
    std::vector<Atom> inputs = operands(names);
    for (const Atom& atom : inputs) avals.push_back(builder.aval(atom));
    const Source source = ahead(0) == "#" ? comment() : Source();
    std::vector<Aval> inferred = infer_at(start, called, avals, parameters);
    if (inferred.size() != outputs.size())
      fail_at(start, std::to_string(inferred.size()) + " outputs of " + std::string(called.name()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!(inferred[i] == stated[i]))
        fail_at(start,
                "output " + std::string(outputs[i].first) + " of type " + inferred[i].to_string());
    const std::vector<Var> bound =
        builder.add(called, std::move(inputs), std::move(parameters), source, std::move(inferred));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      bind(names, outputs[i].first, outputs[i].second, bound[i]);
  }
  // To the end of the line.
  std::vector<Atom> operands(const Names& names) {
    std::vector<Atom> inputs;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == '#' || c == '}') break;
      if (c == ' ')
        ++at_;
      else
        inputs.push_back(atom(names));
    }
    return inputs;
  }
  std::vector<Aval> infer_at(std::size_t place, const Primitive& called,
                             std::span<const Aval> inputs, const Params& parameters) {
    try {
      return infer(called, inputs, parameters);
    } catch (const InternalError& error) {  // a rule takes its parameters for granted
      fail_at(place, "an equation that is possible: " + error.problem());
    } catch (const UserError& error) {
      at_ = place;
      refuse(error.problem(), error.fix());
    }
  }

  void bind(Names& names, std::string_view name, std::size_t place, Var var) {
    if (!names.bind(name, var))
      fail_at(place, "a name other than " + std::string(name) + ", which is bound already");
  }

  std::vector<Constraint> constraints() {
    std::vector<Constraint> result;
    if (!at_word("where")) return result;
    expect("where");
    do {
      const Dim left = dim();
      expect("<=");
      result.push_back({left, dim()});
      if (result.size() > max_sizes) fail("at most " + std::to_string(max_sizes) + " constraints");
    } while (accept(","));
    return result;
  }

  Jaxpr jaxpr(int depth) {
    if (depth > max_depth) fail("at most " + std::to_string(max_depth) + " nested jaxprs");
    Builder builder;
    Names names;
    Scratch scratch;
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
      bind(names, name, place, builder.add_binder(aval()));
    }
    const std::vector<Constraint> needed = constraints();
    for (const Constraint& constraint : needed) builder.add_constraint(constraint);
    const GrantedConstraints granted(needed);
    expect(".");
    expect("let");
    while (!at_word("in") || ahead(2) == ":") equation(builder, names, scratch, depth);
    expect("in");
    expect("(");
    std::vector<Atom> outputs;
    while (peek() != ')') {
      outputs.push_back(atom(names));
      if (!accept(",")) break;
    }
    expect(")");
    expect("}");
    const Jaxpr result = builder.close(std::move(outputs), sizes);
    if (result->sizes.size() != sizes.size())
      fail("every size to be bound: " + result->sizes.back().to_string() + " is not");
    return result;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::unordered_map<std::string_view, Aval> avals_;
  std::unordered_map<std::string_view, Params> params_;
  std::unordered_map<std::string_view, Source> comments_;
  std::unordered_map<std::string_view, const Primitive*> primitives_;
};

}  // namespace

Jaxpr parse(std::string_view text) { return Parser(text).whole(); }

}  // namespace plait
