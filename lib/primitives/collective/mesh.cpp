// What shard_map is made of: one block each. See include/plait/primitives/mesh.h.
//
// None of them runs: programs are compiled for their places first.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/mesh.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>
#include <plait/trace/varying.h>

#include "primitives/collective/pass_batch.h"
#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {

MeshAxis places::axis_of(const Params& params) {
  return MeshAxis::from_string(params.get<std::string>("axis"));
}
MeshSpec places::spec_of(const Params& params) {
  return MeshSpec::from_string(params.get<std::string>("spec"));
}

namespace {

using places::axis_of;
using places::spec_of;

Family over_mesh() {
  return {
      "over a mesh", [](Definition& definition) {
        definition.states_varying()
            .refuse<Eval>("it is compiled for its places first")
            .rule<Cost>(cost::moves())
            .rule<Autocast>(Autocast::follows)
            .rule<PictureGroup>(PictureGroup::reduction)
            .refuse<Spelling>(spelling::no_function)
            .refuse<Speculate>("all places take part in it")
            .refuse<Motion>("all places take part in it")
            .rule<Mask>(mask_elementwise(definition.primitive()))  // no axis with a size is divided
            .rule<Samples>([] { return std::vector<Sample>(); });  // it never runs alone
      }};
}

Params over(const MeshAxis& axis) { return {{"axis", axis.to_string()}}; }

int number_in(const Params& params, const char* name) { return int(params.integer(name)); }

std::vector<Batched> along_front(const Primitive& primitive, Dim size, const Batched& input,
                                 Params params, std::initializer_list<const char*> shifted) {
  for (const char* name : shifted) params = params.with(name, Dim(number_in(params, name) + 1));
  return {{Array(bind(primitive, {batch_to_front(input, size)}, params)), 0}};
}

}  // namespace

MeshAxes places::axes_in(const std::string& text) {
  MeshAxes axes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    axes |= MeshAxes(MeshAxis::from_string(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return axes;
}

namespace {

struct Communication {
  MeshAxes exchanged, all;
};
const Communication& communication(const Jaxpr& program) {
  struct OfProgram : Property<Communication> {};
  return *program->memo.get(OfProgram{}, [&] {
    Communication found;
    for (const Equation& equation : program->equations) {
      const Primitive& primitive = *equation.primitive;
      for (const Primitive* each : {&mesh_reduce_p, &mesh_all_gather_p, &mesh_all_to_all_p,
                                    &mesh_ppermute_p, &mesh_invariant_p})
        if (primitive == *each) found.exchanged |= MeshAxes(axis_of(equation.params));
      if (primitive == mesh_axis_index_p) found.all |= MeshAxes(axis_of(equation.params));
      if (primitive == shard_p || primitive == unshard_p)
        (primitive == shard_p ? found.all : found.exchanged) |= spec_of(equation.params).axes();
      for_each_body(equation.params, [&](const Jaxpr& body) {
        found.exchanged |= communication(body).exchanged;
        found.all |= communication(body).all;
      });
    }
    found.all |= found.exchanged;
    return found;
  });
}

}  // namespace

MeshAxes communicated(const Jaxpr& program) { return communication(program).all; }
MeshAxes exchanged(const Jaxpr& program) { return communication(program).exchanged; }

void require_same_ways(MeshAxes predicate, std::span<const Jaxpr> programs, std::string_view name,
                       const std::string& what) {
  for (const Jaxpr& program : programs)
    if (const MeshAxes both = predicate & exchanged(program); !both.empty())
      throw ValueError(std::string(name) + ": " + what + " differs along the axis '" +
                           both.axes()[0].name +
                           "' of the mesh, and places exchange arrays along "
                           "it inside",
                       "make it the same in all places, as with lax.pmax, or move the exchange "
                       "out of it");
}

// --- Specs ---------------------------------------------------------------------------------------

MeshAxes MeshSpec::axes() const {
  MeshAxes all;
  for (const auto& along : parts)
    for (const MeshAxis& axis : along) all |= MeshAxes(axis);
  return all;
}

std::int64_t MeshSpec::num_parts(std::size_t axis) const {
  std::int64_t product = 1;
  for (const MeshAxis& each : parts[axis]) product *= each.size;
  return product;
}

std::string MeshSpec::to_string() const {
  std::string text;
  for (const auto& along : parts) {
    for (std::size_t i = 0; i < along.size(); ++i)
      text += (i > 0 ? "+" : "") + along[i].to_string();
    text += '|';
  }
  return text;
}

MeshSpec MeshSpec::from_string(std::string_view text) {
  MeshSpec spec;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('|', at);
    if (end == text.npos) throw ValueError("'" + std::string(text) + "' is no spec of a mesh", "");
    std::vector<MeshAxis>& along = spec.parts.emplace_back();
    while (at < end) {
      const std::size_t stop = std::min(text.find('+', at), end);
      along.push_back(MeshAxis::from_string(text.substr(at, stop - at)));
      at = stop + 1;
    }
    at = end + 1;
  }
  return spec;
}

// --- Values that vary ----------------------------------------------------------------------------

constinit const Primitive pvary_p{"pvary"};
static const auto pvary_def =
    define(pvary_p, "The same value, as one that varies along axes of a mesh.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          aval.varying |= places::axes_in(params.get<std::string>("axes"));
          return std::vector<Aval>{aval};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          return inputs[0].varying.includes(places::axes_in(params.get<std::string>("axes")));
        })
        .rule<Batch>(pass_batch(pvary_p))
        .rule<Jvp>(linear_through(pvary_p))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          Array sum = cotangents[0].array();
          const MeshAxes added =
              places::axes_in(params.get<std::string>("axes")).without(inputs[0].aval().varying);
          for (const MeshAxis& axis : added.axes()) sum = places::reduce(sum, "sum", axis);
          return {sum};
        });

namespace {
Array varied(const Array& array, MeshAxes axes) {
  return bind(pvary_p, {array}, {{"axes", axes.to_string()}});
}
[[maybe_unused]] const bool varies = (make_varying = varied, true);
}  // namespace

// --- Reductions ----------------------------------------------------------------------------------

constinit const Primitive mesh_reduce_p{"mesh_reduce"};
static const auto mesh_reduce_def =
    define(mesh_reduce_p, "The sum, max or min over the places along an axis of a mesh.")
        .family(over_mesh())
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& kind = params.text("kind");
          if (kind != "sum" && kind != "max" && kind != "min")
            throw ValueError("mesh_reduce: there is no kind '" + kind + "'",
                             "choose sum, max or min");
          require_dtype("a reduction over places", inputs[0],
                        kind == "sum" ? numbers : real_numbers | boolean);
          Aval aval = inputs[0];
          aval.varying = aval.varying.without(MeshAxes(axis_of(params)));
          return std::vector<Aval>{aval};
        })
        .rule<Batch>(pass_batch(mesh_reduce_p))
        .rule<Jvp>([](std::span<const Array> primals, std::span<const Tangent> tangents,
                      std::span<const Array> outputs, const Params& params) -> Tangents {
          if (params.text("kind") == "sum")
            return {Array(bind(mesh_reduce_p, {tangents[0].array()}, params))};
          // The tangent of an extreme is the mean of those of the places that have it.
          const MeshAxis axis = axis_of(params);
          const Array is_it =
              lax::convert_element_type(lax::eq(primals[0], outputs[0]), outputs[0].dtype());
          const Array share = lax::div(is_it, places::reduce(is_it, "sum", axis));
          return {places::reduce(lax::mul(tangents[0].array(), share), "sum", axis)};
        })
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          if (params.text("kind") != "sum") throw InternalError("an extreme is not linear");
          return {varying_along(cotangents[0].array(), MeshAxes(axis_of(params)))};
        });
Array places::reduce(Operand x, const std::string& kind, const MeshAxis& axis) {
  return bind(mesh_reduce_p, {varying_along(x, MeshAxes(axis))}, over(axis).with("kind", kind));
}

// --- Movements -----------------------------------------------------------------------------------

constinit const Primitive mesh_all_gather_p{"mesh_all_gather"};
static const auto mesh_all_gather_def =
    define(mesh_all_gather_p,
           "The arrays of all places along an axis of a mesh, along a new axis `at`.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          aval.shape.insert(number_in(params, "at"), Dim(axis_of(params).size));
          return std::vector<Aval>{aval};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          return along_front(mesh_all_gather_p, size, inputs[0], params, {"at"});
        })
        .rule<Jvp>(linear_through(mesh_all_gather_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          const Array parts = places::all_to_all(cotangents[0].array(), axis_of(params),
                                                 number_in(params, "at"), 0);
          return {lax::reduce_sum(parts, std::vector<int>{0})};
        });
Array places::all_gather(Operand x, const MeshAxis& axis, int at) {
  return bind(mesh_all_gather_p, {varying_along(x, MeshAxes(axis))},
              over(axis).with("at", Dim(at)));
}

constinit const Primitive mesh_all_to_all_p{"mesh_all_to_all"};
static const auto mesh_all_to_all_def =
    define(mesh_all_to_all_p,
           "Slice j along the axis `split` goes to place j of an axis of a mesh, which has one of "
           "each along a new axis `concat`.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          const int split = number_in(params, "split");
          const Dim size = axis_of(params).size;
          if (!(aval.shape[split] == size))
            throw ShapeError("all_to_all: axis " + std::to_string(split) + " of shape (" +
                                 aval.shape.to_string() + ") is split among " + size.to_string() +
                                 " places",
                             "give it one slice for each, or use tiled=True for several");
          aval.shape.erase(split);
          aval.shape.insert(number_in(params, "concat"), size);
          return std::vector<Aval>{aval};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          return along_front(mesh_all_to_all_p, size, inputs[0], params, {"split", "concat"});
        })
        .rule<Jvp>(linear_through(mesh_all_to_all_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {places::all_to_all(cotangents[0].array(), axis_of(params),
                                     number_in(params, "concat"), number_in(params, "split"))};
        });
Array places::all_to_all(Operand x, const MeshAxis& axis, int split, int concat) {
  return bind(mesh_all_to_all_p, {varying_along(x, MeshAxes(axis))},
              over(axis).with("split", Dim(split)).with("concat", Dim(concat)));
}

constinit const Primitive mesh_ppermute_p{"mesh_ppermute"};
static const auto mesh_ppermute_def =
    define(mesh_ppermute_p,
           "The array of the place along an axis of a mesh from which this one gets; zeros where "
           "there is none.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          return std::vector<Aval>{inputs[0]};
        })
        .rule<Batch>(pass_batch(mesh_ppermute_p))
        .rule<Jvp>(linear_through(mesh_ppermute_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {places::ppermute(cotangents[0].array(), axis_of(params), params.get<Shape>("to"),
                                   params.get<Shape>("from"))};
        });
Array places::ppermute(Operand x, const MeshAxis& axis, const Shape& from, const Shape& to) {
  return bind(mesh_ppermute_p, {varying_along(x, MeshAxes(axis))},
              over(axis).with("from", from).with("to", to));
}

constinit const Primitive mesh_axis_index_p{"mesh_axis_index"};
static const auto mesh_axis_index_def =
    define(mesh_axis_index_p, "The number of the place along an axis of a mesh.")
        .family(over_mesh())
        .operands(0)
        .rule<Abstract>([](auto, const Params& params) {
          Aval aval{{}, DType::int32};
          aval.varying = MeshAxes(axis_of(params));
          return std::vector<Aval>{aval};
        })
        .rule<Batch>([](Dim, std::span<const Batched>, const Params& params) {
          return std::vector<Batched>{{Array(bind(mesh_axis_index_p, {}, params)), std::nullopt}};
        })
        .rule<Jvp>(zero_derivative());
Array places::axis_index(const MeshAxis& axis) { return bind(mesh_axis_index_p, {}, over(axis)); }

constinit const Primitive mesh_invariant_p{"mesh_invariant"};
static const auto mesh_invariant_def =
    define(mesh_invariant_p,
           "The value of the first place along an axis of a mesh, for all: what is said to be the "
           "same.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          aval.varying = aval.varying.without(MeshAxes(axis_of(params)));
          return std::vector<Aval>{aval};
        })
        .rule<Batch>(pass_batch(mesh_invariant_p))
        .rule<Jvp>(linear_through(mesh_invariant_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          const MeshAxis axis = axis_of(params);
          const Array ct = varying_along(cotangents[0].array(), MeshAxes(axis));
          return {lax::div(ct, Array::literal(double(axis.size), ct.dtype()))};
        });
Array places::invariant(Operand x, const MeshAxis& axis) {
  return bind(mesh_invariant_p, {varying_along(x, MeshAxes(axis))}, over(axis));
}

// --- Blocks --------------------------------------------------------------------------------------

namespace {

Params divided(const MeshSpec& spec) { return {{"spec", spec.to_string()}}; }

Batch::Rule with_whole_front(const Primitive& primitive) {
  return [&primitive](Dim size, std::span<const Batched> inputs, const Params& params) {
    MeshSpec spec = spec_of(params);
    spec.parts.insert(spec.parts.begin(), std::vector<MeshAxis>());
    return std::vector<Batched>{
        {Array(bind(primitive, {batch_to_front(inputs[0], size)}, divided(spec))), 0}};
  };
}

}  // namespace

constinit const Primitive shard_p{"shard"};
static const auto shard_def =
    define(shard_p, "The block of an array that belongs to a place of a mesh.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const MeshSpec spec = spec_of(params);
          Aval aval = inputs[0];
          for (std::size_t i = 0; i < spec.parts.size(); ++i) {
            const std::int64_t parts = spec.num_parts(i);
            if (parts == 1) continue;
            const Dim size = aval.shape[int(i)];
            if (!size.is_constant() || size.constant() % parts != 0)
              throw ShapeError("axis " + std::to_string(i) + " of an array of type " +
                                   inputs[0].to_string() + " does not divide among " +
                                   std::to_string(parts) + " places of the mesh",
                               "give it a multiple of their number, or pad it");
            aval.shape[int(i)] = size.constant() / parts;
          }
          aval.varying |= spec.axes();
          return std::vector<Aval>{aval};
        })
        .rule<Batch>(with_whole_front(shard_p))
        .rule<Jvp>(linear_through(shard_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {places::unshard(cotangents[0].array(), spec_of(params))};
        });
Array places::shard(Operand x, const MeshSpec& spec) {
  return spec.axes().empty() ? Array(x) : Array(bind(shard_p, {x}, divided(spec)));
}

constinit const Primitive unshard_p{"unshard"};
static const auto unshard_def =
    define(unshard_p, "The array whose blocks the places of a mesh have.")
        .family(over_mesh())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const MeshSpec spec = spec_of(params);
          Aval aval = inputs[0];
          for (std::size_t i = 0; i < spec.parts.size(); ++i)
            aval.shape[int(i)] = aval.shape[int(i)] * Dim(spec.num_parts(i));
          aval.varying = aval.varying.without(spec.axes());
          return std::vector<Aval>{aval};
        })
        .rule<Batch>(with_whole_front(unshard_p))
        .rule<Jvp>(linear_through(unshard_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {places::shard(cotangents[0].array(), spec_of(params))};
        });
Array places::unshard(Operand x, const MeshSpec& spec) {
  if (spec.axes().empty()) return x;
  return bind(unshard_p, {varying_along(x, spec.axes())}, divided(spec));
}

}  // namespace plait
