// Sizes that a program computes from its data: how many elements of a mask are true.
//
// NOTE: [sizes from data] While a function is traced, such a size is a named size of the program,
// and what has that size is recorded as for any named size. When the trace ends, the equations that
// depend on it become the body of one `masked` equation, whose operand is the size's value: what
// has this size is padded to its bound, and no rule but those of `masked` has to know. Results of
// such a size leave the program padded, with their sizes as further results, and jit cuts them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

#include <memory>

namespace plait {

// The size whose value is count, an integer from 0 to bound: a number where the value is known,
// else a named size of the innermost program being traced. Counts that are computed alike give one
// size. TracerError, which names the function that needs it, where there is no such program, or
// examples of a batch differ in the size.
Dim size_from_data(const Array& count, Dim bound, std::string_view function);

// The number that count says, where nothing bounds the size. TracerError with this fix where its
// value is not known.
std::int64_t known_size(const Array& count, std::string_view function, const std::string& fix);

// Whether a size was asked for on this thread, since this was last asked, of which the examples of
// this trace have different values. vmap then traces its function first.
bool sizes_differed(const Trace& trace);

// Outputs of a program of which some have sizes from data. These are padded, and the sizes are
// further outputs of the program: integers, after the others.
struct DataSizedOutputs {
  static constexpr int fixed = -1;
  std::vector<std::vector<int>> axes;  // by output and axis: the number of its size, or fixed
  std::size_t num_sizes = 0;
};
// The results without padding; as they are where outputs is null.
Arrays cut_to_sizes(const DataSizedOutputs* outputs, Arrays results, std::string_view function);

// In its scope, on this thread, functions that make_jaxpr traces, but not those that are traced
// within them, may have such outputs. Elsewhere they are a ShapeError.
class DataSizedScope {
 public:
  DataSizedScope();
  ~DataSizedScope();
  DataSizedScope(const DataSizedScope&) = delete;
  // Those of the function that was traced last; null where no output is of such a size.
  std::shared_ptr<const DataSizedOutputs> outputs() const { return outputs_; }

 private:
  friend class DataSizes;
  std::shared_ptr<const DataSizedOutputs> outputs_;
  DataSizedScope* outer_;
};

struct DataSize {
  Dim size, bound;
};
// Gives a program whose last outputs are the values of such sizes, int32, without these outputs and
// sizes. Set by the transforms.
using DataSizeCloser = Jaxpr (*)(const Jaxpr& program, std::span<const DataSize> sizes);
void set_data_size_closer(DataSizeCloser closer);

// The sizes from data of a program that make_jaxpr traces.
class DataSizes {
 public:
  explicit DataSizes(JaxprTrace& trace);
  ~DataSizes();
  DataSizes(const DataSizes&) = delete;
  // Ends the trace.
  Traced close(std::span<const Array> outputs, std::vector<Dim> sizes);

 private:
  friend Dim size_from_data(const Array& count, Dim bound, std::string_view function);
  struct Made {
    DataSize size;
    Array count;
    Jaxpr program;  // that computes count
  };
  Dim size_of(const Array& count, Dim bound);
  // The size of each axis of the outputs, and the arrays that tell these sizes.
  DataSizedOutputs sized_outputs(std::span<const Array> outputs, Arrays& tell) const;

  JaxprTrace& trace_;
  std::vector<Made> made_;
  DataSizes* outer_;
  DataSizedScope* scope_;  // that the outputs are for; hidden from what is traced within
};

}  // namespace plait
