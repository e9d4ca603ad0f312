// The current source of a thread, and the table of interned lines.
//
// Recording a line must cost next to nothing, because every operation of an eager program does it.
// So a thread keeps the two words it was given, and only an equation or an error turns them into a
// Source. Lines live as long as the program, so a Source can be kept in a jaxpr that outlives its
// module.
// SPDX-License-Identifier: Apache-2.0
#include "base/own_scopes.h"

#include <plait/base/error.h>
#include <plait/base/source.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace plait {
namespace {

struct LineView {
  std::string_view file, function;
  int line;
  std::string_view scope = {}, transforms = {}, text = {};
};

LineView view_of(const Source::Line& line) {
  return {line.file, line.function, line.line, line.scope, line.transforms, line.text};
}

struct LineHash {
  using is_transparent = void;
  std::size_t operator()(const LineView& view) const {
    const std::size_t file = std::hash<std::string_view>{}(view.file);
    const std::size_t function = std::hash<std::string_view>{}(view.function);
    const std::size_t scope = std::hash<std::string_view>{}(view.scope);
    const std::size_t transforms = std::hash<std::string_view>{}(view.transforms);
    return (((file * 31 + function) * 31 + scope) * 31 + transforms) * 31 +
           static_cast<std::size_t>(view.line);
  }
  std::size_t operator()(const Source::Line& line) const { return operator()(view_of(line)); }
};

struct LineEqual {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return a.line == b.line && a.file == b.file && a.function == b.function && a.scope == b.scope &&
           a.transforms == b.transforms && a.text == b.text;
  }
};

struct LineTable {
  std::mutex mutex;
  std::unordered_set<Source::Line, LineHash, LineEqual> lines;  // nodes never move
};

LineTable& line_table() {
  // Never destroyed: a static jaxpr may print its sources while the process exits. The mutex is
  // held around fork, so that the child does not inherit it locked by a thread it does not have.
  static LineTable& table = *[] {
    pthread_atfork([] { line_table().mutex.lock(); }, [] { line_table().mutex.unlock(); },
                   [] { line_table().mutex.unlock(); });
    return new LineTable;
  }();
  return table;
}

struct ThreadState {
  const char* file = nullptr;  // the remembered line; null when there is none
  int line = 0;
  Source scope;                  // of the innermost SourceScope
  std::size_t scope_length = 0;  // length of the path of named scopes
  // The last remembered line that was interned: many equations share one line.
  const char* interned_file = nullptr;
  int interned_line = 0;
  Source interned;
};

constinit thread_local ThreadState state;
constinit std::atomic<Source (*)()> source_provider{nullptr};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Line number of file, without its indentation, or "" when it cannot be read.
std::string read_line(const std::string& file, int number) {
  constexpr std::size_t longest = 160;
  std::error_code unused;
  // A pipe or a terminal would block.
  if (number < 1 || !std::filesystem::is_regular_file(file, unused)) return {};
  std::ifstream stream(file);
  std::string line;
  for (int i = 0; i < number; ++i)
    if (!std::getline(stream, line)) return {};
  std::string text(trimmed(line));
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // UTF-8
  return text.substr(0, end) + "...";
}

const Source::Line* intern(const LineView& view) {
  LineTable& table = line_table();
  const std::lock_guard lock(table.mutex);
  auto found = table.lines.find(view);
  if (found == table.lines.end())
    found =
        table.lines
            .insert({std::string(view.file), std::string(view.function), view.line,
                     std::string(view.scope), std::string(view.transforms), std::string(view.text)})
            .first;
  return &*found;
}

// The path of named scopes of this thread, of which the first ThreadState::scope_length bytes
// count.
std::string& scope_path() {
  thread_local std::string path;
  return path;
}

}  // namespace

Source::Source(std::string_view file, int line, std::string_view function)
    : line_(intern({file, function, line})) {}

Source::Source(const Line& line) : line_(intern(view_of(line))) {}

// Neighbouring equations mostly share a line, so the last answer is kept.
Source Source::under(std::string_view transform) const {
  struct Last {
    const Line* from = nullptr;
    std::string transform;
    Source to;
  };
  thread_local Last last;
  if (!line_) return *this;
  if (last.from == line_ && last.transform == transform) return last.to;
  constexpr std::size_t longest = 200;  // of a name that repeated rewriting would let grow
  Source result = *this;
  if (line_->transforms.size() < longest) {
    LineView view = view_of(*line_);
    std::string path(transform);
    if (!line_->transforms.empty()) path += "(" + line_->transforms + ")";
    view.transforms = path;
    result.line_ = intern(view);
  }
  last = {line_, std::string(transform), result};
  return result;
}

Source Source::in_scope(std::string_view scope) const {
  if (!line_ || scope.empty()) return *this;
  LineView view = view_of(*line_);
  std::string path(scope);
  if (!line_->scope.empty()) path += "/" + line_->scope;
  view.scope = path;
  Source result;
  result.line_ = intern(view);
  return result;
}

std::string Source::text() const {
  if (!line_) return {};
  return line_->text.empty() ? read_line(line_->file, line_->line) : line_->text;
}

std::string Source::to_string() const {
  if (!line_) return {};
  const std::size_t slash = line_->file.find_last_of('/');
  std::string result = (slash == std::string::npos ? line_->file : line_->file.substr(slash + 1)) +
                       ":" + std::to_string(line_->line);
  if (!line_->function.empty()) result += " in " + line_->function;
  if (const std::string line = text(); !line.empty()) result += ":  " + line;
  return result;
}

Source Source::current() {
  if (state.scope) return state.scope;
  if (state.scope_length) {  // looked up as if there were none
    const std::size_t length = std::exchange(state.scope_length, 0);
    const Source line = current();
    state.scope_length = length;
    return line.in_scope(scope_path());
  }
  if (state.file) {
    if (state.file != state.interned_file || state.line != state.interned_line) {
      state.interned = Source(state.file, state.line);
      state.interned_file = state.file;
      state.interned_line = state.line;
    }
    return state.interned;
  }
  Source (*provider)() = source_provider.load(std::memory_order_acquire);
  return provider ? provider() : Source();
}

void Source::remember(const char* file, int line) {
  if (!file) return;
  state.file = file;
  state.line = line;
}

void Source::set_provider(Source (*provider)()) {
  source_provider.store(provider, std::memory_order_release);
}

void Source::forget_line() { state.file = nullptr; }

bool Source::is_python() {
  return !state.file && source_provider.load(std::memory_order_acquire) != nullptr;
}

// An equation inside the rewriting of another belongs to a program that stands for that one, such
// as a called function or a decomposition: it takes its scopes.
SourceScope::SourceScope(Source source) : previous_(state.scope) {
  if (!source) return;
  state.scope = source;
  if (!previous_ || previous_->scope.empty()) return;
  const std::string_view outer = previous_->scope, inner = source->scope;
  const bool is_in_it = inner.substr(0, outer.size()) == outer &&
                        (inner.size() == outer.size() || inner[outer.size()] == '/');
  if (!is_in_it) state.scope = source.in_scope(outer);
}

SourceScope::~SourceScope() { state.scope = previous_; }

NamedScope::NamedScope(std::string_view name) : previous_(state.scope_length) {
  if (name.empty()) throw ValueError("named_scope: the name is empty", "give a scope a name");
  std::string& path = scope_path();
  if (previous_) path += '/';
  path += name;
  state.scope_length = path.size();
}

NamedScope::~NamedScope() {
  std::string& path = scope_path();
  path.resize(std::min(previous_, path.size()));
  state.scope_length = path.size();
}

OwnScopes::OwnScopes() : line_(state.scope), path_(std::exchange(scope_path(), {})) {
  state.scope_length = 0;
  if (!line_ || line_->scope.empty()) return;
  Source::Line line = *line_;
  line.scope.clear();
  state.scope = Source(line);
}

OwnScopes::~OwnScopes() {
  scope_path() = path_;
  state.scope_length = path_.size();
  state.scope = line_;
}

}  // namespace plait
