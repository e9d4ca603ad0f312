// See planned.h.
// SPDX-License-Identifier: Apache-2.0
#include "run/planned.h"

namespace plait {

Planned::Planned(Plan plan, const Jaxpr& program)
    : plan_(std::move(plan)), host_calls_(host_calls_of(program)), widenings_(widenings(program)) {
  for (const Aval& aval : plan_.inputs) {
    input_shapes_.push_back(in_memory(aval).shape.to_sizes());
    input_dtypes_.push_back(in_memory(aval).dtype);
  }
  is_read_.assign(plan_.inputs.size(), false);
  auto read = [&](const std::vector<PlannedView>& views) {
    for (const PlannedView& planned : views)
      if (planned.segment == Segment::input) is_read_[std::size_t(planned.index)] = true;
  };
  for (const Step& step : plan_.steps) read(step.inputs);
  read(plan_.results);
  find_whole_results();
}

std::vector<bool> Planned::carries_in_place() const {
  std::vector<bool> in_place;
  for (std::size_t i = 0; i < plan_.num_carries; ++i) in_place.push_back(is_in_place(i));
  return in_place;
}

std::int64_t Planned::peak_bytes() const {
  std::int64_t bytes = plan_.arena_bytes;
  for (const auto& storage : plan_.storages)
    if (!storage.donor || storage.is_carry) bytes += storage.bytes;
  return bytes;
}

void Planned::refuse_number(std::size_t inputs) const {
  throw InternalError("an executable of " + std::to_string(plan_.inputs.size()) +
                      " inputs was called with " + std::to_string(inputs));
}

void Planned::refuse_input(std::size_t number, const Buffer& buffer) const {
  throw InternalError("input " + std::to_string(number) + " of an executable is " +
                      Aval{Shape::of(buffer.shape()), buffer.dtype()}.to_string() + " instead of " +
                      plan_.inputs[number].to_string());
}

// Results that fill a storage of their own may be written directly to the caller's memory. The
// others are copied there.
void Planned::find_whole_results() {
  written_as_.assign(plan_.storages.size(), -1);
  is_last_.assign(plan_.results.size(), false);
  std::vector<bool> is_taken(plan_.storages.size(), false);
  for (std::size_t i = plan_.results.size(); i-- > 0;)
    if (const PlannedView& planned = plan_.results[i]; planned.segment == Segment::output) {
      is_last_[i] = !is_taken[std::size_t(planned.index)];
      is_taken[std::size_t(planned.index)] = true;
    }
  for (std::size_t i = 0; i < plan_.results.size(); ++i) {
    const PlannedView& planned = plan_.results[i];
    const bool is_whole =
        planned.segment == Segment::output && planned.byte_offset == 0 && planned.view.is_dense() &&
        written_as_[planned.index] < 0 &&
        planned.view.size() * size_of(planned.view.dtype) == plan_.storages[planned.index].bytes;
    if (is_whole)
      written_as_[planned.index] = int(i);
    else
      copied_.push_back(i);
  }
}

bool Planned::is_in_place(std::size_t carry) const {
  const PlannedView& next = plan_.results[carry];
  if (plan_.inputs[carry].stack > 0 || next.byte_offset != 0 || !next.view.is_dense()) return false;
  if (next.segment == Segment::input) return std::size_t(next.index) == carry;
  if (next.segment != Segment::output || written_as_[next.index] != int(carry)) return false;
  const auto& storage = plan_.storages[next.index];
  return storage.is_carry && std::size_t(*storage.donor) == carry;
}

// The rows of a loop's or a branch's program follow its step, indented.
void Planned::add_rows(const std::string& indent, std::vector<ExplainRow>& rows) const {
  constexpr std::size_t width = 4;  // of "step"
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    std::int64_t bytes = 0;
    std::string types;
    for (const PlannedView& view : step.outputs) {
      bytes += view.view.size() * size_of(view.view.dtype);
      types += (types.empty() ? "" : " ") +
               Aval{Shape::of(view.view.shape), view.view.dtype}.to_string();
    }
    std::string what = step.names;
    if (step.names.find(' ') != std::string::npos) what = "fused: " + what;
    if (const std::string note = step.kernel->note(); !note.empty()) what += "  [" + note + "]";
    if (const auto predicted = step.kernel->prediction()) what += "  predicted " + predicted->text;
    if (!step.refusals.empty()) what += "  (" + step.refusals + ")";
    std::string number = std::to_string(i);
    number.insert(0, width - std::min(width, number.size()), ' ');
    rows.push_back(
        {indent + number, std::string(step.backend), types, std::to_string(bytes), what});
    for (const Step::Body& body : step.bodies) {
      rows.push_back({indent + std::string(width + 1, ' ') + body.label, "", "", "", ""});
      const std::shared_ptr<const Executable> executable = body.executable();
      if (const auto* steps = dynamic_cast<const Planned*>(&executable->current()))
        steps->add_rows(indent + "  ", rows);
    }
  }
}

std::string Planned::explain() const {
  std::vector<ExplainRow> rows{{"step", "backend", "output", "bytes", "equations"}};
  add_rows("", rows);
  std::array<std::size_t, 4> widths{};
  for (const ExplainRow& row : rows)
    for (std::size_t column = 0; column < 4; ++column)
      if (!row[1].empty()) widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const ExplainRow& row : rows) {
    if (row[1].empty()) {  // the label of a body
      text += row[0] + "\n";
      continue;
    }
    for (std::size_t column = 0; column < 4; ++column) {
      const std::string padding(widths[column] - row[column].size(), ' ');
      text += (column == 3 ? padding + row[column] : row[column] + padding) + "  ";
    }
    text += row[4] + "\n";
  }
  if (plan_.input_free_bytes > 0)
    text += "computed once, since no input changes it: " + std::to_string(plan_.input_free_bytes) +
            " bytes\n";
  text += "arena: " + std::to_string(plan_.arena_bytes) +
          " bytes; with outputs: " + std::to_string(peak_bytes()) + " bytes\n";
  for (const HostCallSite& site : host_calls_)
    text += std::string(site.ordered ? "ordered " : "") + "host call: `" + site.name + "`" +
            (site.source ? ", " + site.source.to_string() : "") + "\n";
  for (const Widening& widening : widenings_) text += widening.to_string() + "\n";
  return text + remarks_;
}

}  // namespace plait
