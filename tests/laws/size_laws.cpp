// Laws of named sizes: instantiate and mask. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include <plait/inspect/tolerance.h>
#include "laws.h"

namespace plait::laws {
namespace {

using Extents = std::vector<std::pair<Dim, Dim>>;

// One place of a case where a size stands: an axis of an input, or an entry of a parameter.
struct Place {
  std::size_t input = 0;  // of an axis
  std::string param;      // of a parameter; empty: of an axis
  int index = -1;         // in a list; -1: a single size
};

std::vector<Aval> with_size(const std::vector<Aval>& avals, const std::vector<Place>& places,
                            Dim size) {
  std::vector<Aval> result = avals;
  for (const Place& place : places)
    if (place.param.empty()) result[place.input].shape[place.index] = size;
  return result;
}
Params with_size(const Params& params, const std::vector<Place>& places, Dim size) {
  Params result = params;
  for (const Place& place : places) {
    if (place.param.empty()) continue;
    if (place.index < 0) {
      result = result.with(place.param, size);
    } else {
      Shape list = result.get<Shape>(place.param);
      list[place.index] = size;
      result = result.with(place.param, list);
    }
  }
  return result;
}

// The places in parameters where this extent stands.
std::vector<Place> places_in(const Params& params, std::int64_t extent) {
  std::vector<Place> places;
  for (const auto& [name, value] : params.entries()) {
    if (const Dim* dim = std::get_if<Dim>(&value); dim && *dim == Dim(extent))
      places.push_back({0, name, -1});
    if (const Shape* list = std::get_if<Shape>(&value))
      for (int i = 0; i < list->rank(); ++i)
        if ((*list)[i] == Dim(extent)) places.push_back({0, name, i});
  }
  return places;
}

// Whether the renamed case can be traced at all.
bool traces(const Case& one, const std::vector<Aval>& avals, const Params& params,
            const Extents& extents) {
  std::vector<Dim> sizes;
  for (const auto& [size, extent] : extents) sizes.push_back(size);
  try {
    make_jaxpr([&](std::span<const Array> inputs) { return one.apply(inputs, params); }, avals,
               "law", sizes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Names these axes n, with as few places in the parameters as make the case one that can be traced.
std::optional<Renaming> renamed(const Case& one, const std::vector<Aval>& avals,
                                const Params& params, const std::vector<Place>& axes,
                                std::int64_t extent, Dim size, Extents extents) {
  extents.emplace_back(size, extent);
  const std::vector<Aval> named = with_size(avals, axes, size);
  std::vector<Place> places = one.primitive ? places_in(params, extent) : std::vector<Place>{};
  if (places.size() > 5) places.resize(5);
  std::vector<unsigned> choices(1u << places.size());
  for (unsigned i = 0; i < choices.size(); ++i) choices[i] = i;
  std::stable_sort(choices.begin(), choices.end(), [](unsigned a, unsigned b) {
    return __builtin_popcount(a) < __builtin_popcount(b);
  });
  for (unsigned choice : choices) {
    std::vector<Place> chosen;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (choice >> i & 1) chosen.push_back(places[i]);
    const Params other = with_size(params, chosen, size);
    if (traces(one, named, other, extents)) return Renaming{named, other, extents};
  }
  return std::nullopt;
}

}  // namespace

// Whether the primitive does not refuse to be differentiated.
bool is_differentiated(const Case& one) {
  return !one.primitive || !Jvp::table().origin(*one.primitive) ||
         Jvp::table().find(*one.primitive);
}

std::string text_of(const Renaming& renaming) {
  std::string text = "with";
  for (const Aval& aval : renaming.avals) text += " " + aval.to_string();
  return text + " [" + renaming.params.to_string() + "]";
}

std::vector<Renaming> renamings_of(const Case& one) {
  std::vector<Renaming> found;
  const std::vector<Aval> avals = one.avals();
  const Dim n = Dim::size("n"), m = Dim::size("m");
  std::vector<Place> axes;
  std::set<std::int64_t> extents;
  for (std::size_t i = 0; i < avals.size(); ++i)
    for (int axis = 0; axis < avals[i].rank(); ++axis) {
      if (avals[i].shape[axis].constant() == 0) continue;
      axes.push_back({i, "", axis});
      extents.insert(avals[i].shape[axis].constant());
    }
  auto extent_of = [&](const Place& place) {
    return avals[place.input].shape[place.index].constant();
  };
  auto add = [&](std::optional<Renaming> renaming) {
    if (!renaming) return;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Renaming& other) {
      return other.avals == renaming->avals && other.params == renaming->params;
    });
    if (!known) found.push_back(std::move(*renaming));
  };
  // Every axis alone; pairs of equal axes of two inputs; all axes of one extent.
  for (const Place& axis : axes)
    add(renamed(one, avals, one.params, {axis}, extent_of(axis), n, {}));
  for (std::size_t a = 0; a < axes.size(); ++a)
    for (std::size_t b = a + 1; b < axes.size(); ++b)
      if (axes[a].input != axes[b].input && extent_of(axes[a]) == extent_of(axes[b]))
        add(renamed(one, avals, one.params, {axes[a], axes[b]}, extent_of(axes[a]), n, {}));
  for (std::int64_t extent : extents) {
    std::vector<Place> same;
    for (const Place& axis : axes)
      if (extent_of(axis) == extent) same.push_back(axis);
    add(renamed(one, avals, one.params, same, extent, n, {}));
  }
  // Two names at once: what accepts one, and an axis of another extent.
  const std::vector<Renaming> first = found;
  for (const Renaming& one_name : first) {
    bool done = false;
    for (const Place& axis : axes) {
      if (done || !one_name.avals[axis.input].shape[axis.index].is_constant()) continue;
      const std::size_t before = found.size();
      std::vector<Place> same;
      for (const Place& other : axes)
        if (one_name.avals[other.input].shape[other.index] == Dim(extent_of(axis)))
          same.push_back(other);
      add(renamed(one, one_name.avals, one_name.params, same, extent_of(axis), m,
                  one_name.extents));
      done = found.size() > before;
    }
  }
  return found;
}

// --- instantiate ---------------------------------------------------------------------------------

namespace {

std::vector<Aval> at_extents(const std::vector<Aval>& avals, const Extents& extents) {
  std::vector<Aval> result = avals;
  for (Aval& aval : result) aval.shape = substitute(aval.shape, extents);
  return result;
}

// f, and what transforms make of it, as functions that can be traced at any avals.
std::vector<std::pair<std::string, Function>> transforms_of(const Function& f,
                                                            const std::vector<Aval>& avals,
                                                            bool differentiates) {
  std::vector<bool> wrt;
  for (const Aval& aval : avals) wrt.push_back(differentiates && is_differentiable(aval));
  std::vector<std::pair<std::string, Function>> all = {{"f", f}};
  if (std::find(wrt.begin(), wrt.end(), true) == wrt.end()) return all;
  all.emplace_back("jvp of f", [=](std::span<const Array> inputs) {
    Tangents tangents;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      tangents.push_back(wrt[i] ? Tangent(inputs[i]) : Tangent(inputs[i].aval()));
    Arrays results;
    for (const Tangent& tangent : flat::jvp(f, inputs, tangents).tangents)
      results.push_back(tangent.instantiate());
    return results;
  });
  all.emplace_back("vjp of f", [=](std::span<const Array> inputs) {
    const flat::Pullback pullback = flat::vjp(f, inputs, wrt);
    Tangents cotangents;
    for (const Array& output : pullback.outputs)
      cotangents.push_back(is_differentiable(output.aval()) ? Tangent(output)
                                                            : Tangent(output.aval()));
    Arrays results;
    for (const Tangent& tangent : pullback.pull(cotangents))
      results.push_back(tangent.instantiate());
    return results;
  });
  return all;
}

Verdict instantiates(const std::string& what, const Jaxpr& named, const Extents& extents,
                     const std::function<Jaxpr()>& trace) {
  const std::string instantiated = print(instantiate(named, extents)), traced = print(trace());
  if (instantiated == traced) return std::nullopt;
  return what + ": instantiating\n" + print(named) + "\ngives\n" + instantiated +
         "\nand tracing gives\n" + traced;
}

// The text of a program, or nothing where sizes make it an error.
std::optional<std::string> text_or_refusal(const std::function<Jaxpr()>& make) {
  try {
    return print(make());
  } catch (const ShapeError&) {
    return std::nullopt;
  } catch (const ValueError&) {
    return std::nullopt;
  }
}

// At sizes drawn at random, which the program may refuse as tracing does: none are special.
Verdict instantiates_anywhere(const Case& one, const Renaming& renaming,
                              const std::vector<Dim>& sizes) {
  std::mt19937 draw(unsigned(one.name.size() * 31 + renaming.avals.size()));
  const Jaxpr named =
      make_jaxpr([&](std::span<const Array> in) { return one.apply(in, renaming.params); },
                 renaming.avals, "law", sizes)
          .jaxpr;
  for (int time = 0; time < 3; ++time) {
    Extents extents = renaming.extents;
    for (auto& [size, extent] : extents) extent = std::int64_t(draw() % 12);
    const Params params = substitute(renaming.params, extents);
    const auto instantiated = text_or_refusal([&] { return instantiate(named, extents); });
    const auto traced = text_or_refusal([&] {
      return make_jaxpr([&](std::span<const Array> in) { return one.apply(in, params); },
                        at_extents(renaming.avals, extents), "law")
          .jaxpr;
    });
    if (instantiated == traced) continue;
    std::string at;
    for (const auto& [size, extent] : extents)
      at += size.to_string() + "=" + extent.to_string() + " ";
    return "f at " + at + ": instantiating\n" + print(named) + "\ngives\n" +
           instantiated.value_or("an error") + "\nand tracing gives\n" +
           traced.value_or("an error");
  }
  return std::nullopt;
}

}  // namespace

Verdict instantiate_is_trace(const Case& one) {
  const std::vector<Renaming> renamings = renamings_of(one);
  const bool differentiates = is_differentiated(one);
  for (const Renaming& renaming : renamings) {
    const std::vector<Aval> numbers = at_extents(renaming.avals, renaming.extents);
    std::vector<Dim> sizes;
    for (const auto& [size, extent] : renaming.extents) sizes.push_back(size);
    const Function named_f = [&](std::span<const Array> inputs) {
      return one.apply(inputs, renaming.params);
    };
    const Function plain_f = one.function();
    const auto named = transforms_of(named_f, renaming.avals, differentiates),
               plain = transforms_of(plain_f, numbers, differentiates);
    try {
      for (std::size_t i = 0; i < named.size(); ++i) {
        const Jaxpr program = make_jaxpr(named[i].second, renaming.avals, "law", sizes).jaxpr;
        if (auto found = instantiates(named[i].first, program, renaming.extents, [&] {
              return make_jaxpr(plain[i].second, numbers, "law").jaxpr;
            }))
          return text_of(renaming) + ", " + *found;
      }
      if (auto found = instantiates_anywhere(one, renaming, sizes))
        return text_of(renaming) + ", " + *found;
      // A batch of named size.
      const Dim b = Dim::size("b");
      const std::vector<std::optional<int>> dims(one.inputs.size(), 0);
      const Jaxpr program = make_jaxpr(named_f, renaming.avals, "law", sizes).jaxpr;
      Extents extents = renaming.extents;
      extents.emplace_back(b, 3);
      if (auto found =
              instantiates("vmap of f", batch_jaxpr(program, b, dims)->jaxpr, extents, [&] {
                return batch_jaxpr(make_jaxpr(plain_f, numbers, "law").jaxpr, 3, dims)->jaxpr;
              }))
        return text_of(renaming) + ", " + *found;
    } catch (const Error& error) {
      return text_of(renaming) + ": " + error.what();
    }
  }
  return std::nullopt;
}

// --- mask ----------------------------------------------------------------------------------------

namespace {

Array zeros_like_padding(const Array& array,
                         const Sizes64& real) {  // the array with its real part zero
  Buffer buffer = Buffer::copy_of(array.buffer().view()),
         zeros = Buffer::empty(array.dtype(), real);
  std::memset(zeros.mutable_data(), 0, std::size_t(zeros.bytes()));
  if (num_elements(real) > 0)
    copy_elements(zeros.view(), buffer.view_as(real, buffer.strides(), 0).view());
  return Array(buffer);
}

}  // namespace

Verdict real_part_and_zeros(const Array& padded, const Array& expected, const std::string& what,
                            double tolerance) {
  const Sizes64 real = expected.shape().to_sizes();
  const Sizes64 shape = padded.shape().to_sizes();
  if (shape.size() != real.size())
    return what + " is " + padded.aval().to_string() + " for " + expected.aval().to_string();
  for (std::size_t i = 0; i < real.size(); ++i)
    if (shape[i] < real[i])
      return what + " is " + padded.aval().to_string() + ", smaller than " +
             expected.aval().to_string();
  if (auto found = difference(leading(padded, real), expected, tolerance))
    return what + ": " + *found;
  for (complex128 value : numbers_of(zeros_like_padding(padded, real)))
    if (value != 0.0) return "the padding of " + what + " is not zero";
  return std::nullopt;
}

double tolerance_of_case(const Arrays& values, const Arrays& expected) {
  double tolerance = derivative_order;
  for (const Arrays* list : {&values, &expected})
    for (const Array& array : *list)
      tolerance = std::max(tolerance, tolerance_of(array.dtype()).value);
  return tolerance;
}

namespace {

// At these sizes, with so much padding, which holds `fill`.
Verdict masked_at(const Case& one, const Renaming& renaming, const Extents& extents,
                  std::int64_t padding, double fill, bool differentiates) {
  Case real = one;
  real.params = substitute(renaming.params, extents);
  Extents bounds;
  flat::MaskOptions options;
  for (const auto& [size, extent] : extents) {
    bounds.emplace_back(size, extent + padding);
    options.sizes.emplace(std::string(size.name()), Array(extent.constant()));
  }
  Arrays arrays;
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    real.inputs[i].aval.shape = substitute(renaming.avals[i].shape, extents);
    options.in_shapes.push_back(Spec(renaming.avals[i]));
  }
  const Arrays values = real.values();
  const Arrays expected = real(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    arrays.push_back(
        padded_to(values[i], substitute(renaming.avals[i].shape, bounds).to_sizes(), fill));
  const Function body = [&](std::span<const Array> inputs) {
    return one.apply(inputs, renaming.params);
  };
  const Function masked = [&](std::span<const Array> inputs) {
    return flat::mask(body, inputs, options);
  };
  const Arrays outputs = masked(arrays);
  const double tolerance = tolerance_of_case(values, expected);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (auto found = real_part_and_zeros(outputs[i], expected.at(i), "result " + std::to_string(i),
                                         tolerance))
      return found;
  if (auto found = difference_in_bits(flat::Jit(masked, "masked")(arrays), outputs))
    return "under jit: " + *found;

  std::vector<bool> wrt;
  for (const Aval& aval : renaming.avals) wrt.push_back(differentiates && is_differentiable(aval));
  if (std::find(wrt.begin(), wrt.end(), true) == wrt.end()) return std::nullopt;
  const flat::Pullback plain = flat::vjp(real.function(), values, wrt),
                       through = flat::vjp(masked, arrays, wrt);
  Tangents small, large;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_differentiable(expected[i].aval())) {
      small.push_back(Tangent(expected[i].aval()));
      large.push_back(Tangent(outputs[i].aval()));
      continue;
    }
    const Array cotangent = normal_like(expected[i].aval(), 40 + unsigned(i));
    small.push_back(cotangent);
    large.push_back(padded_to(cotangent, outputs[i].shape().to_sizes()));
  }
  const Tangents wanted = plain.pull(small), given = through.pull(large);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (auto found = real_part_and_zeros(given.at(i).instantiate(), wanted[i].instantiate(),
                                         "gradient " + std::to_string(i), tolerance))
      return found;
  return std::nullopt;
}

}  // namespace

Verdict mask_ignores_padding(const Case& one) {
  const bool differentiates = is_differentiated(one);
  for (const Renaming& renaming : renamings_of(one)) {
    for (std::int64_t padding : {2, 0}) {
      std::vector<Extents> trials = {renaming.extents};
      // One smaller, where the function is defined there.
      Extents smaller = renaming.extents;
      for (auto& [size, extent] : smaller) extent = extent - Dim(1);
      Case less = one;
      less.params = substitute(renaming.params, smaller);
      bool defined = padding > 0;
      for (std::size_t i = 0; i < one.inputs.size(); ++i) {
        defined = defined && one.inputs[i].values !=
                                 Sample::Input::Values::indices;  // which hold below the extent
        less.inputs[i].aval.shape = substitute(renaming.avals[i].shape, smaller);
        for (Dim dim : less.inputs[i].aval.shape) defined = defined && dim.constant() > 0;
      }
      if (defined) {
        try {
          less(less.values());
          trials.push_back(smaller);
        } catch (const Error&) {
        }
      }
      for (const Extents& extents : trials) {
        std::string where = text_of(renaming) + " at";
        for (const auto& [size, extent] : extents)
          where += " " + size.to_string() + "=" + extent.to_string();
        where += " padded by " + std::to_string(padding) + ": ";
        try {
          // What compares sees NaN and large numbers differently.
          const double fill = extents == renaming.extents ? NAN : 1e30;
          if (auto found = masked_at(one, renaming, extents, padding, fill, differentiates))
            return where + *found;
        } catch (const Error& error) {
          return where + error.what();
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace plait::laws
