// plait::scipy::fft: discrete cosine transforms under SciPy's names. The other transforms are those
// of numpy::fft.
//
// Of the second kind, type 2, X[k] = 2 sum_j x[j] cos(pi k (2 j + 1) / (2 n)), and of the third,
// type 3, its inverse but for the factor 2 n; idct is the inverse of dct. norm "ortho" makes them
// orthogonal. n, s and axes are those of numpy::fft. Of real numbers; integers are float32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy_fft.h>

namespace plait::scipy::fft {

Array dct(Operand x, int type = 2, const std::optional<Dim>& n = {}, int axis = -1,
          const std::optional<std::string>& norm = {});
Array idct(Operand x, int type = 2, const std::optional<Dim>& n = {}, int axis = -1,
           const std::optional<std::string>& norm = {});
Array dctn(Operand x, int type = 2, const std::optional<Shape>& s = {}, const Axes& axes = {},
           const std::optional<std::string>& norm = {});
Array idctn(Operand x, int type = 2, const std::optional<Shape>& s = {}, const Axes& axes = {},
            const std::optional<std::string>& norm = {});

}  // namespace plait::scipy::fft
