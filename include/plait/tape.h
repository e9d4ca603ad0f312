// The tape: derivatives of an eager program as it ran, for programs that are no function.
//
//   Array w = plait::variable(start);
//   Array loss = numpy::sum(numpy::square(w));   // computed now, and recorded
//   plait::backward(loss);
//   Array slope = *plait::grad_of(w);
//
// A value on the tape is concrete; behind it stand the linear equations that Linearize or Jvp make
// of its operation, the residuals they need, and its parents. backward collects the equations from
// a value and transposes them, in the order in which grad does, so that gradients are equal to the
// bit. Equations run outside every trace are recorded: vmap, grad and jit of functions that use
// variables work, and are differentiated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

#include <memory>

namespace plait {

// A leaf of the tape with this value. DtypeError for one that is no real float, TracerError for a
// traced one.
Array variable(Operand value);
// Whether gradients flow to x, or through it.
bool requires_grad(const Array& x);
bool is_variable(const Array& x);
// The value off the tape, sharing memory; under a transform, stop_gradient of it.
Array detach(const Array& x);
// x as something that is no variable, though gradients flow through it to the one that x is.
Array same_value(const Array& x);

// What backward has summed up for a variable since it was made or set_grad.
std::optional<Array> grad_of(const Array& x);
// ValueError for what is no variable, ShapeError for a gradient that does not fit it.
void set_grad(const Array& x, std::optional<Array> grad);

struct BackwardOptions {
  std::optional<Array> cotangent = {};  // of y; 1 for a scalar
  bool retain_graph = false;            // keep residuals, for another backward
  bool create_graph = false;            // record the gradients themselves; keeps residuals too
};
// Adds the derivative of y, times the cotangent, to the gradient of every variable that it was
// made of. ValueError for what is not on the tape or whose residuals are gone, ShapeError and
// DtypeError for a cotangent that is missing or does not fit.
void backward(Operand y, const BackwardOptions& options = {});

// Whether this thread records.
bool is_recording();
void set_recording(bool on);
// While it lives, this thread records or does not.
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

// Called with the gradient by x, when all of it is known; what it returns, if anything, is the
// gradient from there on.
using GradientHook = std::function<std::optional<Array>(const Array& gradient)>;
class HookHandle {
 public:
  void remove();  // harmless when done before

 private:
  friend HookHandle register_hook(const Array& x, GradientHook hook);
  struct Entry;
  friend class TapeNode;
  std::weak_ptr<Entry> entry_;
};
// ValueError for what is not on the tape.
HookHandle register_hook(const Array& x, GradientHook hook);

// Lets x stand for value, which has x's shape and dtype. A variable stays the same variable; that
// is a ValueError unless nothing is recorded, since the tape has no operation that would say so.
void assign(Array& x, const Array& value);

}  // namespace plait
