// Programs written down: what text of a jaxpr says, as calls. Code that plait::code writes is made
// of these where plait::lax has no function; passes that make equations use them too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// A scalar literal as jaxprs write it: literal("2.0:f32"), literal("1:i32*"). ValueError says what
// is wrong with the text.
Array literal(std::string_view text);

// The primitive of this name; ValueError when there is none.
const Primitive& primitive_named(std::string_view name);
// Applies it: bind("reduce", {x}, {{"kind", std::string("sum")}, {"axes", Shape{0}}}).
Results bind(std::string_view primitive, const Arrays& inputs, const Params& params = {});

// The program of a function of arrays whose types are given as a jaxpr writes them, with its named
// sizes and constraints before and after: staged("n ; a:f32[n,3] b:f32[] where n<=4", f). It takes
// the sizes, then the arrays. ValueError says what is wrong with the header, or that the function
// uses arrays that it was not given.
using SizedFunction =
    std::function<Arrays(std::span<const Dim> sizes, std::span<const Array> inputs)>;
Jaxpr staged(std::string_view header, const SizedFunction& function);

}  // namespace plait
