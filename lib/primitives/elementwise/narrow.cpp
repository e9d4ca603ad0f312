// narrow: an integer conversion that is an error where a number does not fit. See narrow.h.
//
//   dtype     of the result, an integer
//   weak      whether the result is weak
//   function  the converting function, for the error
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>

#include <plait/primitives/families.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/guard.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <limits>

#include "primitives/cost.h"
#include "primitives/indexing/indexing.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

void eval_narrow(std::span<const View> inputs, std::span<const View> outputs,
                 const Params& params) {
  const DType to = params.get<DType>("dtype");
  eval_pointwise(cast_p, inputs, outputs, {{"dtype", to}, {"weak", params.flag("weak")}});
  const Buffer copy = inputs[0].is_dense() ? Buffer() : Buffer::copy_of(inputs[0]);
  const View dense = inputs[0].is_dense() ? inputs[0] : copy.view();
  const std::int64_t size = dense.size();
  visit_dtype(dense.dtype, [&](auto from) {
    using From = decltype(from);
    if constexpr (std::is_integral_v<From> && !std::is_same_v<From, bool>) {
      const From* const values = static_cast<const From*>(dense.data);
      visit_dtype(to, [&](auto result) {
        using To = decltype(result);
        if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
          const From* const found =
              std::find_if(values, values + size, [](From x) { return !std::in_range<To>(x); });
          if (found != values + size)
            throw_unfit(params.text("function"), std::to_string(*found), to);
        }
      });
    }
  });
}

// The integers of a dtype, as far as an index holds them: the largest uint64 is beyond every index.
loops::Range range_of(DType dtype) {
  return visit_dtype(dtype, [](auto type) -> loops::Range {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return {std::int64_t(std::numeric_limits<T>::min()),
              std::in_range<std::int64_t>(std::numeric_limits<T>::max())
                  ? std::int64_t(std::numeric_limits<T>::max())
                  : std::numeric_limits<std::int64_t>::max()};
    throw InternalError("narrow: not to integers");
  });
}

loops::Tensors emit_narrow(loops::Writer& w, const Equation& equation,
                           std::span<const loops::Tensor> inputs) {
  const DType to = equation.params.get<DType>("dtype");
  if (inputs[0].aval.dtype == DType::uint64) w.refuse("`narrow` of uint64");
  const auto [low, high] = range_of(to);
  const auto raise = [=, name = equation.params.text("function")](std::int64_t integer) {
    throw_unfit(name, std::to_string(integer), to);
  };
  const auto converted = [=, &w, source = equation.source](loops::Value element) {
    return w.compute(cast_p, {{"dtype", to}, {"weak", false}}, {element}, source);
  };
  const Aval result{inputs[0].aval.shape, to};
  if (inputs[0].aval.shape.num_elements().constant() <= loops::few) {
    loops::Values elements = w.elements_of(inputs[0]);
    for (loops::Value& element : elements) {
      w.check(w.index(element), low, high, raise, equation.source);
      element = converted(element);
    }
    return {{result, std::move(elements)}};
  }
  loops::Tensor from = inputs[0];
  constexpr double most_work = 16;  // that is done for the check and for the element
  if (!from.formula || from.formula->work > most_work) from = w.in_memory(from);
  w.check_each(
      result.shape, [&](std::span<const loops::Index> at) { return w.index(w.element(from, at)); },
      low, high, raise, equation.source);
  loops::Formula formula;
  formula.element = [=, &w](std::span<const loops::Index> at) {
    return converted(w.element(from, at));
  };
  formula.reads = loops::Writer::reads_of(from);
  formula.work = 1;
  if (from.formula) {
    formula.work += from.formula->work;
    formula.cuts = from.formula->cuts;
  }
  return {w.computed(result, std::move(formula))};
}

}  // namespace

void throw_unfit(std::string_view function, const std::string& integer, DType dtype) {
  throw ValueError((function.empty() ? std::string() : std::string(function) + ": ") +
                       "the integer " + integer + " does not fit " + std::string(name_of(dtype)),
                   "convert the array to a wider dtype with astype, or the number to this one");
}

bool holds_all(DType dtype, DType numbers) {
  if (dtype == numbers) return true;
  if (is_signed_integer(numbers) && is_unsigned_integer(dtype)) return false;
  return is_signed_integer(dtype) == is_signed_integer(numbers) ? size_of(dtype) >= size_of(numbers)
                                                                : size_of(dtype) > size_of(numbers);
}

constinit const Primitive narrow_p{"narrow"};
static const auto narrow_def =
    define(narrow_p,
           "Integers as another dtype of integers: a ValueError where one does not fit it.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const DType to = params.get<DType>("dtype");
          if (!is_integer(inputs[0].dtype) || !is_integer(to))
            throw DtypeError("narrow: from " + std::string(name_of(inputs[0].dtype)) + " to " +
                                 std::string(name_of(to)),
                             "give integers; cast converts other dtypes");
          return std::vector<Aval>{{inputs[0].shape, to, params.flag("weak")}};
        })
        .rule<Eval>(eval_narrow)
        .rule<Emit>(emit_narrow)
        .rule<Fold>([](std::span<const Literal> inputs, const Params& params) {
          const Literal& x = inputs[0];
          const Literal there = cast(x, params.get<DType>("dtype"), params.flag("weak"));
          if (!plait::is_representable(Array::literal({x.dtype, true, x.integer, 0, 0}),
                                       there.dtype))
            return std::optional<std::vector<Literal>>();  // an error at run time
          return std::optional(std::vector<Literal>{there});
        })
        .rule<Cost>(cost::for_each_operand(1))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may raise")
        .refuse<Motion>("it may raise")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>(batch_elementwise(narrow_p))
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          if (!sizes.checked)  // some examples may be padding
            return Arrays{lax::convert_element_type(inputs[0].padded, params.get<DType>("dtype"),
                                                    params.flag("weak"))};
          const Array zero = indexing::literal_like(inputs[0].padded, 0);
          return Arrays(bind(narrow_p, {fill_padding(inputs[0], zero, sizes)}, params));
        })
        .rule<Guard>({{},
                      [](const Array& live, std::span<const Array> inputs, const Params& params) {
                        const Array& x = inputs[0];
                        const Array zeros = lax::full(x.shape(), 0, x.dtype());
                        return Arrays(bind(narrow_p,
                                           {lax::select(broadcast_to(live, x.shape()), x, zeros)},
                                           params));
                      },
                      true})
        .rule<Samples>([] {
          const Params params{
              {"dtype", DType::int8}, {"weak", false}, {"function", std::string("add")}};
          return std::vector<Sample>{
              {{{{{2, 3}, DType::int64}, Sample::Input::Values::indices, 9}}, params},
              {{{{{}, DType::int64}, Sample::Input::Values::indices, 9}}, params}};
        });

Array as_weak_as(const Array& like, const Array& made) {
  if (made.dtype() != like.dtype()) return made;
  return lax::convert_element_type(made, made.dtype(), like.aval().weak);
}

DType default_dtype(const Array& x) {
  if (!x.aval().weak || is_bool(x.dtype())) return x.dtype();
  return is_complex(x.dtype())    ? default_complex()
         : is_floating(x.dtype()) ? default_float()
                                  : default_int();
}

DType index_dtype(const Array& indices) {
  if (!indices.aval().weak) return indices.dtype();
  const bool is_small = indices.as_literal() && plait::is_representable(indices, default_int());
  return is_small ? default_int() : indices.dtype();
}

Array narrowed(Operand operand, DType dtype, bool weak, std::string_view function) {
  const DType from = operand.dtype();
  if (is_integer(from) && (dtype == DType::int4 || dtype == DType::uint4) && operand.is_concrete())
    for (const std::int64_t number : operand.to_vector<std::int64_t>())
      if (cast(Literal{DType::int64, false, number, 0, 0}, dtype, false).integer != number)
        throw_unfit(function, std::to_string(number), dtype);
  if (!is_integer(from) || !is_integer(dtype) || holds_all(dtype, from))
    return lax::convert_element_type(operand, dtype, weak);
  if (operand.as_literal()) {
    require_fits(operand, dtype, function);
    return lax::convert_element_type(operand, dtype, weak);
  }
  return bind(narrow_p, {operand},
              {{"dtype", dtype}, {"weak", weak}, {"function", std::string(function)}});
}

Array yielded(Operand operand, DType dtype, bool weak, std::string_view function) {
  if (!operand.aval().weak) return lax::convert_element_type(operand, dtype, weak);
  return narrowed(std::move(operand), dtype, weak, function);
}

}  // namespace plait
