// dynamic_slice, dynamic_update_slice, gather and scatter of one window at a time, and narrow: what
// may fail. See small_windows.h.
// SPDX-License-Identifier: Apache-2.0
#include "small_windows.h"

#include <plait/primitives/indexing.h>
#include <plait/primitives/primitives.h>

#include "control/bodies.h"

#include <algorithm>

namespace plait::llvm {
namespace {

Builder here() { return Emitter::current().builder(); }

// An integer that is the same in all lanes, as int64.
Value as_index(const Register& number) {
  const Emitter& emitter = Emitter::current();
  const Value scalar = emitter.lanes() == 1 ? number.v : emitter.extract(number.v, 0);
  if (size_of(number.dtype) == 8) return scalar;
  return (is_signed_integer(number.dtype) ? api().BuildSExt : api().BuildZExt)(
      here(), scalar, emitter.integer(64), "");
}

// An index moved to [0, last].
Value clamped(Value index, std::int64_t last) {
  const Emitter& emitter = Emitter::current();
  const Value zero = emitter.constant(0);
  const Value low = api().BuildSelect(here(), emitter.is_less(index, zero), zero, index, "");
  return emitter.smaller(low, emitter.constant(last));
}

// How an equation finds windows: by starts along axes of the operand.
struct Windows {
  std::vector<int> axes, collapse;  // of the operand
  Sizes64 sizes;                    // along every axis of the operand
  bool is_checked = false;

  Windows(const Equation& equation, const Sizes64& operand, const Sizes64& update) {
    const Primitive& primitive = *equation.primitive;
    if (primitive == dynamic_slice_p || primitive == dynamic_update_slice_p) {
      for (int axis = 0; axis < int(operand.size()); ++axis) axes.push_back(axis);
      sizes = primitive == dynamic_slice_p ? equation.params.get<Shape>("slice_sizes").to_sizes()
                                           : update;
      return;
    }
    axes = equation.params.ints("axes");
    collapse = equation.params.ints("collapse");
    is_checked = equation.params.text("mode") == "check";
    if (primitive == gather_p) {
      sizes = equation.params.get<Shape>("slice_sizes").to_sizes();
      return;
    }
    std::size_t next = update.size() - (operand.size() - collapse.size());
    for (int axis = 0; axis < int(operand.size()); ++axis)
      sizes.push_back(is_collapsed(axis) ? 1 : update[next++]);
  }
  bool is_collapsed(int axis) const {
    return std::find(collapse.begin(), collapse.end(), axis) != collapse.end();
  }
  // The offsets of a window's element, which an index of the operand names, from its start.
  Sizes64 kept(const Sizes64& index) const {
    Sizes64 result;
    for (int axis = 0; axis < int(index.size()); ++axis)
      if (!is_collapsed(axis)) result.push_back(index[axis]);
    return result;
  }
};

// Where a window lies, by its starts along the windows' axes.
LoopMemory window_at(const LoopMemory& memory, const Windows& windows,
                     std::span<const Value> starts, Value failed) {
  Emitter& emitter = Emitter::current();
  Value offset = emitter.constant(0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = windows.axes[i];
    const std::int64_t last = memory.shape()[axis] - windows.sizes[axis];
    const Value start = clamped(starts[i], last);
    offset = emitter.add(offset, emitter.multiply(start, emitter.constant(memory.strides()[axis])));
    if (!windows.is_checked) continue;
    emitter.branch_if(emitter.is_unequal(start, starts[i]),
                      [&] { emitter.store(emitter.constant(1), failed, 8); });
  }
  return memory.window(offset, windows.sizes);
}

std::vector<Value> starts_of(std::span<const Small* const> starts) {
  std::vector<Value> values;
  for (const Small* start : starts) values.push_back(as_index(start->elements[0]));
  return values;
}

LoopMemory in_memory_of(const Small& array) {
  if (array.memory) return *array.memory;
  const LoopMemory frame(Aval{Shape::of(array.shape), array.dtype}, array.axis);
  frame.store(array);
  return frame;
}

// Calls f with each row of indices, as starts, and with its place.
template <class F>
void for_rows(const Small& indices, const F& f) {
  const Sizes64 places(indices.shape.begin(), indices.shape.end() - 1);
  for_each_index(places, -1, [&](const Sizes64& place) {
    Sizes64 index = place;
    index.push_back(0);
    std::vector<Value> starts;
    for (; index.back() < indices.shape.back(); ++index.back())
      starts.push_back(as_index(indices.at(index)));
    f(place, starts);
  });
}

Sizes64 joined(Sizes64 first, const Sizes64& second) {
  for (std::int64_t size : second) first.push_back(size);
  return first;
}

}  // namespace

bool has_window(const Equation& equation) {
  return *equation.primitive == dynamic_slice_p || *equation.primitive == dynamic_update_slice_p ||
         *equation.primitive == gather_p || *equation.primitive == scatter_p;
}

std::string window_refusal(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const int> axes) {
  const Primitive& primitive = *equation.primitive;
  const bool is_slice = primitive == dynamic_slice_p,
             is_update = primitive == dynamic_update_slice_p;
  for (std::size_t i = is_slice ? 1 : is_update ? 2 : 1; i < inputs.size(); ++i) {
    if (primitive == scatter_p && i == 2) continue;
    if (inputs[i].dtype == DType::uint64) return "an index of 64 bits without sign";
    if (axes[i] >= 0) return "an index for each example";
  }
  if (inputs[0].shape.num_elements() == Dim(0)) return "an empty array";
  if (is_slice || is_update) return "";
  const std::string name = "`" + std::string(primitive.name()) + "`";
  if (equation.params.integer("batch_dims") != 0) return name + " in batches";
  if (equation.params.text("mode") == "fill") return name + " that fills";
  if (primitive == gather_p) return "";
  const std::string& kind = equation.params.text("kind");
  const bool is_one = inputs[1].shape.num_elements() == inputs[1].shape[inputs[1].rank() - 1];
  if ((kind != "set" && kind != "add") || !is_one || equation.params.text("mode") == "promise")
    return name + " of this kind";
  if (kind == "add" && (is_bool(inputs[0].dtype) || size_of(inputs[0].dtype) < 4))
    return name + " of " + std::string(name_of(inputs[0].dtype));
  return "";
}

Small lower_window(const Equation& equation, std::span<const Small* const> inputs,
                   const Aval& output, int output_axis, Value failed) {
  const Primitive& primitive = *equation.primitive;
  const LoopMemory memory = in_memory_of(*inputs[0]);
  const Sizes64 update = primitive == dynamic_update_slice_p ? inputs[1]->shape
                         : primitive == scatter_p            ? inputs[2]->shape
                                                             : Sizes64();
  const Windows windows(equation, inputs[0]->shape, update);
  if (primitive == dynamic_slice_p)
    return window_at(memory, windows, starts_of(inputs.subspan(1)), failed).load();
  if (primitive == dynamic_update_slice_p) {
    window_at(memory, windows, starts_of(inputs.subspan(2)), failed).store(*inputs[1]);
    return memory.load();
  }
  Small result(output, output_axis);
  for_rows(*inputs[1], [&](const Sizes64& place, std::span<const Value> starts) {
    const LoopMemory window = window_at(memory, windows, starts, failed);
    Small elements = window.load();
    if (primitive == gather_p) {
      for_each_index(elements.shape, elements.axis, [&](const Sizes64& index) {
        result.at(joined(place, windows.kept(index))) = elements.at(index);
      });
      return;
    }
    const bool adds = equation.params.text("kind") == "add";
    const Equation addition{&add_p, {}, {}, {}, equation.source};
    for_each_index(elements.shape, elements.axis, [&](const Sizes64& index) {
      const Register value = inputs[2]->at(joined(place, windows.kept(index)));
      const Register both[] = {elements.at(index), value};
      elements.at(index) = adds ? lower(addition, both, output.dtype) : value;
    });
    window.store(elements);
  });
  return primitive == gather_p ? result : memory.load();
}

Small lower_narrow(const Small& input, const Aval& output, Value failed) {
  Emitter& emitter = Emitter::current();
  const Equation conversion{&cast_p, {}, {{"dtype", output.dtype}, {"weak", false}}, {}, {}};
  Small result(output, -1);
  for (std::size_t i = 0; i < result.elements.size(); ++i) {
    const Register& number = input.elements[i];
    result.elements[i] = lower(conversion, std::span(&number, 1), output.dtype);
    emitter.branch_if(emitter.is_unequal(as_index(number), as_index(result.elements[i])),
                      [&] { emitter.store(emitter.constant(1), failed, 8); });
  }
  return result;
}

}  // namespace plait::llvm
