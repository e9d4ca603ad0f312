// Programs as calls that correspond to the text of a jaxpr. Generated code (plait::code) uses these
// where plait::lax has no function; so do passes that make equations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// A scalar literal as jaxprs write it: literal("2.0:f32"), literal("1:i32*"). ValueError for
// malformed text.
Array literal(std::string_view text);

// The primitive of this name; ValueError when there is none.
const Primitive& primitive_named(std::string_view name);
// Applies it: bind("reduce", {x}, {{"kind", std::string("sum")}, {"axes", Shape{0}}}).
Results bind(std::string_view primitive, const Arrays& inputs, const Params& params = {});

// The program of a function of arrays whose types are given in jaxpr notation, with named sizes
// before and constraints after: staged("n ; a:f32[n,3] b:f32[] where n<=4", f). f takes the sizes,
// then the arrays. ValueError for a malformed header, or a function that uses other arrays.
using SizedFunction =
    std::function<Arrays(std::span<const Dim> sizes, std::span<const Array> inputs)>;
Jaxpr staged(std::string_view header, const SizedFunction& function);

}  // namespace plait
