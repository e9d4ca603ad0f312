// See loop_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "loop_memory.h"

namespace plait::llvm {

LoopMemory::LoopMemory(DType dtype, Sizes64 shape, Sizes64 strides, int axis, Value data,
                       const Examples& examples)
    : dtype_(dtype),
      shape_(std::move(shape)),
      strides_(std::move(strides)),
      axis_(axis),
      data_(data),
      examples_(examples) {
  const Emitter& emitter = Emitter::current();
  if (lane_stride() != 0)
    data_ = emitter.at(emitter.element(dtype), data,
                       emitter.multiply(examples.first, emitter.constant(lane_stride())));
}

LoopMemory::LoopMemory(const Aval& aval, int axis)
    : dtype_(aval.dtype), shape_(aval.shape.to_sizes()), axis_(axis), is_frame_(true) {
  const Emitter& emitter = Emitter::current();
  std::int64_t size = axis < 0 ? 1 : emitter.lanes();
  strides_ = Sizes64(shape_.size(), 1);
  for (int i = int(shape_.size()); i-- > 0;) {
    if (i == axis) continue;
    strides_[i] = size;
    size *= shape_[i];
  }
  data_ = emitter.frame_memory(emitter.element(dtype_), size);
}

LoopMemory LoopMemory::at(Value place) const {
  const Emitter& emitter = Emitter::current();
  LoopMemory part = *this;
  part.data_ = emitter.at(emitter.element(dtype_), data_,
                          emitter.multiply(place, emitter.constant(strides_[0])));
  part.shape_.erase(0);
  part.strides_.erase(0);
  part.axis_ -= axis_ >= 0;
  return part;
}

LoopMemory LoopMemory::window(Value offset, const Sizes64& shape) const {
  const Emitter& emitter = Emitter::current();
  LoopMemory part = *this;
  part.data_ = emitter.at(emitter.element(dtype_), data_, offset);
  part.shape_ = shape;
  return part;
}

Small LoopMemory::load() const {
  Small value(Aval{Shape::of(shape_), dtype_}, axis_);
  for_each_index(shape_, axis_,
                 [&](const Sizes64& index) { value.at(index) = load_element(address(index)); });
  return value;
}

void LoopMemory::store(const Small& value) const {
  const Emitter& emitter = Emitter::current();
  auto store_all = [&] {
    for_each_index(shape_, axis_,
                   [&](const Sizes64& index) { store_element(value.at(index), address(index)); });
  };
  if (axis_ >= 0 || is_frame_ || !examples_.first) return store_all();
  Emitter::current().branch_if(emitter.is_less(examples_.first, emitter.constant(1)), store_all);
}

Value LoopMemory::address(const Sizes64& index) const {
  const Emitter& emitter = Emitter::current();
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides_[i];
  return emitter.at(emitter.element(dtype_), data_, emitter.constant(offset));
}

// One for each lane.
Value LoopMemory::addresses(Value first) const {
  const Emitter& emitter = Emitter::current();
  Value offsets[64];
  for (int i = 0; i < emitter.lanes(); ++i) offsets[i] = emitter.constant(i * lane_stride());
  return emitter.at(emitter.element(dtype_), first,
                    api().ConstVector(offsets, unsigned(emitter.lanes())));
}

Value LoopMemory::all_lanes() const {
  const Emitter& emitter = Emitter::current();
  return emitter.splat_bits(emitter.integer(1), 1, 1);
}

Register LoopMemory::load_element(Value address) const {
  const Emitter& emitter = Emitter::current();
  const int size = int(size_of(dtype_));
  if (emitter.lanes() == 1)
    return from_memory(emitter.load(emitter.element(dtype_), address, size), dtype_);
  if (lane_stride() == 0) return load_splat(dtype_, address);
  const Type type = emitter.vector(emitter.element(dtype_));
  const Value alignment = api().ConstInt(emitter.integer(32), std::uint64_t(size), false),
              nothing = api().ConstNull(type);
  if (lane_stride() != 1) {
    const Value all = addresses(address);
    const Value mask = examples_.mask ? examples_.mask : all_lanes();
    return from_memory(emitter.intrinsic("llvm.masked.gather", {type, api().TypeOf(all)},
                                         {all, alignment, mask, nothing}),
                       dtype_);
  }
  if (is_frame_ || !examples_.mask) return from_memory(emitter.load(type, address, size), dtype_);
  return from_memory(emitter.intrinsic("llvm.masked.load", {type, emitter.pointer()},
                                       {address, alignment, examples_.mask, nothing}),
                     dtype_);
}

void LoopMemory::store_element(const Register& value, Value address) const {
  Emitter& emitter = Emitter::current();
  const int size = int(size_of(dtype_));
  const Value vector = to_memory(value);
  if (emitter.lanes() == 1) return emitter.store(vector, address, size);
  if (axis_ < 0) return emitter.store(emitter.extract(vector, 0), address, size);
  const Type type = emitter.vector(emitter.element(dtype_));
  const Value alignment = api().ConstInt(emitter.integer(32), std::uint64_t(size), false);
  if (lane_stride() != 1) {
    const Value all = addresses(address);
    emitter.intrinsic("llvm.masked.scatter", {type, api().TypeOf(all)},
                      {vector, all, alignment, examples_.mask ? examples_.mask : all_lanes()});
  } else if (is_frame_ || !examples_.mask) {
    emitter.store(vector, address, size);
  } else {
    emitter.intrinsic("llvm.masked.store", {type, emitter.pointer()},
                      {vector, address, alignment, examples_.mask});
  }
}

}  // namespace plait::llvm
