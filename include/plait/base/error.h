// The errors a user can meet. Each has four parts: what happened, with values; where, in the user's
// own code; under which transforms; and the fix.
//
// The type says who must act: UserError and its kinds the caller, BackendError the person who
// installed the machine, InternalError the developers of plait. The place and the transforms are
// taken from the thread when the error is made, so throwing code gives only the problem and the
// fix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace plait {

class Error : public std::exception {
 public:
  Error(std::string what, std::string fix);
  const char* what() const noexcept override { return message_.c_str(); }  // all four parts
  const std::string& problem() const { return problem_; }
  const std::string& fix() const { return fix_; }
  Source source() const { return source_; }
  // Replaces the place, for an error about a value whose line of origin is known.
  Error& at(Source source);

 private:
  void compose();
  std::string problem_, fix_, transforms_, message_;
  Source source_;
};

struct UserError : Error {
  using Error::Error;
};
struct ShapeError : UserError {
  using UserError::UserError;
};  // Python: ValueError (and TypeError)
struct ValueError : UserError {
  using UserError::UserError;
};  // ValueError
struct IndexError : UserError {
  using UserError::UserError;
};  // IndexError
struct DtypeError : UserError {
  using UserError::UserError;
};  // TypeError
struct TreeError : UserError {
  using UserError::UserError;
};  // TypeError
struct TracerError : UserError {
  using UserError::UserError;
};  // TypeError
struct MissingRuleError : UserError {
  using UserError::UserError;
};  // NotImplementedError
struct MemoryError : UserError {
  using UserError::UserError;
};  // MemoryError
// A file that cannot be opened, read or written.
struct FileError : UserError {
  using UserError::UserError;
};  // OSError
// A function of the user's that a program calls (host_call) raised an error: RuntimeError in
// Python, whose cause is that error.
struct HostError : UserError {
  HostError(std::string what, std::string fix, std::exception_ptr raised)
      : UserError(std::move(what), std::move(fix)), cause(std::move(raised)) {}
  std::exception_ptr cause;
};
struct BackendError : Error {
  using Error::Error;
};  // RuntimeError

// A broken invariant of plait: never the user's fault.
struct InternalError : Error {
  explicit InternalError(std::string what);
};

// Names a transform while it runs user code or rewrites a jaxpr: errors list the stack,
// innermost last: "grad(vmap(loss))".
class TransformScope {
 public:
  // Both must outlive the scope. An empty function name prints as "f".
  TransformScope(std::string_view transform, std::string_view function);
  ~TransformScope();
  TransformScope(const TransformScope&) = delete;
  // "grad(vmap(loss))", or "" outside every transform.
  static std::string current();

 private:
  friend class Error;
  TransformScope* outer_;
  std::string_view transform_, function_;
};

}  // namespace plait
