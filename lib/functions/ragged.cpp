// Ragged values: arrays of different lengths as one padded array and the lengths. See sizes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/trace/sizes.h>

namespace plait {

Ragged ragged(std::span<const Array> arrays, std::optional<Dim> length) {
  if (arrays.empty()) throw ValueError("ragged: there are no arrays", "give one or more");
  Shape row = arrays[0].shape();
  if (row.empty())
    throw ShapeError("ragged: array 0 is a scalar",
                     "give arrays with a first axis, which may differ in size");
  Dim longest = length.value_or(0);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Shape shape = arrays[i].shape();
    if (shape.rank() == row.rank()) row[0] = shape[0];
    if (!(shape == row))
      throw ShapeError("ragged: array 0 has shape (" + arrays[0].shape().to_string() +
                           ") and array " + std::to_string(i) + " shape (" + shape.to_string() +
                           ")",
                       "give arrays that differ in the size of the first axis only");
    if (arrays[i].dtype() != arrays[0].dtype())
      throw DtypeError("ragged: array 0 is " + std::string(name_of(arrays[0].dtype())) +
                           " and array " + std::to_string(i) + " " +
                           std::string(name_of(arrays[i].dtype())),
                       "convert one with astype");
    if (length && less_equal(shape[0], *length) != true)
      throw ValueError("ragged: array " + std::to_string(i) + " has length " +
                           shape[0].to_string() + ", and the padded length is " +
                           length->to_string(),
                       "pad to a length that holds every array");
    if (!length) longest = maximum(longest, shape[0]);
  }
  Arrays rows, lengths;
  const Array zero = Array::literal(0, arrays[0].dtype());
  for (const Array& array : arrays) {
    std::vector<lax::Padding> padding(array.ndim());
    padding[0].high = longest - array.shape(0);
    row[0] = longest;
    Shape with_batch = row;
    with_batch.insert(0, 1);
    rows.push_back(lax::reshape(lax::pad(array, zero, padding), with_batch));
    const Array size = lax::convert_element_type(lax::dim_as_value(array.shape(0)), DType::int32);
    lengths.push_back(lax::reshape(size, {1}));
  }
  return {lax::concatenate(rows, 0), lax::concatenate(lengths, 0)};
}

Arrays Ragged::arrays() const {
  if (data.ndim() < 2 || lengths.ndim() != 1 || !(data.shape(0) == lengths.shape(0)))
    throw ShapeError("ragged: the data has shape (" + data.shape().to_string() +
                         ") and the lengths shape (" + lengths.shape().to_string() + ")",
                     "give data of shape (examples, longest, ...) and one length for each example");
  const Array wide = lax::convert_element_type(lengths, DType::int64);
  const Buffer numbers = wide.host_buffer().dense();
  Arrays results;
  for (std::int64_t i = 0; i < data.shape(0).constant(); ++i) {
    const std::int64_t length = static_cast<const std::int64_t*>(numbers.data())[i];
    if (length < 0 || less_equal(length, data.shape(1)) != true)
      throw ValueError("ragged: example " + std::to_string(i) + " has length " +
                           std::to_string(length) + ", and the data holds " +
                           data.shape(1).to_string(),
                       "give lengths from 0 to that");
    const Array row = lax::index_in_dim(data, i, 0, false);
    results.push_back(lax::slice_in_dim(row, Dim(0), Dim(length), 1, 0));
  }
  return results;
}

}  // namespace plait
