// psum and its kind: one block each. See collectives.h.
//
//   axis    the name of the axis of examples
//   size    the number of examples, where the type of the result depends on it
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/collectives.h>
#include <plait/primitives/families.h>
#include <plait/primitives/mesh.h>
#include <plait/primitives/narrow.h>
#include <plait/rules/autocast.h>
#include <plait/rules/collect.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>
#include <plait/trace/named_axes.h>
#include <plait/trace/varying.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "primitives/collective/pass_batch.h"
#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

const std::string& axis_of(const Params& params) { return params.get<std::string>("axis"); }

// What all of them state. They never run: vmap makes something else of them.
Family over_named_axis() {
  return {"over a named axis", [](Definition& definition) {
            const std::string name(definition.primitive().name());
            definition
                .rule<Eval>([name](auto, auto, const Params& params) {
                  throw ValueError(name + ": this program is over the axis '" + axis_of(params) +
                                       "', and runs outside of it",
                                   "apply vmap(..., axis_name='" + axis_of(params) + "') to it");
                })
                .rule<Cost>(cost::moves())
                .rule<Autocast>(Autocast::follows)
                .rule<PictureGroup>(PictureGroup::reduction)
                .refuse<Spelling>(spelling::no_function)
                .refuse<Speculate>("all examples take part in it")
                .refuse<Motion>("all examples take part in it")
                .refuse<Mask>("what examples of several sizes give each other is not one array")
                .rule<Samples>([] { return std::vector<Sample>(); });  // it never runs alone
          }};
}

std::vector<Batched> shared(Array array) { return {{std::move(array), std::nullopt}}; }

Abstract::Rule same_type(DTypes types) {
  return [types](std::span<const Aval> inputs, const Params&) {
    require_dtype("a reduction over examples", inputs[0], types);
    return std::vector<Aval>{inputs[0]};
  };
}

Array permuted(const Array& x, std::vector<int> order) {
  return std::ranges::is_sorted(order) ? x : lax::transpose(x, order);
}

}  // namespace

// --- Reductions ----------------------------------------------------------------------------------

constinit const Primitive psum_p{"psum"};
static const auto psum_def =
    define(psum_p, "The sum over the examples of a named axis.")
        .family(over_named_axis())
        .operands(1)
        .rule<Abstract>(same_type(numbers))
        .rule<Batch>(pass_batch(psum_p))
        .rule<Collect>([](Dim size, std::span<const Batched> inputs, const Params&) {
          const auto& [x, dim] = inputs[0];
          if (dim) return shared(lax::reduce_sum(x, std::vector<int>{*dim}));
          return shared(
              lax::mul(x, as_weak_as(x, lax::convert_element_type(Array(size), x.dtype()))));
        })
        .rule<Jvp>(linear_through(psum_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {Array(bind(psum_p, {cotangents[0].array()}, params))};
        });

namespace {

// The tangent of an extreme is the mean of those of the examples that have it.
Jvp::Rule extreme_jvp() {
  return [](std::span<const Array> primals, std::span<const Tangent> tangents,
            std::span<const Array> outputs, const Params& params) -> Tangents {
    const DType dtype = outputs[0].dtype();
    const Array is_it = lax::convert_element_type(lax::eq(primals[0], outputs[0]), dtype);
    const Array count = bind(psum_p, {is_it}, params);
    const Array share = lax::div(is_it, count);
    return {Array(bind(psum_p, {lax::mul(tangents[0].array(), share)}, params))};
  };
}
Collect::Rule collect_extreme(Array (*reduce)(Operand, std::span<const int>)) {
  return [reduce](Dim, std::span<const Batched> inputs, const Params&) {
    const auto& [x, dim] = inputs[0];
    return shared(dim ? reduce(x, std::vector<int>{*dim}) : x);
  };
}

}  // namespace

constinit const Primitive pmax_p{"pmax"};
static const auto pmax_def =
    define(pmax_p, "The largest over the examples of a named axis.")
        .family(over_named_axis())
        .operands(1)
        .rule<Abstract>(same_type(real_numbers | boolean))
        .rule<Batch>(pass_batch(pmax_p))
        .rule<Collect>(collect_extreme(
            +[](Operand x, std::span<const int> axes) { return lax::reduce_max(x, axes); }))
        .rule<Jvp>(extreme_jvp());

constinit const Primitive pmin_p{"pmin"};
static const auto pmin_def =
    define(pmin_p, "The smallest over the examples of a named axis.")
        .family(over_named_axis())
        .operands(1)
        .rule<Abstract>(same_type(real_numbers | boolean))
        .rule<Batch>(pass_batch(pmin_p))
        .rule<Collect>(collect_extreme(
            +[](Operand x, std::span<const int> axes) { return lax::reduce_min(x, axes); }))
        .rule<Jvp>(extreme_jvp());

// --- Movements -----------------------------------------------------------------------------------

namespace {

int axis_param(const Params& params, const char* name) { return int(params.integer(name)); }

// An axis of the mesh that shard_map is over, or none.
const std::optional<MeshAxis>& of_mesh(std::string_view function, const std::string& axis) {
  return named_axis(function, axis).of_mesh;
}

Array gathered(const Array& x, const std::string& axis, Dim size, int at) {
  return bind(all_gather_p, {x}, {{"axis", axis}, {"size", size}, {"at", Dim(at)}});
}
Array exchanged(const Array& x, const std::string& axis, Dim size, int split, int concat) {
  return bind(all_to_all_p, {x},
              {{"axis", axis}, {"size", size}, {"split", Dim(split)}, {"concat", Dim(concat)}});
}

void require_slices(const Shape& shape, int split, Dim size) {
  if (!(shape[split] == size))
    throw ShapeError("all_to_all: axis " + std::to_string(split) + " of shape (" +
                         shape.to_string() + ") is split among " + size.to_string() + " examples",
                     "give it one slice for each, or use tiled=True for several");
}

}  // namespace

constinit const Primitive all_gather_p{"all_gather"};
static const auto all_gather_def =
    define(all_gather_p, "The arrays of all examples of a named axis, along a new axis.")
        .family(over_named_axis())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          aval.shape.insert(axis_param(params, "at"), params.get<Dim>("size"));
          return std::vector<Aval>{aval};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          const Array x = batch_to_front(inputs[0], size);
          return std::vector<Batched>{
              {gathered(x, axis_of(params), params.get<Dim>("size"), axis_param(params, "at") + 1),
               0}};
        })
        .rule<Collect>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          const Array x = batch_to_front(inputs[0], size);
          std::vector<int> order(std::size_t(x.ndim() - 1));
          std::iota(order.begin(), order.end(), 1);
          order.insert(order.begin() + axis_param(params, "at"), 0);
          return shared(permuted(x, std::move(order)));
        })
        .rule<Jvp>(linear_through(all_gather_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          const Array parts = exchanged(cotangents[0].array(), axis_of(params),
                                        params.get<Dim>("size"), axis_param(params, "at"), 0);
          return {lax::reduce_sum(parts, std::vector<int>{0})};
        });

constinit const Primitive all_to_all_p{"all_to_all"};
static const auto all_to_all_def =
    define(all_to_all_p,
           "Slice j of an axis goes to example j of a named axis, which has one of each along a "
           "new axis.")
        .family(over_named_axis())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          const int split = axis_param(params, "split");
          const Dim size = params.get<Dim>("size");
          require_slices(aval.shape, split, size);
          aval.shape.erase(split);
          aval.shape.insert(axis_param(params, "concat"), size);
          return std::vector<Aval>{aval};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          const Array x = batch_to_front(inputs[0], size);
          return std::vector<Batched>{
              {exchanged(x, axis_of(params), params.get<Dim>("size"),
                         axis_param(params, "split") + 1, axis_param(params, "concat") + 1),
               0}};
        })
        .rule<Collect>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          const Array x = batch_to_front(inputs[0], size);
          const int split = axis_param(params, "split") + 1;
          std::vector<int> order;
          for (int i = 1; i < x.ndim(); ++i)
            if (i != split) order.push_back(i);
          order.insert(order.begin() + axis_param(params, "concat"), 0);
          order.insert(order.begin(), split);
          return std::vector<Batched>{{permuted(x, std::move(order)), 0}};
        })
        .rule<Jvp>(linear_through(all_to_all_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {exchanged(cotangents[0].array(), axis_of(params), params.get<Dim>("size"),
                            axis_param(params, "concat"), axis_param(params, "split"))};
        });

namespace {

// For each destination its source, or -1.
std::vector<std::int64_t> sources_of(const Params& params) {
  std::vector<std::int64_t> sources(std::size_t(params.get<Dim>("size").constant()), -1);
  const Shape &from = params.get<Shape>("from"), &to = params.get<Shape>("to");
  for (std::size_t i = 0; i < from.size(); ++i)
    sources[std::size_t(to[i].constant())] = from[i].constant();
  return sources;
}

// Runs of neighbours that come from neighbours, or from nowhere.
Array permuted_rows(const Array& x, const std::vector<std::int64_t>& sources) {
  Arrays parts;
  for (std::size_t begin = 0, end; begin < sources.size(); begin = end) {
    const std::int64_t first = sources[begin];
    end = begin + 1;
    while (end < sources.size() &&
           sources[end] == (first < 0 ? -1 : first + std::int64_t(end - begin)))
      ++end;
    const Dim count = std::int64_t(end - begin);
    Aval none = x.aval();
    none.shape[0] = count;
    parts.push_back(first < 0 ? lax::zeros_like(none)
                              : lax::slice_in_dim(x, Dim(first), Dim(first) + count, 1, 0));
  }
  return parts.size() == 1 ? parts[0] : lax::concatenate(parts, 0);
}

}  // namespace

constinit const Primitive ppermute_p{"ppermute"};
static const auto ppermute_def =
    define(ppermute_p,
           "The array of the example of a named axis from which this one gets; zeros where there "
           "is none.")
        .family(over_named_axis())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          return std::vector<Aval>{inputs[0]};
        })
        .rule<Batch>(pass_batch(ppermute_p))
        .rule<Collect>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          return std::vector<Batched>{
              {permuted_rows(batch_to_front(inputs[0], size), sources_of(params)), 0}};
        })
        .rule<Jvp>(linear_through(ppermute_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          const Params inverse =
              params.with("from", params.get<Shape>("to")).with("to", params.get<Shape>("from"));
          return {Array(bind(ppermute_p, {cotangents[0].array()}, inverse))};
        });

constinit const Primitive axis_index_p{"axis_index"};
static const auto axis_index_def =
    define(axis_index_p, "The number of the example along a named axis.")
        .family(over_named_axis())
        .operands(0)
        .rule<Abstract>([](auto, const Params&) { return std::vector<Aval>{{{}, DType::int32}}; })
        .rule<Collect>([](Dim size, std::span<const Batched>, const Params&) {
          return std::vector<Batched>{{lax::iota(DType::int32, {size}, 0), 0}};
        })
        .rule<Batch>([](Dim, std::span<const Batched>, const Params& params) {
          return shared(bind(axis_index_p, {}, params));  // it has no operands
        })
        .rule<Jvp>(zero_derivative());

// --- Functions -----------------------------------------------------------------------------------

namespace {

// What a function makes of x along axes, one after the other.
template <class Along>
Array along_each(const Array& x, const lax::AxisNames& axes, Along along) {
  Array result = x;
  for (const std::string& axis : axes.names) result = along(result, axis);
  return result;
}

Array reduced(const char* function, const Primitive& by, const Array& x,
              const lax::AxisNames& axes) {
  return along_each(x, axes, [&](const Array& each, const std::string& axis) {
    const NamedAxis& named = named_axis(function, axis);
    if (!named.of_mesh) return Array(bind(by, {each}, {{"axis", axis}}));
    const Array result = places::reduce(each,
                                        by == psum_p   ? "sum"
                                        : by == pmax_p ? "max"
                                                       : "min",
                                        *named.of_mesh);
    return named.is_checked ? result : varying_along(result, MeshAxes(*named.of_mesh));
  });
}
Array gathered_over(const char* function, const Array& x, const std::string& axis, int at) {
  if (const std::optional<MeshAxis>& mesh = of_mesh(function, axis))
    return places::all_gather(x, *mesh, at);
  return gathered(x, axis, size_of_axis(function, axis), at);
}
Array exchanged_along(const char* function, const Array& x, const std::string& axis, int split,
                      int concat) {
  if (const std::optional<MeshAxis>& mesh = of_mesh(function, axis))
    return places::all_to_all(x, *mesh, split, concat);
  return exchanged(x, axis, size_of_axis(function, axis), split, concat);
}

Dim size_of_axes(const char* function, const lax::AxisNames& axes) {
  Dim size = 1;
  for (const std::string& axis : axes.names) size = size * size_of_axis(function, axis);
  return size;
}
std::string text_of(const lax::AxisNames& axes) {
  std::string text;
  for (const std::string& axis : axes.names) text += (text.empty() ? "'" : ", '") + axis + "'";
  return text;
}

// Slice j along split goes to example j, which gets one of each along a new axis concat.
Array exchanged_over(const char* function, const Array& x, const lax::AxisNames& axes, int split,
                     int concat) {
  const int count = int(axes.names.size());
  if (count == 1) return exchanged_along(function, x, axes.names[0], split, concat);
  // The split axis as one for each of the axes. One after the other goes, and has its new one in
  // front.
  Shape shape = x.shape();
  shape.erase(split);
  for (int k = count; k-- > 0;)
    shape.insert(split, size_of_axis(function, axes.names[std::size_t(k)]));
  Array parts = lax::reshape(x, shape);
  for (int k = 0; k < count; ++k)
    parts = exchanged_along(function, parts, axes.names[std::size_t(k)], k + split, k);
  shape = parts.shape();
  for (int k = 0; k < count; ++k) shape.erase(0);
  shape.insert(0, size_of_axes(function, axes));
  const Array rows = lax::reshape(parts, shape);
  std::vector<int> order(std::size_t(rows.ndim() - 1));
  std::iota(order.begin(), order.end(), 1);
  order.insert(order.begin() + concat, 0);
  return permuted(rows, std::move(order));
}

// The axis with n slices for each of the examples as two: examples first.
Array with_split_axis(const char* function, const Array& x, int axis, Dim size) {
  Shape shape = x.shape();
  if (!size.is_constant() || !shape[axis].is_constant() ||
      shape[axis].constant() % size.constant() != 0)
    throw ShapeError(std::string(function) + ": axis " + std::to_string(axis) + " of shape (" +
                         shape.to_string() + ") does not divide among " + size.to_string() +
                         " examples",
                     "give it a multiple of their number");
  const Dim each = shape[axis].constant() / size.constant();
  shape[axis] = each;
  shape.insert(axis, size);
  return lax::reshape(x, shape);
}
// Two neighbouring axes as one.
Array joined(const Array& x, int axis) {
  Shape shape = x.shape();
  shape[axis] = shape[axis] * shape[axis + 1];
  shape.erase(axis + 1);
  return lax::reshape(x, shape);
}

// The x of all examples, joined along an axis; of the last axis of examples without `tiled` along a
// new one. The last counts fastest.
template <class Gather>
Array gathered_from(const char* function, const Array& x, const lax::AxisNames& axes, int axis,
                    bool tiled, Gather gather) {
  const int at = normalize_axis(axis, tiled ? x.ndim() : x.ndim() + 1, function);
  Array all = x;
  bool joins = tiled;
  for (std::size_t i = axes.names.size(); i-- > 0; joins = true) {
    all = gather(all, axes.names[i], at);
    if (joins) all = joined(all, at);
  }
  return all;
}

Array permuted_along(const Array& x, const std::string& axis, Dim size, const Shape& from,
                     const Shape& to) {
  if (const std::optional<MeshAxis>& mesh = of_mesh("ppermute", axis))
    return places::ppermute(x, *mesh, from, to);
  return bind(ppermute_p, {x}, {{"axis", axis}, {"size", size}, {"from", from}, {"to", to}});
}

// Along several axes: what goes equally far along each of them goes along one after the other.
Array permuted_over(const Array& x, const lax::AxisNames& axes, const lax::Permutation& perm) {
  std::vector<std::int64_t> sizes;
  for (const std::string& axis : axes.names)
    sizes.push_back(size_of_axis("ppermute", axis).constant());
  const auto distances = [&](std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> all(sizes.size());
    for (std::size_t k = sizes.size(); k-- > 0; from /= sizes[k], to /= sizes[k])
      all[k] = (to % sizes[k] - from % sizes[k] + sizes[k]) % sizes[k];
    return all;
  };
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> destinations;
  for (const auto& [from, to] : perm) destinations[distances(from, to)].push_back(to);
  const Array here = lax::axis_index(axes);
  Array result = lax::zeros_like(x.aval());
  for (const auto& [distance, places] : destinations) {
    Array moved = x;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      if (distance[k] == 0) continue;
      Shape from, to;
      for (std::int64_t i = 0; i < sizes[k]; ++i)
        from.push_back(i), to.push_back((i + distance[k]) % sizes[k]);
      moved = permuted_along(moved, axes.names[k], sizes[k], from, to);
    }
    Array is_one = Array::literal(0.0, DType::bool_);
    for (const std::int64_t place : places)
      is_one = lax::bitwise_or(is_one, lax::eq(here, Array::literal(double(place), DType::int32)));
    result = lax::select(broadcast_to(is_one, x.shape()), moved, result);
  }
  return result;
}

}  // namespace

Array lax::psum(Operand x, const AxisNames& axis_name) {
  const Dim size = size_of_axes("psum", axis_name);
  // Of a number, the number times the examples, which programs ask for as the size of the axis.
  if (const auto literal = x.as_literal(); literal && size.is_constant() && !is_bool(x.dtype()))
    return lax::mul(x, as_weak_as(x, Array::literal(double(size.constant()), x.dtype())));
  return reduced("psum", psum_p,
                 is_bool(x.dtype()) ? lax::convert_element_type(x, default_int()) : Array(x),
                 axis_name);
}
Array lax::pmax(Operand x, const AxisNames& axis_name) {
  return reduced("pmax", pmax_p, x, axis_name);
}
Array lax::pmin(Operand x, const AxisNames& axis_name) {
  return reduced("pmin", pmin_p, x, axis_name);
}
Array lax::pmean(Operand x, const AxisNames& axis_name) {
  const Dim size = size_of_axes("pmean", axis_name);
  const Array sum = psum(
      is_inexact(x.dtype()) ? Array(x) : lax::convert_element_type(x, default_float()), axis_name);
  return lax::div(sum, as_weak_as(sum, lax::convert_element_type(Array(size), sum.dtype())));
}

Array lax::all_gather(Operand x, const AxisNames& axis_name, int axis, bool tiled) {
  return gathered_from("all_gather", x, axis_name, axis, tiled,
                       [](const Array& each, const std::string& name, int at) {
                         return gathered_over("all_gather", each, name, at);
                       });
}
Array lax::all_gather_invariant(Operand x, const AxisNames& axis_name, int axis, bool tiled) {
  return gathered_from("all_gather", x, axis_name, axis, tiled,
                       [](const Array& each, const std::string& name, int at) {
                         const NamedAxis& named = named_axis("all_gather", name);
                         if (!named.of_mesh || !named.is_checked)
                           return gathered_over("all_gather", each, name, at);
                         MeshSpec spec{{std::size_t(at) + 1, std::vector<MeshAxis>()}};
                         spec.parts.back() = {*named.of_mesh};
                         Shape shape = each.shape();
                         shape.insert(at, 1);
                         return places::unshard(lax::reshape(each, shape), spec);
                       });
}

Array lax::psum_scatter(Operand x, const AxisNames& axis_name, int scatter_dimension, bool tiled) {
  const int axis = normalize_axis(scatter_dimension, x.ndim(), "psum_scatter");
  Array part = x;
  for (std::size_t i = 0; i < axis_name.names.size(); ++i) {
    const std::string& name = axis_name.names[i];
    const Dim size = size_of_axis("psum_scatter", name);
    const bool is_split = tiled || i + 1 < axis_name.names.size();
    const Array parts = is_split ? with_split_axis("psum_scatter", part, axis, size) : part;
    require_slices(parts.shape(), axis, size);
    part =
        lax::reduce_sum(exchanged_along("psum_scatter", parts, name, axis, 0), std::vector<int>{0});
  }
  return part;
}

Array lax::all_to_all(Operand x, const AxisNames& axis_name, int split_axis, int concat_axis,
                      bool tiled) {
  const Dim size = size_of_axes("all_to_all", axis_name);
  const int split = normalize_axis(split_axis, x.ndim(), "all_to_all"),
            concat = normalize_axis(concat_axis, x.ndim(), "all_to_all");
  if (!tiled) {
    require_slices(x.shape(), split, size);
    return exchanged_over("all_to_all", x, axis_name, split, concat);
  }
  // The split axis goes from the parts: the axis that they are joined along is where it was.
  const Array parts = with_split_axis("all_to_all", x, split, size);
  return joined(exchanged_over("all_to_all", parts, axis_name, split, concat), concat);
}

Array lax::ppermute(Operand x, const AxisNames& axis_name, const Permutation& perm) {
  const Dim size = size_of_axes("ppermute", axis_name);
  if (!size.is_constant())
    throw ShapeError(
        "ppermute: along " + text_of(axis_name) + " there are " + size.to_string() + " examples",
        "give the size of the axis as an integer");
  Shape from, to;
  std::vector<int> sources, destinations;
  for (const auto& [source, destination] : perm) {
    for (const int place : {source, destination})
      if (place < 0 || place >= size.constant())
        throw ValueError(
            "ppermute: there is no example " + std::to_string(place) + " of " + size.to_string(),
            "number them from 0");
    sources.push_back(source);
    destinations.push_back(destination);
    from.push_back(source);
    to.push_back(destination);
  }
  for (std::vector<int>* places : {&sources, &destinations}) {
    std::ranges::sort(*places);
    if (std::ranges::adjacent_find(*places) != places->end())
      throw ValueError("ppermute: an example is there twice among the " +
                           std::string(places == &sources ? "sources" : "destinations"),
                       "send one array from each example, and one to each");
  }
  return axis_name.names.size() == 1 ? permuted_along(x, axis_name.names[0], size, from, to)
                                     : permuted_over(x, axis_name, perm);
}

Array lax::pshuffle(Operand x, const AxisNames& axis_name, const std::vector<int>& perm) {
  Permutation pairs;
  for (std::size_t i = 0; i < perm.size(); ++i) pairs.emplace_back(perm[i], int(i));
  return ppermute(x, axis_name, pairs);
}
Array lax::pswapaxes(Operand x, const AxisNames& axis_name, int axis) {
  return all_to_all(x, axis_name, axis, axis);
}

Array lax::axis_index(const AxisNames& axis_name) {
  std::optional<Array> index;
  for (const std::string& name : axis_name.names) {
    const std::optional<MeshAxis>& mesh = of_mesh("axis_index", name);
    const Array here =
        mesh ? places::axis_index(*mesh) : Array(bind(axis_index_p, {}, {{"axis", name}}));
    const Array size = convert_element_type(Array(size_of_axis("axis_index", name)), DType::int32);
    index = index ? add(mul(*index, size), here) : here;
  }
  return index ? *index : Array::literal(0.0, DType::int32);
}
Array lax::pvary(Operand x, const AxisNames& axis_name) {
  return along_each(x, axis_name, [](const Array& each, const std::string& axis) {
    const std::optional<MeshAxis>& mesh = of_mesh("pvary", axis);
    return mesh ? varying_along(each, MeshAxes(*mesh)) : each;
  });
}
Array lax::pcast(Operand x, const AxisNames& axis_name, const std::string& to) {
  if (to != "varying")
    throw ValueError("pcast: to='" + to + "' is no kind of values here",
                     "give to='varying': values vary along an axis of the mesh, or are the same");
  for (const std::string& name : axis_name.names) {
    const NamedAxis& named = named_axis("pcast", name);
    if (named.of_mesh && named.is_checked && x.aval().varying.includes(MeshAxes(*named.of_mesh)))
      throw ValueError("pcast: " + x.aval().to_string() + " varies along '" + name + "' already",
                       "leave pcast out, or name the other axes");
  }
  return pvary(x, axis_name);
}
Dim lax::axis_size(const AxisNames& axis_name) { return size_of_axes("axis_size", axis_name); }

}  // namespace plait
