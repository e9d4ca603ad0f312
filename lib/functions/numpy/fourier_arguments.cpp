// See fourier_arguments.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/numpy/fourier_arguments.h"

#include "functions/functions.h"

namespace plait {

fourier_arguments::Factor fourier_arguments::factor_of(const char* function, const Norm& norm) {
  if (!norm || *norm == "backward") return Factor::backward;
  if (*norm == "ortho") return Factor::ortho;
  if (*norm == "forward") return Factor::forward;
  throw ValueError(std::string(function) + ": norm is '" + *norm + "'",
                   "choose 'backward', 'ortho' or 'forward'");
}
fourier_arguments::Factor fourier_arguments::opposite(Factor factor) {
  return factor == Factor::ortho ? factor
                                 : (factor == Factor::forward ? Factor::backward : Factor::forward);
}

Array fourier_arguments::fitted(const Array& x, int axis, Dim size) {
  const Dim present = x.shape(axis);
  if (present == size) return x;
  if (less_equal(size, present).value_or(false)) return functions::part(x, axis, 0, size);
  std::vector<lax::Padding> padding(std::size_t(x.ndim()));
  padding[std::size_t(axis)].high = size - present;
  return lax::pad(x, Array::literal(0, x.dtype()), padding);
}

std::vector<std::pair<int, fourier_arguments::Points>> fourier_arguments::axes_of(
    const char* function, const Array& a, const Points2& s, const Axes& axes) {
  std::vector<int> chosen;
  const int count = s ? int(s->size()) : a.ndim();
  if (!axes.is_none())
    chosen = axes.list();
  else
    for (int i = 0; i < count; ++i) chosen.push_back(a.ndim() - count + i);
  if (count > a.ndim() && axes.is_none())
    throw ValueError(std::string(function) + ": " + std::to_string(count) +
                         " sizes for an array of " + std::to_string(a.ndim()) + " axes",
                     "give at most one for each axis");
  if (s && s->size() != chosen.size())
    throw ValueError(std::string(function) + ": " + std::to_string(s->size()) + " sizes for " +
                         std::to_string(chosen.size()) + " axes",
                     "give a size for each axis");
  if (chosen.empty() && a.ndim() > 0)
    throw ValueError(std::string(function) + ": there are no axes", "give at least one");
  std::vector<std::pair<int, Points>> all;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    all.emplace_back(normalize_axis(chosen[i], a.ndim(), function), s ? Points((*s)[i]) : Points());
  return all;
}

}  // namespace plait
