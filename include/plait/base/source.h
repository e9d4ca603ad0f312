// Where the user's code says something: file, line, function, the named scopes, and the transforms
// that have rewritten it since.
//
// A thread has a current source: the last line of user code that called into plait, the line of an
// equation being rewritten (SourceScope), or, under Python, the innermost user frame, asked for
// only when an equation is recorded or an error is made (the provider).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Inside the library, a default argument must not name the library's own line: the line to report
// is the user's, which the thread remembers.
#ifdef PLAIT_BUILDING
#define PLAIT_HERE_FILE nullptr
#define PLAIT_HERE_LINE 0
#else
#define PLAIT_HERE_FILE __builtin_FILE()
#define PLAIT_HERE_LINE __builtin_LINE()
#endif
#define PLAIT_HERE ::plait::Here(PLAIT_HERE_FILE, PLAIT_HERE_LINE)

namespace plait {

// An interned line of user code; one pointer, cheap to copy. A default one knows nothing.
class Source {
 public:
  struct Line {
    std::string file, function;
    int line;
    std::string scope = {};       // "encoder/attention"
    std::string transforms = {};  // "transpose(jvp)": those that rewrote it, the last one first
    std::string text = {};        // of the line, as the file may not exist here
  };
  Source() = default;
  Source(std::string_view file, int line, std::string_view function = {});
  explicit Source(const Line& line);
  explicit operator bool() const { return line_ != nullptr; }
  bool operator==(const Source&) const = default;
  const Line& operator*() const { return *line_; }
  const Line* operator->() const { return line_; }
  // "train.py:42 in loss:  y = x @ w"; the text of the line is read from the file when it exists.
  std::string to_string() const;
  // The text of the line, without indentation; "" where it is not known.
  std::string text() const;
  // The same line, rewritten by a transform of this name; or inside one more named scope.
  Source under(std::string_view transform) const;
  Source in_scope(std::string_view scope) const;

  // The current source of this thread.
  static Source current();
  // Remembers a line of user C++ code; file must outlive the program (a __FILE__ literal). A null
  // file, which is PLAIT_HERE_FILE inside the library, keeps the line that is remembered.
  static void remember(const char* file, int line);
  // Asks provider for the current line from now on. The Python module installs one per process and
  // calls forget_line when user Python code calls in.
  static void set_provider(Source (*provider)());
  static void forget_line();
  // Whether Python was the last language to call into plait: errors then name arguments as Python
  // does.
  static bool is_python();

 private:
  friend class SourceScope;
  const Line* line_ = nullptr;
};

// The name of a missing value in the user's language: "None", "std::nullopt".
inline std::string_view none_text() { return Source::is_python() ? "None" : "std::nullopt"; }

// A line of user code: the default of a function's last parameter, `Here here = PLAIT_HERE`.
struct Here {
  constexpr Here(const char* in, int at) : file(in), line(at) {}
  const char* file;
  int line;
  // A call through std::function or std::apply comes from a header of the standard library or of
  // plait, whose line is not the user's. The compiler knows which lines these are, and omits the
  // search.
  void remember() const {
    const bool is_library = file && (__builtin_strstr(file, "/include/c++/") ||
                                     __builtin_strstr(file, "include/plait/"));
    if (file && !is_library) Source::remember(file, line);
  }
};

// Makes source the current one of this thread for a scope, as when an equation is re-traced. An
// unknown source changes nothing.
class SourceScope {
 public:
  explicit SourceScope(Source source);
  ~SourceScope();
  SourceScope(const SourceScope&) = delete;

 private:
  Source previous_;
};

// Equations recorded in its scope, on this thread, belong to the named scope ("attention") within
// the scopes around it. Summaries, pictures and profiles group by scope. ValueError for an empty
// name.
class NamedScope {
 public:
  explicit NamedScope(std::string_view name);
  ~NamedScope();
  NamedScope(const NamedScope&) = delete;

 private:
  std::size_t previous_;  // length of the scope around it
};

}  // namespace plait
