// What equations cost: arithmetic, and memory read and written, as if each ran alone.
//
//   flops   one for each element of an elementwise result, whatever the function (an exponential
//           too) and the dtype; none for conversions, movement and indexing. One for each element
//           that a reduction, an accumulating scatter or a window reads. 2 for each multiply and
//           add of matmul, convolution (but those with padding and holes) and factorizations, whose
//           counts are those of Golub and Van Loan, "Matrix Computations"; 8 of complex numbers.
//           One for each comparison of a sort: n log2 n
//   bytes   every distinct operand once, and every result; of indexing, only what it reads
//
// Bodies count as often as they run: a scan's as often as it is long, lanes for each example. Where
// that depends on data, `known` is false: of a while one step counts, of a cond the branch with
// most arithmetic, of masked what its bounds allow, of a call of the host nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules.h>

namespace plait {

struct Work {
  double flops = 0, bytes_read = 0, bytes_written = 0;
  bool known = true;  // false: what data decide is counted as said above

  double bytes() const { return bytes_read + bytes_written; }
  Work& operator+=(const Work& other);
  Work times(double count) const;
  bool operator==(const Work&) const = default;
};

// What a primitive says of its own cost. work comes with the bytes of the operands and results, and
// leaves with flops, and other bytes where not all of these are read. All sizes are numbers. A
// primitive without such a rule is elementwise (where it has Pointwise), or costs what it
// decomposes to; else it counts as not known.
struct Cost {
  static constexpr auto name = "cost";
  using Rule = std::function<void(Work& work, std::span<const Aval> inputs,
                                  std::span<const Aval> outputs, const Params& params)>;
  static RuleTable<Cost>& table();
};

// One equation, with what the bodies in it do; all of a program. ValueError where a size is named:
// instantiate the program first.
Work work_of(const JaxprData& jaxpr, const Equation& equation);
Work work_of(const Jaxpr& jaxpr);

// A body that an equation runs, in the names of the program around it.
struct BodyRun {
  Jaxpr body;
  double times = 1;  // of branches: 1 for the one with most arithmetic, 0 for the others
  bool known = true;
  // For each input of the body, which input of the equation it is, or a slice of; -1 for what a
  // loop carries.
  std::vector<int> operands = {};
};
// None of an equation that is no call, control flow, lanes, masked or linear solve.
std::vector<BodyRun> bodies_run(const Equation& equation);

// Bytes that a value takes; of a stack none, for nobody knows how high it grows.
double bytes_of(const Aval& aval);

}  // namespace plait
