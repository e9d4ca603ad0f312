// See source_comment.h.
// SPDX-License-Identifier: Apache-2.0
#include "ir/source_comment.h"

#include <algorithm>
#include <charconv>

namespace plait {
namespace {

constexpr std::string_view in = " in ", scope = ", scope ", under = ", under ", text_mark = ":  ";
constexpr std::size_t longest = 2000;

// A comment holds one line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  return text;
}

// Cuts off the text after the last mark, and returns it.
std::string cut(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  std::string rest(text.substr(at + mark.size()));
  text = text.substr(0, at);
  return rest;
}

}  // namespace

std::string comment_of(Source source) {
  const std::size_t slash = source->file.find_last_of('/');
  std::string comment = slash == std::string::npos ? source->file : source->file.substr(slash + 1);
  comment += ":" + std::to_string(source->line);
  if (!source->function.empty()) (comment += in) += source->function;
  if (!source->scope.empty()) (comment += scope) += source->scope;
  if (!source->transforms.empty()) (comment += under) += source->transforms;
  if (const std::string text = source.text(); !text.empty()) (comment += text_mark) += text;
  return one_line(std::move(comment));
}

Source source_of_comment(std::string_view comment) {
  if (comment.size() > longest) return {};
  Source::Line line;
  std::string_view head = comment.substr(0, comment.find(text_mark));
  if (head.size() < comment.size()) line.text = comment.substr(head.size() + text_mark.size());
  line.transforms = cut(head, under);
  line.scope = cut(head, scope);
  line.function = cut(head, in);
  const std::size_t colon = head.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  const char* end = head.data() + head.size();
  const auto [stop, error] = std::from_chars(head.data() + colon + 1, end, line.line);
  if (error != std::errc() || stop != end || line.line < 1) return {};
  line.file = head.substr(0, colon);
  return Source(line);
}

}  // namespace plait
