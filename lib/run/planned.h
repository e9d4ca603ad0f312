// What the executables of every device share: a plan, what its inputs must be, where its results
// lie, and its text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/host_call.h>
#include <plait/primitives/widening.h>

#include <array>

#include "run/executable.h"

namespace plait {

class Planned : public PlannedExecutable {
 public:
  std::vector<bool> carries_in_place() const override;
  const std::vector<Aval>& outputs() const override { return plan_.outputs; }
  std::int64_t arena_bytes() const override { return plan_.arena_bytes; }
  std::int64_t peak_bytes() const override;
  std::string explain() const override;
  bool has_host_calls() const override { return !host_calls_.empty(); }
  void remark(const std::string& text) override { remarks_ += text + "\n"; }

 protected:
  using Plan = compile_passes::Plan;
  using PlannedView = compile_passes::PlannedView;
  using Step = compile_passes::Step;
  using Segment = PlannedView::Segment;

  Planned(Plan plan, const Jaxpr& program);

  // Inline: a call of a small program takes some 100 ns.
  void check_inputs(std::span<const Buffer* const> inputs, std::size_t num_outputs) const {
    if (inputs.size() != plan_.inputs.size() || num_outputs != plan_.outputs.size()) [[unlikely]]
      refuse_number(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]->dtype() != input_dtypes_[i] || !(inputs[i]->shape() == input_shapes_[i]))
          [[unlikely]]
        refuse_input(i, *inputs[i]);
  }
  // Whether the caller alone owns the memory, and the buffer covers all of it.
  static bool can_donate(const Buffer& buffer) {
    return buffer.storage().is_unique() && !buffer.storage().is_foreign() &&
           buffer.placed().data == buffer.storage().data() && buffer.placed().is_dense();
  }
  // Whether a step writes the next value of a carry into the carry's memory, or it stays as it is.
  bool is_in_place(std::size_t carry) const;

  const Plan plan_;
  std::vector<bool> is_read_;        // by input
  std::vector<int> written_as_;      // by storage: the output that fills it, or -1
  std::vector<bool> is_last_;        // by result: whether no later one lies in its storage
  std::vector<std::size_t> copied_;  // outputs that do not fill their storage

 private:
  using ExplainRow = std::array<std::string, 5>;  // a row of the table, by column

  void find_whole_results();
  void add_rows(const std::string& indent, std::vector<ExplainRow>& rows) const;
  [[noreturn]] void refuse_number(std::size_t inputs) const;
  [[noreturn]] void refuse_input(std::size_t number, const Buffer& buffer) const;

  const std::vector<HostCallSite> host_calls_;
  std::string remarks_;
  const std::vector<Widening> widenings_;
  std::vector<Sizes64> input_shapes_;
  std::vector<DType> input_dtypes_;
};

}  // namespace plait
