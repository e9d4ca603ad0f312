// Scans the text of a program: position, tokens, and errors that name what was expected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "ir/names.h"

namespace plait {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

 protected:
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
    // A dot belongs to a word only in its interior.
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

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace plait
