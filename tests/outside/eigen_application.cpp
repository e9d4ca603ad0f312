// An application with Eigen of its own, compiled for any x86-64, beside plait, whose Eigen is
// compiled for AVX2: both compute the same, in turn, and each with its own code.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>

#include <Eigen/Dense>
#include <cstdio>

#if defined(__AVX__) || defined(__FMA__)
#error "plait asks its users for options of the compiler"
#endif

namespace jnp = plait::numpy;
using plait::Array;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double largest_residual(int size);  // eigen_part.cpp

namespace {

Array to_plait(const RowMajor& x) {
  plait::View view{const_cast<double*>(x.data()), plait::DType::float64, {x.rows(), x.cols()}, {}};
  view.strides = plait::dense_strides(view.shape);
  return Array(plait::Buffer::copy_of(view));
}

double difference(const Array& x, const RowMajor& expected) {
  const plait::Buffer dense = x.buffer().dense();
  const auto* data = static_cast<const double*>(dense.data());
  return (Eigen::Map<const RowMajor>(data, expected.rows(), expected.cols()) - expected)
      .cwiseAbs()
      .maxCoeff();
}

double compare(int size) {
  const RowMajor a = RowMajor::Random(size, size);
  const RowMajor s = a * a.transpose() + size * RowMajor::Identity(size, size);
  const Array x = to_plait(a), y = to_plait(s);
  double worst = difference(jnp::matmul(x, x), a * a);
  worst = std::max(worst, difference(jnp::linalg::solve(y, x), s.llt().solve(a)));
  worst = std::max(worst, difference(jnp::linalg::inv(y), s.inverse()));
  const Eigen::SelfAdjointEigenSolver<RowMajor> solver(s);
  const RowMajor values = solver.eigenvalues();
  return std::max(worst, difference(jnp::linalg::eigvalsh(y), values) / values(size - 1));
}

}  // namespace

int main() {
  double worst = 0;
  for (int size = 7; size < 200; size += 31)
    worst = std::max({worst, largest_residual(size), compare(size)});
  std::printf("largest difference %s 1e-9: %g\n", worst < 1e-9 ? "below" : "above", worst);
  return worst < 1e-9 ? 0 : 1;
}
