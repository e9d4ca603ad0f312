// The text of errors, and the stack of transforms of a thread.
//
// The message is composed when the error is made, because the stack and the current source are gone
// by the time it is printed.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/internal_error.h>

#include <plait/base/size_multiples.h>

#include <utility>

#include "base/applying.h"

namespace plait {
namespace {

constinit thread_local TransformScope* innermost_scope = nullptr;
constinit thread_local const std::string* applied_instead = nullptr;  // of the scopes

// Quotes from a program's text may hold characters that would cut or garble the message.
std::string readable(std::string text) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c >= ' ' && c != 127) || c == '\n' || c == '\t') continue;
    text.replace(i, 1, {'\\', 'x', digits[c >> 4], digits[c & 15]});
    i += 3;
  }
  return text;
}

}  // namespace

Error::Error(std::string what, std::string fix)
    : problem_(with_whole_sizes(std::move(what))),
      fix_(with_whole_sizes(std::move(fix))),
      transforms_(TransformScope::current()),
      source_(Source::current()) {
  compose();
}

Error& Error::at(Source source) {
  source_ = source;
  compose();
  return *this;
}

void Error::compose() {
  message_ = problem_;
  if (source_) message_ += "\n  " + source_.to_string();
  if (!transforms_.empty()) message_ += "\n  while applying " + transforms_;
  if (!fix_.empty()) message_ += "\n  fix: " + fix_;
  message_ = readable(std::move(message_));
}

namespace {
constexpr std::string_view internal = "internal error: ";
}

InternalError::InternalError(std::string what)
    : Error(std::string(internal) + what,
            "this is a bug in plait, not in your program; please report it with this text") {}

std::string problem_of(const InternalError& error) {
  return error.problem().substr(internal.size());
}

TransformScope::TransformScope(std::string_view transform, std::string_view function)
    : outer_(innermost_scope), transform_(transform), function_(function) {
  innermost_scope = this;
}

TransformScope::~TransformScope() { innermost_scope = outer_; }

const std::string* apply_instead(const std::string* text) {
  return std::exchange(applied_instead, text);
}

std::string TransformScope::current() {
  if (applied_instead) return *applied_instead;
  if (!innermost_scope) return {};
  std::string_view function = "f";
  for (const TransformScope* scope = innermost_scope; scope; scope = scope->outer_) {
    if (scope->function_.empty()) continue;
    function = scope->function_;
    break;
  }
  std::string result(function);
  for (const TransformScope* scope = innermost_scope; scope; scope = scope->outer_)
    result = std::string(scope->transform_) + "(" + result + ")";
  return result;
}

}  // namespace plait
