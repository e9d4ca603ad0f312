// Checks of outputs that the caller owns. See run_into.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>
#include <plait/trace/run_into.h>

#include <plait/trace/donated.h>
#include <plait/trace/trace.h>

#include <atomic>

namespace plait {
namespace {

std::atomic<EvaluatorInto> installed{nullptr};

std::string who(std::string_view function) { return "run_into: `" + std::string(function) + "`: "; }

void require_plain(std::span<const Array> arrays, std::string_view function, const char* what) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].is_valid() && !arrays[i].node()->is_plain())
      throw TracerError(who(function) + what + " " + std::to_string(i) + ", " +
                            arrays[i].aval().to_string() +
                            ", is traced or on the tape, and what is written to memory is neither",
                        "call the function without run_into there");
}

// Prepares an output for writing.
void prepare(Array& output, const Aval& wanted, std::string_view function, std::size_t index,
             Device device) {
  auto what = [&] { return who(function) + "output " + std::to_string(index); };
  if (!output.is_valid()) {
    const Aval memory = in_memory(wanted);
    output = make_concrete(wanted, Buffer::empty(memory.dtype, memory.shape.to_sizes(), device));
    return;
  }
  const Aval& aval = output.aval();
  if (!(aval.shape == wanted.shape))
    throw ShapeError(what() + " has shape (" + aval.shape.to_string() + ") where the result has (" +
                         wanted.shape.to_string() + ")",
                     "give an array of the result's shape, or one that holds nothing");
  if (aval.dtype != wanted.dtype)
    throw DtypeError(what() + " has dtype " + std::string(name_of(aval.dtype)) +
                         " where the result has " + std::string(name_of(wanted.dtype)),
                     "give an array of the result's dtype, or one that holds nothing");
  const Buffer& buffer = static_cast<const ConcreteNode*>(output.node())->buffer;
  if (buffer.device() != device)
    throw BackendError(what() + " lies on " + buffer.device().to_string() +
                           ", and the program runs on " + device.to_string(),
                       "give an array there, or one that holds nothing");
  if (!DonatedNode::is_unique(*output.node()) || !buffer.storage().is_unique())
    throw ValueError(
        what() + " is seen elsewhere: another Array, a view or an input holds its memory",
        "give an array that nothing else holds, or one that holds nothing");
  if (!buffer.placed().is_dense())
    throw ValueError(what() + " is not dense in memory",
                     "give an array without gaps, in row order");
}

}  // namespace

void set_evaluator_into(EvaluatorInto evaluator) { installed = evaluator; }

void run_into(const Jaxpr& program, std::span<const Array> inputs, std::span<Array> outputs,
              std::string_view function) {
  if (Trace::current())
    throw TracerError(who(function) +
                          "a transform traces this code, and what is written to memory is not "
                          "traced",
                      "call the function without run_into there");
  require_plain(inputs, function, "input");
  require_plain(outputs, function, "output");
  if (outputs.size() != program->outputs.size())
    throw TreeError(who(function) + std::to_string(outputs.size()) + " outputs were given for " +
                        std::to_string(program->outputs.size()) + " results",
                    "give as many outputs as the function has results");
  // In its own scope: outputs have one owner then.
  const Device device = [&] {
    Arrays given(inputs.begin(), inputs.end());
    for (const Array& output : outputs)
      if (output.is_valid()) given.push_back(output);
    return common_device(function, given);
  }();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    prepare(outputs[i], program->aval(program->outputs[i]), function, i, device);
  installed.load()(program, inputs, outputs);
}

}  // namespace plait
