// Reads the terms of which the texts of programs are made: sizes, types, literals, parameters,
// primitives and the comments that name lines of users. Untrusted text is safe: depth and numbers
// of sizes are bounded, sizes and avals are checked.
//
// Programs repeat themselves. Parameters and comments that were read once are found again by their
// text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/internal_error.h>
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <unordered_map>

#include "ir/scanner.h"
#include "ir/source_comment.h"

namespace plait {

class Terms : protected Scanner {
 protected:
  static constexpr int max_depth = 100;
  static constexpr std::size_t max_length = std::size_t(1) << 30, max_sizes = 1000;

  explicit Terms(std::string_view text) : Scanner(text) {}
  ~Terms() = default;

  // A program that a parameter holds.
  virtual Jaxpr jaxpr(int depth) = 0;

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
    const std::string_view name = word("a dtype");
    const bool is_key = name == "key" && accept("<fry>");
    const std::optional<DType> found = is_key ? DType::key : dtype_from_name(name);
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
    if (at_ < text_.size() && text_[at_] == '{') result.varying = mesh_axes();
    return result;
  }

  // {x:4,y:2}, directly behind a type.
  MeshAxes mesh_axes() {
    MeshAxes result;
    expect("{");
    do {
      skip();
      const std::size_t end = std::min(text_.find_first_of(",}\n", at_), text_.size());
      result |= MeshAxes(MeshAxis::from_string(text_.substr(at_, end - at_)));
      at_ = end;
    } while (accept(","));
    expect("}");
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

  Source comment() {
    const std::size_t end = std::min(text_.size(), text_.find('\n', at_));
    std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
    at_ = end;
    const auto [known, is_new] = comments_.try_emplace(text);
    if (is_new) known->second = source_of_comment(text);
    return known->second;
  }

  // The primitive of a name; nullptr where none is defined.
  const Primitive* primitive_or_none() {
    const auto [known, is_new] = primitives_.try_emplace(word("a primitive"));
    if (is_new) known->second = find_primitive(known->first);
    return known->second;
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

 private:
  std::unordered_map<std::string_view, Numbered> params_;
  std::unordered_map<std::string_view, Source> comments_;
  std::unordered_map<std::string_view, const Primitive*> primitives_;
};

}  // namespace plait
