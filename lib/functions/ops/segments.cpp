// plait.ops: reductions of segments, each one scatter.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/ops.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// What an empty segment holds.
Array neutral_of(lax::ScatterKind kind, DType dtype) {
  const bool is_max = kind == lax::ScatterKind::max;
  if (kind == lax::ScatterKind::add) return Array::literal(0, dtype);
  if (kind == lax::ScatterKind::mul) return Array::literal(1, dtype);
  if (is_floating(dtype)) return Array::literal(is_max ? -INFINITY : INFINITY, dtype);
  if (is_bool(dtype)) return Array(!is_max);
  return is_max ? lowest_finite(dtype) : largest_finite(dtype);
}

Array reduce_segments(std::string_view function, const Array& data, const Array& segment_ids,
                      std::optional<Dim> num_segments, bool sorted, bool unique,
                      lax::ScatterKind kind) {
  if (!is_integer(segment_ids.dtype()))
    throw DtypeError(std::string(function) + ": segment ids of dtype " +
                         std::string(name_of(segment_ids.dtype())),
                     "give integers");
  const int depth = segment_ids.ndim();
  for (int i = 0; i < depth; ++i)
    if (i >= data.ndim() || !(segment_ids.shape(i) == data.shape(i)))
      throw ShapeError(std::string(function) + ": segment ids of shape (" +
                           segment_ids.shape().to_string() + ") for data of shape (" +
                           data.shape().to_string() + ")",
                       "give an id for each row");
  if (is_complex(data.dtype()) && kind != lax::ScatterKind::add && kind != lax::ScatterKind::mul)
    floating_only(function, data);
  const Array ids = astype(segment_ids, index_dtype(segment_ids));
  Dim size = 0;
  if (num_segments) {
    size = *num_segments;
  } else {
    if (!ids.known_buffer())
      throw TracerError(std::string(function) +
                            ": the number of segments depends on values, which are not known "
                            "while the function is traced",
                        "say how many with num_segments=");
    if (!(ids.shape().num_elements() == Dim(0)))
      size = std::max<std::int64_t>(numpy::max(ids).item<std::int64_t>() + 1, 0);
  }
  Shape shape{size}, window{1};
  for (int i = depth; i < data.ndim(); ++i)
    shape.push_back(data.shape(i)), window.push_back(data.shape(i));
  Shape rows = ids.shape();
  rows.push_back(1);
  const Array start = plait::broadcast_to(neutral_of(kind, data.dtype()), shape);
  // A negative id is none from the end.
  const Array outside = lax::lt(ids, constant(0, ids));
  const Array safe =
      lax::select(outside, plait::broadcast_to(number_of(size, ids.dtype()), ids.shape()), ids);
  return lax::scatter(start, lax::reshape(safe, rows), data, {{0}, {0}, 0}, kind,
                      {lax::GatherScatterMode::fill, unique, sorted});
}

}  // namespace

Array ops::segment_sum(Operand data, Operand segment_ids, std::optional<Dim> num_segments,
                       bool indices_are_sorted, bool unique_indices) {
  return reduce_segments("segment_sum", data, segment_ids, num_segments, indices_are_sorted,
                         unique_indices, lax::ScatterKind::add);
}
Array ops::segment_prod(Operand data, Operand segment_ids, std::optional<Dim> num_segments,
                        bool indices_are_sorted, bool unique_indices) {
  return reduce_segments("segment_prod", data, segment_ids, num_segments, indices_are_sorted,
                         unique_indices, lax::ScatterKind::mul);
}
Array ops::segment_max(Operand data, Operand segment_ids, std::optional<Dim> num_segments,
                       bool indices_are_sorted, bool unique_indices) {
  return reduce_segments("segment_max", data, segment_ids, num_segments, indices_are_sorted,
                         unique_indices, lax::ScatterKind::max);
}
Array ops::segment_min(Operand data, Operand segment_ids, std::optional<Dim> num_segments,
                       bool indices_are_sorted, bool unique_indices) {
  return reduce_segments("segment_min", data, segment_ids, num_segments, indices_are_sorted,
                         unique_indices, lax::ScatterKind::min);
}

namespace {

[[maybe_unused]] const FunctionInfo* const segment_functions[] = {
    function("ops",
             "segment_sum(data, segment_ids, num_segments=None, indices_are_sorted=False, "
             "unique_indices=False, bucket_size=None!, mode=None!)",
             "The sums of the rows of data that have one id: row s of the result is that of rows "
             "whose segment_ids are s. Ids outside 0 .. num_segments - 1 are dropped; empty "
             "segments hold 0. num_segments is the largest id and 1 by default, and must be given "
             "under jit.",
             &ops::segment_sum),
    function("ops",
             "segment_prod(data, segment_ids, num_segments=None, indices_are_sorted=False, "
             "unique_indices=False, bucket_size=None!, mode=None!)",
             "segment_sum with products; empty segments hold 1.", &ops::segment_prod),
    function("ops",
             "segment_max(data, segment_ids, num_segments=None, indices_are_sorted=False, "
             "unique_indices=False, bucket_size=None!, mode=None!)",
             "segment_sum with maxima; empty segments hold -inf or the least integer.",
             &ops::segment_max),
    function("ops",
             "segment_min(data, segment_ids, num_segments=None, indices_are_sorted=False, "
             "unique_indices=False, bucket_size=None!, mode=None!)",
             "segment_sum with minima; empty segments hold inf or the largest integer.",
             &ops::segment_min),
};

}  // namespace
}  // namespace plait
