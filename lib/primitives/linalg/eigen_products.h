// Eigen's matrix products, compiled in eigen_products.cpp alone. Eigen's decompositions use them,
// and each file with a decomposition would compile them again, which takes longer than the rest of
// it. Included before Eigen's decompositions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include <complex>

#ifndef PLAIT_PRODUCTS
#define PLAIT_PRODUCTS extern
#endif

namespace Eigen::internal {

template <class T, bool conjugate_lhs = false, bool conjugate_rhs = false>
using Products =
    gebp_kernel<T, T, Index, blas_data_mapper<T, Index, ColMajor, Unaligned, 1>,
                gebp_traits<T, T>::mr, gebp_traits<T, T>::nr, conjugate_lhs, conjugate_rhs>;

}
