// See compared.h. It holds no cases.
// SPDX-License-Identifier: Apache-2.0
#include "compared.h"

#include <doctest/doctest.h>
#include <plait/inspect/tolerance.h>
#include <plait/trace/devices.h>

#include <cmath>

namespace plait::cuda {

Array numbers(const Shape& shape, DType dtype) {
  const Array counted = lax::iota(DType::float32, {shape.num_elements()}, 0);
  const Array real = is_integer(dtype) ? lax::sin(counted * 0.7) * 100 : lax::sin(counted * 0.7);
  return lax::reshape(real, shape).astype(dtype);
}

std::string compared(const std::function<Array(std::span<const Array>)>& f, const Arrays& inputs,
                     const std::function<void()>& compiled) {
  const Function function = [&](std::span<const Array> in) { return Arrays{f(in)}; };
  std::vector<Aval> avals;
  for (const Array& input : inputs) avals.push_back(input.aval());
  const Jaxpr program = make_jaxpr(function, avals).jaxpr;
  std::vector<Buffer> here, there;
  for (const Array& input : inputs) {
    here.push_back(input.buffer());
    there.push_back(device_put(input, first_device()).buffer());
  }
  const auto executable = compile(program, {.device = first_device()});
  compiled();
  const Array given = Array(executable->run(there)[0].on_host()),
              expected = Array(compile(program)->run(here)[0]);
  const double tolerance = laws::tolerance_of(expected.dtype()).value;
  const std::vector<complex128> ours = given.to_vector<complex128>(),
                                theirs = expected.to_vector<complex128>();
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const bool is_equal = std::abs(ours[i] - theirs[i]) <= tolerance * (1 + std::abs(theirs[i])) ||
                          (std::isnan(ours[i].real()) && std::isnan(theirs[i].real()));
    REQUIRE(is_equal);
  }
  return executable->explain();
}

}  // namespace plait::cuda
