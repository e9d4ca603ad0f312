// A part of an application, in a library of its own: Eigen on OpenMP's threads, no plait.
// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Dense>

double largest_residual(int size) {
  const Eigen::MatrixXd a = Eigen::MatrixXd::Random(size, size);
  const Eigen::MatrixXd b = a + size * Eigen::MatrixXd::Identity(size, size);
  const Eigen::MatrixXd x = Eigen::PartialPivLU<Eigen::MatrixXd>(b).solve(a);
  double largest = (b * x - a).cwiseAbs().maxCoeff();
  for (int column = 0; column < size; ++column)  // other loops than those of whole products
    largest = std::max(largest, (b * x.col(column) - a.col(column)).cwiseAbs().maxCoeff());
  return largest;
}
