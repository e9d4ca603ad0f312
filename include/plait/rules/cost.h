// The cost of equations: arithmetic, and memory read and written, as if each ran alone.
//
//   flops   1 for each element of an elementwise result, whatever the function (an exponential
//           too) and the dtype; 0 for conversions, movement and indexing. 1 for each element that
//           a reduction, an accumulating scatter or a window reads. 2 for each multiply-add of
//           matmul, convolution (except on padding and holes) and factorizations, whose counts are
//           those of Golub and Van Loan, "Matrix Computations"; 8 for complex numbers. 1 for each
//           comparison of a sort: n log2 n
//   bytes   every distinct operand once, and every result; for indexing, only what it reads
//
// Bodies count once for each run: that of a scan `length` times, that of lanes for each example.
// Where the number depends on data, `known` is false and an assumption counts: one step of a while,
// the branch of a cond with the most arithmetic, the bounds of masked, nothing for a call of the
// host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait {

struct Work {
  double flops = 0, bytes_read = 0, bytes_written = 0;
  bool known = true;  // false: what depends on data is counted as stated above

  double bytes() const { return bytes_read + bytes_written; }
  Work& operator+=(const Work& other);
  Work times(double count) const;
  bool operator==(const Work&) const = default;
};

// The cost that a primitive states. work holds the bytes of the operands and results on entry. The
// rule adds flops, and changes the bytes where not all are read. All sizes are numbers. A primitive
// without such a rule costs what its bodies or its decomposition cost; else its cost is not known.
struct Cost {
  static constexpr auto name = "cost";
  using Rule = std::function<void(Work& work, std::span<const Aval> inputs,
                                  std::span<const Aval> outputs, const Params& params)>;
  static RuleTable<Cost>& table();
};

// The work of one equation, including its bodies, and of a whole program. ValueError where a size
// is named: instantiate the program first.
Work work_of(const JaxprData& jaxpr, const Equation& equation);
Work work_of(const Jaxpr& jaxpr);

// A body that an equation runs, over the sizes of the enclosing program.
struct BodyRun {
  Jaxpr body;
  double times = 1;  // for branches: 1 for the one with the most arithmetic, 0 for the others
  bool known = true;
  bool is_loop = false;            // runs are sequential
  std::vector<int> operands = {};  // as in Body (rules/bodies.h)
};
// The bodies of an equation (rules/bodies.h) with the numbers of their runs.
std::vector<BodyRun> bodies_run(const Equation& equation);

// A rough estimate of the time of a call on backends that compile at once, in nanoseconds. A loop
// of unknown length counts as `unknown` steps. 0 for a program with named sizes.
double estimated_time(const Jaxpr& program, double unknown = 1);
double estimated_time(const Jaxpr& program, const Equation& equation, double unknown = 1);

// For Cost rules: a size as a number (ValueError where it is named), and the number of elements.
double value_of(Dim size);
double elements_of(const Shape& shape);
double elements_of(const Aval& aval);
// Bytes of a value; 0 for a stack, whose height is not known.
double bytes_of(const Aval& aval);

}  // namespace plait
