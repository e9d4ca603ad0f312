// conv as loops: every element of the result is a sum of products over the features of its group
// and the places of its window, whatever the layouts. Padding and holes are terms that are zero.
// SPDX-License-Identifier: Apache-2.0
#include "conv.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

class ConvWriter {
 public:
  ConvWriter(loops::Writer& w, const Conv& conv, std::span<const loops::Tensor> inputs)
      : conv_(conv),
        lhs_(w.in_memory(inputs[0])),
        rhs_(w.in_memory(inputs[1])),
        dtype_(compute_dtype(inputs[0].aval.dtype, conv.dtype)) {
    if (dtype_ == DType::uint64) dtype_ = conv.dtype;  // which wraps alike
    features_ = rhs_.aval.shape[conv.dimensions.rhs_spec[1]].constant();
    const std::int64_t groups = conv.groups().constant();
    batch_ = lhs_.aval.shape[conv.dimensions.lhs_spec[0]].constant() / conv.batch_groups.constant();
    out_features_ = rhs_.aval.shape[conv.dimensions.rhs_spec[0]].constant() / groups;
    // What lies side by side in memory counts fastest.
    features_first_ = lhs_.strides[std::size_t(conv.dimensions.lhs_spec[1])] != 1;
    sizes_ = conv.windows.window.to_sizes();
    sizes_.insert(features_first_ ? 0 : sizes_.size(), features_);
  }

  loops::Tensor emit() const {
    const auto& [lhs_spec, rhs_spec, out_spec] = conv_.dimensions;
    Shape shape(lhs_.aval.rank(), 0);
    shape[out_spec[0]] = batch_;
    shape[out_spec[1]] = rhs_.aval.shape[rhs_spec[0]];
    for (int i = 0; i + 2 < lhs_.aval.rank(); ++i)
      shape[out_spec[std::size_t(i) + 2]] =
          num_windows(lhs_.aval.shape[lhs_spec[std::size_t(i) + 2]], conv_.windows, i);
    const loops::Tensor result = make(shape, conv_.dtype);
    const std::int64_t count = num_elements(sizes_);
    for_all(shape, [&](const Indices& at) {
      const Indices in_order = in_spec_order(at);
      put(result, at,
          count == 0 ? literal(0, dtype_) : sum_of_products(dtype_, count, [&](const Index& term) {
            return factors(in_order, term);
          }));
    });
    return result;
  }

 private:
  Indices in_spec_order(const Indices& at) const {
    Indices ordered;
    for (const int axis : conv_.dimensions.out_spec) ordered.push_back(at[std::size_t(axis)]);
    return ordered;
  }

  std::array<Number, 2> factors(const Indices& out, const Index& term) const {
    const auto& [lhs_spec, rhs_spec, out_spec] = conv_.dimensions;
    Indices places = digits_of(term, sizes_);
    const auto feature_at = features_first_ ? places.begin() : places.end() - 1;
    const Index feature = *feature_at;
    places.erase(feature_at);
    Indices of_lhs(lhs_spec.size()), of_rhs(rhs_spec.size());
    of_lhs[std::size_t(lhs_spec[0])] = out[0];
    of_lhs[std::size_t(lhs_spec[1])] = feature;
    of_rhs[std::size_t(rhs_spec[0])] = out[1];
    of_rhs[std::size_t(rhs_spec[1])] = feature;
    if (!(conv_.groups() == Dim(1))) {
      const Index group = index_of(number_of(out[1]) / integer(out_features_));
      const bool is_of_batch = conv_.feature_groups == Dim(1);
      Index& grouped = of_lhs[std::size_t(lhs_spec[is_of_batch ? 0 : 1])];
      grouped = sum_of(grouped, times(group, is_of_batch ? batch_ : features_));
    }
    std::optional<Number> is_element;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto axis = std::size_t(lhs_spec[i + 2]);
      const WindowRead read = read_of(conv_.windows, int(i), lhs_.aval.shape[int(axis)].constant(),
                                      out[i + 2], places[i]);
      of_lhs[axis] = read.element;
      of_rhs[std::size_t(rhs_spec[i + 2])] = places[i];
      require_too(is_element, read.is_element);
    }
    Number x = cast(get(lhs_, of_lhs), dtype_), y = cast(get(rhs_, of_rhs), dtype_);
    if (is_element) x = select(*is_element, x, literal(0, dtype_));
    return {x, y};
  }

  const Conv& conv_;
  const loops::Tensor lhs_, rhs_;
  DType dtype_;
  std::int64_t features_, batch_, out_features_;  // of a group
  bool features_first_;
  Sizes64 sizes_;  // of the features and the window, as terms count them
};

}  // namespace

loops::Tensors emit_conv(loops::Writer& writer, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  require_no_kernels(writer);
  const Writing writing(writer, equation.source);
  const Conv conv(equation.params, inputs[1].aval.shape);
  return {ConvWriter(writer, conv, inputs).emit()};
}

}  // namespace plait
