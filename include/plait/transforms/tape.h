// The tape: derivatives of an eager program as it ran, for programs that are not one function.
//
//   Array w = plait::variable(start);
//   Array loss = numpy::sum(numpy::square(w));   // computed now, and recorded
//   plait::backward(loss);
//   Array slope = *plait::grad_of(w);
//
// A value on the tape is concrete. It refers to the linear equations that Linearize or Jvp makes of
// its operation, their residuals, and its parents. backward collects the equations from a value and
// transposes them in the same order as grad, so that gradients are equal to the bit. Equations that
// run outside every trace are recorded: vmap, grad and jit of functions that use variables work,
// and are differentiated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

#include <memory>

namespace plait {

// A leaf of the tape with this value. DtypeError unless its dtype is real floating, TracerError for
// a traced value.
Array variable(Operand value);
// Whether gradients flow to x, or through it.
bool requires_grad(const Array& x);
bool is_variable(const Array& x);
// The value without its tape, sharing memory; under a transform, stop_gradient of it.
Array detach(const Array& x);
// A value equal to x that is not a variable; gradients still flow through it to x.
Array same_value(const Array& x);

// The sum of the gradients from backward since the variable was made or set_grad was called.
std::optional<Array> grad_of(const Array& x);
// ValueError unless x is a variable, ShapeError for a gradient that does not fit it.
void set_grad(const Array& x, std::optional<Array> grad);

struct BackwardOptions {
  std::optional<Array> cotangent = {};  // of y; 1 for a scalar
  bool retain_graph = false;            // keep residuals, for another backward
  bool create_graph = false;            // record the gradients themselves; keeps residuals too
};
// Adds the derivative of y, times the cotangent, to the gradient of every variable that y depends
// on. ValueError where y is not on the tape or its residuals are freed; ShapeError and DtypeError
// for a cotangent that is missing or does not fit.
void backward(Operand y, const BackwardOptions& options = {});

// Whether this thread records.
bool is_recording();
void set_recording(bool on);
// While it lives, this thread records, or does not.
class RecordingScope {
 public:
  explicit RecordingScope(bool on) : previous_(is_recording()) { set_recording(on); }
  ~RecordingScope() { set_recording(previous_); }
  RecordingScope(const RecordingScope&) = delete;

 private:
  const bool previous_;
};
// While it lives, nothing is recorded on this thread, and variables can be assigned to.
class NoGrad : public RecordingScope {
 public:
  NoGrad() : RecordingScope(false) {}
};

// Called with the gradient with respect to x, when it is complete; its result, if any, replaces the
// gradient from there on.
using GradientHook = std::function<std::optional<Array>(const Array& gradient)>;
class HookHandle {
 public:
  void remove();  // no effect if already removed

 private:
  friend HookHandle register_hook(const Array& x, GradientHook hook);
  struct Entry;
  friend class TapeNode;
  std::weak_ptr<Entry> entry_;
};
// ValueError where x is not on the tape.
HookHandle register_hook(const Array& x, GradientHook hook);

// Rebinds x to value, which has x's shape and dtype. A variable stays the same variable, so this is
// a ValueError while recording: the tape has no operation for it.
void assign(Array& x, const Array& value);

}  // namespace plait
