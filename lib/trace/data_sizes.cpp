// Sizes from data of the programs being traced. See data_sizes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/data_sizes.h>
#include <plait/trace/sizes.h>
#include <plait/trace/staged.h>

#include <algorithm>

#include "trace/size_scope.h"

namespace plait {
namespace {

thread_local DataSizes* innermost = nullptr;
thread_local DataSizedScope* open_scope = nullptr;
thread_local std::uint64_t differed = 0;  // the id of a trace
DataSizeCloser installed_closer = nullptr;

constexpr const char* how_to_fix =
    "say how many elements with size=, use where(condition, x, y), which keeps the shape, or keep "
    "this code outside";

}  // namespace

void set_data_size_closer(DataSizeCloser closer) { installed_closer = closer; }

bool sizes_differed(const Trace& trace) { return std::exchange(differed, 0) == trace.id(); }

DataSizedScope::DataSizedScope() : outer_(std::exchange(open_scope, this)) {}
DataSizedScope::~DataSizedScope() { open_scope = outer_; }

DataSizes::DataSizes(JaxprTrace& trace)
    : trace_(trace),
      outer_(std::exchange(innermost, this)),
      scope_(std::exchange(open_scope, nullptr)) {}
DataSizes::~DataSizes() {
  innermost = outer_;
  open_scope = scope_;
}

Dim size_from_data(const Array& count, Dim bound, std::string_view function) {
  if (count.known_buffer()) return Dim(count.item<std::int64_t>());
  const std::string problem =
      std::string(function) + ": the shape of the result depends on values, which ";
  Array value = count;
  for (Trace* trace = Trace::current(); trace; trace = trace->parent()) {
    if (dynamic_cast<LinearTrace*>(trace)) continue;
    if (dynamic_cast<JaxprTrace*>(trace)) {
      for (DataSizes* sizes = innermost; sizes; sizes = sizes->outer_)
        if (&sizes->trace_ == trace) return sizes->size_of(value, bound);
      break;
    }
    if (!trace->owns(value)) continue;
    const std::optional<Array> beneath = trace->known(*value.node());
    if (!beneath) {
      differed = trace->id();
      throw TracerError(problem + "differ between the examples of " + std::string(trace->name()),
                        how_to_fix);
    }
    value = *beneath;
  }
  throw TracerError(problem + "are not known while the function is traced", how_to_fix);
}

std::int64_t known_size(const Array& count, std::string_view function, const std::string& fix) {
  if (!count.known_buffer())
    throw TracerError(std::string(function) +
                          ": the size of the result depends on values, which are not known while "
                          "the function is traced, and nothing bounds it",
                      fix);
  return count.item<std::int64_t>();
}

Dim DataSizes::size_of(const Array& count, Dim bound) {
  const auto program_of = [&](const Array& array) {
    return trace_.close(std::span(&array, 1)).jaxpr;
  };
  const Jaxpr program = program_of(count);
  for (Made& made : made_) {
    if (!(made.size.bound == bound)) continue;
    // Effects, and arrays captured since, belong to both.
    const bool has_more = program->num_binders != made.program->num_binders || program->effectful;
    if (has_more) made.program = program_of(made.count);
    if (made.program == program) return made.size.size;
  }
  std::vector<Dim> taken(sizes_in_scope().begin(), sizes_in_scope().end());
  collect_sizes(Shape{bound}, taken);
  Dim size = Dim::size("k");
  for (int number = 2; std::find(taken.begin(), taken.end(), size) != taken.end(); ++number)
    size = Dim::size("k" + std::to_string(number));
  add_to_size_scope(size);
  made_.push_back({{size, bound}, count, program});
  return size;
}

DataSizedOutputs DataSizes::sized_outputs(std::span<const Array> outputs, Arrays& tell) const {
  auto is_from_data = [&](Dim dim) {
    std::vector<Dim> used;
    collect_sizes(Shape{dim}, used);
    return std::any_of(used.begin(), used.end(), [&](Dim size) {
      return std::any_of(made_.begin(), made_.end(),
                         [&](const Made& made) { return made.size.size == size; });
    });
  };
  DataSizedOutputs result;
  std::vector<Dim> told;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::vector<int>& axes = result.axes.emplace_back();
    for (Dim dim : outputs[i].shape()) {
      if (!is_from_data(dim)) {
        axes.push_back(DataSizedOutputs::fixed);
        continue;
      }
      if (!scope_)
        throw ShapeError(std::string(trace_.name()) + ": output " + std::to_string(i) +
                             " has shape (" + outputs[i].shape().to_string() + "), and the size " +
                             dim.to_string() + " depends on values",
                         "reduce it, or give size= where it was made: nonzero(mask, size=8)");
      const auto place = std::find(told.begin(), told.end(), dim);
      axes.push_back(int(place - told.begin()));
      if (place == told.end()) {
        told.push_back(dim);
        tell.push_back(bind("dim_as_value", Arrays{}, {{"dim", dim}}));
      }
    }
  }
  result.num_sizes = told.size();
  return result;
}

Traced DataSizes::close(std::span<const Array> outputs, std::vector<Dim> sizes) {
  if (scope_) scope_->outputs_ = nullptr;
  if (made_.empty()) return trace_.close(outputs, std::move(sizes));
  Arrays all(outputs.begin(), outputs.end());
  DataSizedOutputs sized = sized_outputs(outputs, all);
  if (sized.num_sizes > 0)
    scope_->outputs_ = std::make_shared<const DataSizedOutputs>(std::move(sized));
  std::vector<DataSize> made;
  for (const Made& one : made_) {
    made.push_back(one.size);
    all.push_back(one.count);
  }
  Traced traced = trace_.close(all, std::move(sizes));
  if (!installed_closer) throw InternalError("nothing closes programs with sizes from data");
  traced.jaxpr = installed_closer(traced.jaxpr, made);
  return traced;
}

}  // namespace plait
