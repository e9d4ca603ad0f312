// NumPy's polynomials, finite differences, histograms and covariances. Part of numpy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::numpy {

// --- Polynomials, as vectors of coefficients, highest power first --------------------------------

Array poly(Operand seq_of_zeros);
Array roots(Operand p, bool strip_zeros = true);  // complex
Array polyadd(Operand a1, Operand a2);
Array polysub(Operand a1, Operand a2);
Array polymul(Operand a1, Operand a2, bool trim_leading_zeros = false);
// Quotient and remainder, which keeps u's size unless zeros are trimmed.
std::pair<Array, Array> polydiv(Operand u, Operand v, bool trim_leading_zeros = false);
Array polyder(Operand p, int m = 1);
Array polyint(Operand p, int m = 1, const OptionalArray& k = {});
// The polynomial of a degree that is nearest to y at x, and how well it fits.
struct PolynomialFit {
  Array p, residuals, rank, singular_values;
  double rcond;
  Array covariance;
};
PolynomialFit polynomial_fit(Operand x, Operand y, Dim deg, std::optional<double> rcond = {},
                             const OptionalArray& w = {}, bool cov = false);
Array polyfit(Operand x, Operand y, Dim deg, std::optional<double> rcond = {},
              const OptionalArray& w = {});
// Without zeros in front ("f"), behind ("b") or at both ends; the value must be known.
Array trim_zeros(Operand filt, const std::string& trim = "fb", const Axes& axis = {});

// --- Differences ---------------------------------------------------------------------------------

// varargs: nothing, one distance for all axes, or a distance or a vector of places for each.
std::vector<Array> gradient(Operand f, Operands varargs = {},
                            const std::optional<std::vector<int>>& axis = {}, int edge_order = 1);
Array ediff1d(Operand ary, const OptionalArray& to_end = {}, const OptionalArray& to_begin = {});
Array unwrap(Operand p, const OptionalArray& discont = {}, int axis = -1,
             Operand period = 6.283185307179586);

// --- Histograms ----------------------------------------------------------------------------------

Array histogram_bin_edges(Operand a, Operand bins = 10, const std::optional<Arrays>& range = {},
                          const OptionalArray& weights = {});
// bins and range: one for all columns of the sample, or one for each.
std::pair<Array, std::vector<Array>> histogramdd(Operand sample, Operands bins = {10},
                                                 const std::optional<Arrays>& range = {},
                                                 const OptionalArray& weights = {},
                                                 bool density = false);
std::tuple<Array, Array, Array> histogram2d(Operand x, Operand y, Operands bins = {10},
                                            const std::optional<Arrays>& range = {},
                                            const OptionalArray& weights = {},
                                            bool density = false);

// --- Contraction and covariance ------------------------------------------------------------------

// The numbers of the operands that einsum contracts in each step, among those that are left.
std::vector<std::vector<int>> einsum_path(const std::string& subscripts, Operands operands);

// The covariances of variables, which are rows of observations (columns without rowvar), of m and
// then of y. fweights say how often each observation was made, aweights how much it counts. ddof is
// 1 by default, and 0 with bias.
Array cov(Operand m, const OptionalArray& y, bool rowvar = true, bool bias = false,
          std::optional<double> ddof = {}, const OptionalArray& fweights = {},
          const OptionalArray& aweights = {}, OptionalDType dtype = {});
Array corrcoef(Operand x, const OptionalArray& y, bool rowvar = true, OptionalDType dtype = {});
// interp on a circle: places and points are taken modulo the period.
Array interp(Operand x, Operand xp, Operand fp, const OptionalArray& left,
             const OptionalArray& right, const OptionalArray& period);

}  // namespace plait::numpy
