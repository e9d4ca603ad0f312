// Looking inside programs: their cost by named scope, their text as code that rebuilds them, and
// the difference of two. Scopes are those of plait::NamedScope (base/source.h).
//
//   const plait::Jaxpr jaxpr = plait::make_jaxpr(f, x, y).jaxpr;
//   std::cout << plait::summary(jaxpr) << plait::code(jaxpr).text << plait::diff(jaxpr, other);
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/widening.h>
#include <plait/rules/cost.h>

#include <iosfwd>

namespace plait {

// --- Summary -------------------------------------------------------------------------------------

// What one named scope does, including the scopes in it. Bodies of calls and of control flow belong
// to the scope of their equation.
struct ScopeSummary {
  std::string path;            // "encoder/attention"; "" for the whole program
  int depth = 0;               // the number of scopes around it
  std::vector<Aval> outputs;   // of its values that are used outside of it
  double parameters = 0;       // elements of the program's inputs that it reads
  std::int64_t equations = 0;  // equations of bodies count once, however often they run
  Work work;
  double live_bytes = 0;  // peak memory of the values that the program computes
  std::string name() const { return path.substr(path.rfind('/') + 1); }
};

// A table by scope: the whole program, then the scopes in order of first appearance, each before
// those in it.
class Summary {
 public:
  Summary(std::string title, std::vector<ScopeSummary> rows, std::vector<Widening> widenings = {})
      : title_(std::move(title)), rows_(std::move(rows)), widenings_(std::move(widenings)) {}
  const std::vector<ScopeSummary>& rows() const { return rows_; }
  const ScopeSummary& total() const { return rows_.front(); }
  // Conversions from 32 to 64 bits; the text names the line of each below the table.
  const std::vector<Widening>& widenings() const { return widenings_; }
  std::string to_string() const;
  std::string to_json() const;  // a list of objects, one for each row

 private:
  std::string title_;
  std::vector<ScopeSummary> rows_;
  std::vector<Widening> widenings_;
};
// Counts are those of rules/cost.h; ValueError where the program has named sizes.
Summary summary(const Jaxpr& jaxpr, std::string title = "f");
std::ostream& operator<<(std::ostream& out, const Summary& summary);

// --- Code ----------------------------------------------------------------------------------------

enum class Language { python, cpp };

// A program as text that rebuilds it. Text cannot hold functions of the host: it refers to them by
// name, and they must be defined where it runs. In Python they are in the namespace that plait.code
// gives.
struct Code {
  std::string text;
  std::vector<std::pair<std::string, Callable>> callables;
};
// A function of the program's inputs, called `name`, with a line for each equation: a function of
// plait::lax, or plait::bind where there is none. Bodies become functions before it.
Code code(const Jaxpr& jaxpr, Language language = Language::python, std::string name = "f");

// --- Differences ---------------------------------------------------------------------------------

// One step of the edit from the equations of one program to those of another.
struct Change {
  enum class Kind { same, removed, added, changed };
  Kind kind;
  // Indices of the equation in the first and in the second program; -1 where it is absent.
  int first = -1, second = -1;
};
class Difference {
 public:
  Difference(Jaxpr first, Jaxpr second);
  // In order, including unchanged equations. Values are compared by how they are computed.
  const std::vector<Change>& changes() const { return changes_; }
  bool is_equal() const { return first_ == second_; }
  explicit operator bool() const { return !is_equal(); }
  std::string to_string() const;  // "" when equal

 private:
  Jaxpr first_, second_;
  std::vector<Change> changes_;
};
inline Difference diff(const Jaxpr& first, const Jaxpr& second) { return {first, second}; }
std::ostream& operator<<(std::ostream& out, const Difference& difference);

}  // namespace plait
