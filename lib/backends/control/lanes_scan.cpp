// Loops over stacks, which hold as many steps as each example took. See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

namespace plait {
namespace {

class LaneScan final : public LaneKernel {
 public:
  LaneScan(const Jaxpr& group, Device device)
      : LaneKernel(group, device),
        scan_(equation().params),
        body_(scan_.body, device,
              concatenate(Flags(scan_.num_carry, true),
                          batched(scan_.num_carry, std::size_t(lanes_.body->num_binders))),
              sizes_) {
    const std::vector<Aval> outputs = scan_.body->output_avals();
    ys_.assign(outputs.begin() + std::ptrdiff_t(scan_.num_carry), outputs.end());
    for (const Aval& aval : ys_) ys_bytes_.push_back(row_bytes(aval));
    if (scan_.flagged) flag_bytes_ = row_bytes(scan_.body->avals[scan_.num_carry]);
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch& launch) const override {
    const Stream& stream = launch.stream;
    std::vector<Buffer> copies;
    std::vector<std::int32_t> live;
    const std::vector<View> operands = collect(inputs, copies, live, stream);
    const std::size_t n = scan_.num_carry;
    for (std::size_t i = 0; i < n; ++i) spread_operand(i, operands[i], outputs[i], stream);
    std::vector<Range> ranges = ranges_of(operands, live);
    std::vector<Stack::Handle> stacks;
    for (const Aval& aval : ys_) {
      stacks.push_back(std::make_shared<Stack>(aval.stack > 0, stream));
      for (const Range& range : ranges) {
        stacks.back()->begin(range.first, range.rows.numbers(),
                             bytes_of(rows_view(aval, range.rows.size())));
        for (std::int64_t step = range.first; step < range.end; ++step) stacks.back()->push();
      }
    }
    Count count;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::size_t which = scan_.reverse ? ranges.size() - 1 - i : i;
      std::vector<Stack::Elements*> ys;
      for (const Stack::Handle& stack : stacks)
        ys.push_back(stack->segments()[which].elements.get());
      run_range(ranges[which], operands, outputs, ys, count, stream);
    }
    for (std::size_t i = 0; i < stacks.size(); ++i)
      *outputs[n + i].as<Stack::Handle>() = std::move(stacks[i]);
  }

 private:
  // Steps [first, end), which these examples take.
  struct Range {
    std::int64_t first, end;
    ActiveRows rows;
  };

  // The steps for which stacks have elements, parted where their rows change.
  std::vector<Range> ranges_of(std::span<const View> operands,
                               std::span<const std::int32_t> live) const {
    std::vector<Stack::Segment> segments;
    std::vector<std::int64_t> bounds;
    const std::size_t end = scan_.num_carry + (scan_.flagged ? 1 : scan_.num_xs);
    for (std::size_t i = scan_.num_carry; i < end; ++i) {
      const auto& stack = *operands[i].as<Stack::Handle>();
      if (!stack || !is_batched(i)) continue;
      for (const Stack::Segment& segment : stack->segments()) {
        segments.push_back(segment);
        bounds.push_back(segment.first);
        bounds.push_back(segment.end());
      }
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    std::vector<bool> takes_part(std::size_t(num_examples_), false);
    for (std::int32_t number : live) takes_part[std::size_t(number)] = true;
    std::vector<Range> ranges;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      if (auto rows = rows_at(bounds[i], segments, takes_part))
        ranges.push_back({bounds[i], bounds[i + 1], std::move(*rows)});
    return ranges;
  }

  // The examples of the segments that hold a step: with the rows of the segment, where it is one.
  std::optional<ActiveRows> rows_at(std::int64_t step, std::span<const Stack::Segment> segments,
                                    const std::vector<bool>& takes_part) const {
    std::vector<bool> seen(std::size_t(num_examples_), false);
    std::vector<std::int32_t> numbers;
    const Stack::Segment* last = nullptr;
    bool is_one = true;
    for (const Stack::Segment& segment : segments) {
      if (step < segment.first || step >= segment.end()) continue;
      is_one &= !last || last->rows == segment.rows;
      last = &segment;
      const ActiveRows rows(segment.rows, num_examples_);
      for (std::int64_t row = 0; row < rows.size(); ++row) {
        const std::int32_t number = rows[row];
        if (number < 0 || seen[std::size_t(number)] || !takes_part[std::size_t(number)]) continue;
        seen[std::size_t(number)] = true;
        numbers.push_back(number);
      }
    }
    if (numbers.empty()) return std::nullopt;
    ActiveRows rows = rows_of(std::move(numbers));
    if (is_one && last->rows && std::int64_t(last->rows->size()) == rows.size())
      return ActiveRows(last->rows, num_examples_);
    return rows;
  }

  void run_range(const Range& range, std::span<const View> operands, std::span<const View> outputs,
                 std::span<Stack::Elements* const> ys, Count& count, const Stream& stream) const {
    const ActiveRows& rows = range.rows;
    const std::size_t n = scan_.num_carry, first_const = n + scan_.num_xs;
    std::vector<Buffer> owned, here, there;
    SharedFlags shared(rows.size(), stream);
    std::vector<char>& live = shared.values;
    for (std::int64_t row = 0; row < rows.size(); ++row) live[std::size_t(row)] = rows[row] >= 0;
    shared.send();
    std::vector<View> in{shared.view()}, out;
    for (std::size_t i = 0; i < n; ++i) {
      here.push_back(rows.gather(outputs[i], example(i), stream));
      there.push_back(make_rows(example(i), rows.size(), stream));
      in.push_back(here.back().placed());
      out.push_back(there.back().placed());
    }
    std::vector<StackReader> xs;
    for (std::size_t i = n; i < first_const; ++i) {
      const Aval& slice = scan_.body->avals[i];
      const Stack::Handle& stack = *operands[i].as<Stack::Handle>();
      xs.push_back(is_batched(i) ? StackReader(stack, slice, rows, stream)
                                 : StackReader(stack, slice, stream));
      in.emplace_back();
    }
    for (std::size_t i = first_const; i < operands.size(); ++i)
      in.push_back(rows_of_operand(i, operands[i], rows, owned, stream));
    for (const Aval& aval : ys_) out.push_back(rows_view(aval, rows.size()));
    const ExampleScope scope(rows.numbers().get(), axes_);
    CompiledBody::Lease body(body_.at(level_for(rows.size())));
    for (std::int64_t taken = range.first; taken < range.end; ++taken) {
      check_interrupts();
      const std::int64_t step = scan_.reverse ? range.end - 1 - (taken - range.first) : taken;
      for (std::size_t i = 0; i < xs.size(); ++i) in[n + 1 + i] = xs[i].at(step);
      for (std::size_t i = 0; i < ys.size(); ++i) out[n + i].data = ys[i]->at(step - range.first);
      if (scan_.flagged) {  // a row whose examples are several takes part where any does
        const View given{in[n + 1].data, DType::bool_, {rows.size() * flag_bytes_}, {1}};
        SharedFlags seen(rows.size() * flag_bytes_, stream);
        download(given, seen.host_view(), stream);
        for (std::int64_t row = 0; row < rows.size(); ++row) {
          const char* const flags = seen.values.data() + row * flag_bytes_;
          live[std::size_t(row)] =
              rows[row] >= 0 &&
              std::any_of(flags, flags + flag_bytes_, [](char flag) { return flag != 0; });
        }
        shared.send();
      }
      count.add(std::count(live.begin(), live.end(), 1), rows.size());
      body.run(in, out, stream);
      keep(live, in, out, stream);
      for (std::size_t i = 0; i < n; ++i) std::swap(in[i + 1].data, out[i].data);
    }
    for (std::size_t i = 0; i < n; ++i)
      rows.scatter(in[i + 1], outputs[i], bytes_of_example(i), stream);
  }

  // Those that do not take a step keep their carry, and have zeros in stacks.
  void keep(const std::vector<char>& live, std::span<const View> in, std::span<const View> out,
            const Stream& stream) const {
    const std::size_t n = scan_.num_carry;
    for (std::size_t row = 0; row < live.size(); ++row) {
      if (live[row]) continue;
      for (std::size_t i = 0; i < n; ++i)
        copy_row(in[i + 1].data, std::int64_t(row), out[i].data, std::int64_t(row),
                 bytes_of_example(i), stream);
      for (std::size_t i = 0; i < ys_.size(); ++i)
        if (const std::int64_t bytes = ys_bytes_[i]; ys_[i].stack == 0 && bytes > 0)
          clear_row(out[n + i].data, std::int64_t(row), bytes, stream);
    }
  }

  const ScanParams scan_;
  const LaneBody body_;
  std::vector<Aval> ys_;
  std::vector<std::int64_t> ys_bytes_;
  std::int64_t flag_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> compile_lanes_scan(const Jaxpr& group, Device device) {
  return std::make_unique<LaneScan>(group, device);
}

}  // namespace plait
