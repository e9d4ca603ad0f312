// bench_arm: scalar code, in lines "name value". The place and the orientation of the hand of an
// arm of seven joints, and their Jacobian, through an executable of plait and by hand: the same
// template over numbers of C++, and over numbers with seven derivatives (forward mode).
// Parameters: of the Franka Emika Panda, modified Denavit-Hartenberg, in metres.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "clock.h"
#include "right.h"

using namespace plait;

namespace {

constexpr int joints = 7, results = 12;
constexpr double lengths[joints] = {0.333, 0, 0.316, 0, 0.384, 0, 0.107},
                 offsets[joints] = {0, 0, 0, 0.0825, -0.0825, 0, 0.088};
constexpr int quarters[joints] = {0, -1, 1, 1, -1, 1, 1};  // quarter turns between the axes

// A number with its derivatives by the joints.
struct Dual {
  double value = 0;
  std::array<double, joints> by{};
};
Dual operator+(const Dual& a, const Dual& b) {
  Dual sum{a.value + b.value, {}};
  for (int i = 0; i < joints; ++i) sum.by[i] = a.by[i] + b.by[i];
  return sum;
}
Dual operator*(const Dual& a, const Dual& b) {
  Dual product{a.value * b.value, {}};
  for (int i = 0; i < joints; ++i) product.by[i] = a.by[i] * b.value + a.value * b.by[i];
  return product;
}
Dual operator*(const Dual& a, double b) {
  Dual product{a.value * b, {}};
  for (int i = 0; i < joints; ++i) product.by[i] = a.by[i] * b;
  return product;
}
Dual operator+(const Dual& a, double b) {
  Dual sum = a;
  sum.value += b;
  return sum;
}
Dual scaled(const Dual& a, double value, double slope) {
  Dual result{value, {}};
  for (int i = 0; i < joints; ++i) result.by[i] = a.by[i] * slope;
  return result;
}
Dual sin(const Dual& a) { return scaled(a, std::sin(a.value), std::cos(a.value)); }
Dual cos(const Dual& a) { return scaled(a, std::cos(a.value), -std::sin(a.value)); }
double sin(double a) { return std::sin(a); }
double cos(double a) { return std::cos(a); }
Array sin(const Array& a) { return lax::sin(a); }
Array cos(const Array& a) { return lax::cos(a); }

// Of the hand: its place, then the rows of its rotation.
template <class T>
std::array<T, results> hand_of(const std::array<T, joints>& angles) {
  std::array<std::array<T, 4>, 3> at;  // the frame so far; that of the first joint is simple
  for (int joint = 0; joint < joints; ++joint) {
    const T c = cos(angles[std::size_t(joint)]), s = sin(angles[std::size_t(joint)]);
    const double ca = quarters[joint] == 0, sa = quarters[joint];
    if (joint == 0) {
      const T zero = c * 0.0;
      at = {{{c, s * -1.0, zero, zero},
             {s, c, zero, zero},
             {zero, zero, zero + 1.0, zero + lengths[0]}}};
      continue;
    }
    for (auto& row : at) {
      const T along = row[1] * ca + row[2] * sa, across = row[2] * ca + row[1] * -sa;
      row[3] = row[3] + row[0] * offsets[joint] + across * lengths[joint];
      const T x = row[0];
      row[0] = x * c + along * s;
      row[1] = along * c + x * (s * -1.0);
      row[2] = across;
    }
  }
  std::array<T, results> all;
  for (std::size_t i = 0; i < 3; ++i) {
    all[i] = at[i][3];
    for (std::size_t k = 0; k < 3; ++k) all[3 + 3 * i + k] = at[i][k];
  }
  return all;
}

Array hand(const Array& q) {
  std::array<Array, joints> angles;
  for (int joint = 0; joint < joints; ++joint) angles[std::size_t(joint)] = q[joint];
  const std::array<Array, results> all = hand_of(angles);
  return numpy::stack(Arrays(all.begin(), all.end()));
}

constexpr int rounds = 200, calls = 1000;

using Angles = std::array<double, joints>;
// Which no compiler looks through.
__attribute__((noinline)) void by_hand(const Angles& angles, double* out) {
  const auto all = hand_of(angles);
  std::copy(all.begin(), all.end(), out);
}
__attribute__((noinline)) void slopes_by_hand(const Angles& angles, double* out) {
  std::array<Dual, joints> with_slopes;
  for (std::size_t i = 0; i < joints; ++i) {
    with_slopes[i].value = angles[i];
    with_slopes[i].by[i] = 1;
  }
  const auto all = hand_of(with_slopes);
  for (std::size_t i = 0; i < results; ++i)
    std::copy(all[i].by.begin(), all[i].by.end(), out + i * joints);
}

template <class F>
void compare(const char* name, const std::function<Array(const Array&)>& f, const Angles& angles,
             std::size_t size, const F& written) {
  Buffer input = Buffer::empty(DType::float64, {joints});
  std::copy(angles.begin(), angles.end(), static_cast<double*>(input.mutable_data()));
  const Jaxpr program = make_jaxpr(f, Array(input)).jaxpr;
  const auto executable = compile(program);
  const Buffer* inputs[] = {&input};
  Buffer output;
  executable->run(inputs, std::span<Buffer>(&output, 1));
  std::vector<double> right(size);
  written(angles, right.data());
  const Array all = numpy::ravel(Array(output));
  for (std::size_t i = 0; i < size; ++i)
    require_near(all[int(i)].item<double>(), right[i], 1e-12, name);
  std::printf("%s_equations %zu\n", name, program->equations.size());
  std::printf("%s_ns %.1f\n", name, nanoseconds(rounds, calls, [&] {
                executable->run(inputs, std::span<Buffer>(&output, 1));
              }));
  const auto session = executable->current().open();
  const View from = input.view(), to = output.view();
  std::printf("%s_session_ns %.1f\n", name, nanoseconds(rounds, calls, [&] {
                session->run(std::span(&from, 1), std::span(&to, 1));
              }));
  std::printf("%s_by_hand_ns %.1f\n", name,
              nanoseconds(rounds, calls, [&] { written(angles, right.data()); }));
}

}  // namespace

int main() {
  const Angles angles{0.1, -0.4, 0.7, -1.9, 0.3, 1.6, 0.8};
  compare("arm", hand, angles, results, by_hand);
  compare(
      "jacobian", [](const Array& q) { return jacfwd(hand)(q); }, angles, results * joints,
      slopes_by_hand);
}
