// See traffic.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/traffic.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;
using loops::Index;

constexpr double line = 64;           // bytes that move together
constexpr double misses_at_once = 8;  // that a core waits for

void add_scaled(Index& sum, const Index& index, std::int64_t by) {
  sum.offset += index.offset * by;
  for (const Place::Term& term : index.terms) {
    const auto same = std::find_if(sum.terms.begin(), sum.terms.end(),
                                   [&](const Place::Term& t) { return t.index == term.index; });
    if (same == sum.terms.end())
      sum.terms.push_back({term.index, term.stride * by});
    else
      same->stride += term.stride * by;
  }
  std::erase_if(sum.terms, [](const Place::Term& term) { return term.stride == 0; });
}

}  // namespace

Traffic::Traffic(const LoopProgram& program, const Block& block, const Machine& machine)
    : program_(program), machine_(machine), loops_of_(program.dtypes.size(), -1) {
  for (const auto& [value, literal] : program.literals)
    if (is_integer(literal.dtype)) literals_.emplace(value, literal.integer);
  visit(block, -1);
  find_bytes_of_loops();
  for (std::size_t i = 0; i < accesses_.size(); ++i)
    if (!is_repeated(i)) times_[accesses_[i].statement] += time_of(accesses_[i]);
}

double Traffic::time_of(const Statement& access) const {
  const auto found = times_.find(&access);
  return found == times_.end() ? 0 : found->second;
}

double Traffic::latency_of(int memory) const {
  const double bytes = bytes_of(memory);
  for (const Machine::Level& level : machine_.levels)
    if (bytes <= level.bytes) return level.latency;
  return machine_.levels.back().latency;
}

// --- Forms ---------------------------------------------------------------------------------------

Index Traffic::form_of(Value value) const {
  if (const auto literal = literals_.find(value); literal != literals_.end())
    return {literal->second, {}};
  const auto form = forms_.find(value);
  return form == forms_.end() ? Index{0, {{value, 1}}} : form->second;
}

Index Traffic::form_of(const Place& place) const {
  Index sum{place.offset, {}};
  for (const Place::Term& term : place.terms) add_scaled(sum, form_of(term.index), term.stride);
  return sum;
}

const Statement* Traffic::counted_by(Value value) const {
  const auto counter = counters_.find(value);
  return counter == counters_.end() ? nullptr : loops_[std::size_t(counter->second.loop)].statement;
}
std::int64_t Traffic::growth_of(Value value) const { return counters_.at(value).growth; }

bool Traffic::is_computed(const Place& place) const {
  const Index form = form_of(place);
  return std::any_of(form.terms.begin(), form.terms.end(), [&](const Place::Term& term) {
    return !counters_.contains(term.index) && loops_of_[std::size_t(term.index)] >= 0;
  });
}

void Traffic::find_form(const Statement& s) {
  if (!is_integer(program_.dtypes[std::size_t(s.value)])) return;
  const Primitive& by = *s.primitive;
  if (by == cast_p && is_integer(program_.dtypes[std::size_t(s.operands[0])])) {
    forms_[s.value] = form_of(s.operands[0]);
  } else if (by == add_p || by == sub_p) {
    Index sum = form_of(s.operands[0]);
    add_scaled(sum, form_of(s.operands[1]), by == add_p ? 1 : -1);
    forms_[s.value] = std::move(sum);
  } else if (by == mul_p) {
    for (const int literal : {0, 1})
      if (const auto known = literals_.find(s.operands[std::size_t(literal)]);
          known != literals_.end()) {
        Index product;
        add_scaled(product, form_of(s.operands[std::size_t(1 - literal)]), known->second);
        forms_[s.value] = std::move(product);
        return;
      }
  }
}

// How much an integer that a loop carries grows at each step; 0 where it may be anything.
std::int64_t Traffic::growth_of(const Statement::Carry& carry, const Block& block) const {
  if (!is_integer(program_.dtypes[std::size_t(carry.value)])) return 0;
  const auto next = std::find_if(block.begin(), block.end(), [&](const Statement& s) {
    return s.kind == Kind::compute && s.value == carry.next;
  });
  if (next == block.end() || *next->primitive != add_p) return 0;
  for (const int literal : {0, 1})
    if (next->operands[std::size_t(1 - literal)] == carry.value)
      if (const auto known = literals_.find(next->operands[std::size_t(literal)]);
          known != literals_.end())
        return known->second;
  return 0;
}

void Traffic::visit(const Block& block, int loop) {
  for (const Statement& s : block) {
    if (s.value >= 0) define(s.value, loop);
    switch (s.kind) {
      case Kind::compute:
        find_form(s);
        break;
      case Kind::load:
      case Kind::store:
        add_access(s, s.place, loop, s.kind == Kind::store, {});
        break;
      case Kind::copy: {
        std::vector<Dim> to, from;
        for (std::size_t axis = 0; axis < s.shape.size(); ++axis) {
          to.push_back({double(s.shape[axis]), s.strides[axis]});
          from.push_back({double(s.shape[axis]), s.source_strides[axis]});
        }
        add_access(s, s.place, loop, true, to);
        add_access(s, s.source_place, loop, false, from);
        break;
      }
      case Kind::repeat:
      case Kind::combine:
      case Kind::loop:
        visit_loop(s, loop);
        break;
      case Kind::branch:
        for (const Statement::Carry& carry : s.carries) define(carry.value, loop);
        for (const Block& alternative : s.blocks) visit(alternative, loop);
        break;
      case Kind::call:
        add_call(s, loop);
        break;
      case Kind::check:
        break;
    }
  }
}

void Traffic::visit_loop(const Statement& s, int loop) {
  const int own = int(loops_.size());
  const std::span<const int> outer = around(loop);
  std::vector<int> path(outer.begin(), outer.end());
  path.push_back(own);
  loops_.push_back({&s, s.kind == Kind::loop ? usual_steps : double(s.steps), std::move(path)});
  const Value counter = s.kind == Kind::combine  ? s.counter
                        : s.kind == Kind::repeat ? s.value
                                                 : Value(-1);
  if (counter >= 0) {
    define(counter, own);
    counters_[counter] = {own, 1};
  }
  for (const Statement::Carry& carry : s.carries) {
    define(carry.value, own);
    define(carry.last, loop);
    const std::int64_t growth = growth_of(carry, s.blocks.back());
    if (growth == 0) continue;
    if (counter < 0) {
      counters_[carry.value] = {own, growth};
      continue;
    }
    Index form = form_of(carry.first);
    add_scaled(form, {0, {{counter, 1}}}, growth);
    forms_[carry.value] = std::move(form);
  }
  for (const Block& block : s.blocks) visit(block, own);
}

// --- Accesses ------------------------------------------------------------------------------------

void Traffic::add_access(const Statement& s, const Place& place, int loop, bool is_write,
                         const std::vector<Dim>& moved) {
  Access access{&s, place.memory, loop, is_write, {}};
  const Index form = form_of(place);
  const std::span<const int> loops = around(loop);
  for (const int each : loops) access.dims.push_back({loops_[std::size_t(each)].steps, 0});
  for (const Place::Term& term : form.terms) {
    const auto counter = counters_.find(term.index);
    const int varies_in =
        counter == counters_.end() ? loops_of_[std::size_t(term.index)] : counter->second.loop;
    const auto depth = std::find(loops.begin(), loops.end(), varies_in) - loops.begin();
    if (depth == std::ptrdiff_t(loops.size())) continue;  // fixed
    if (counter == counters_.end())
      access.num_computed = std::max(access.num_computed, int(depth) + 1);
    else
      access.dims[std::size_t(depth)].stride += term.stride * counter->second.growth;
  }
  for (std::size_t i = 0; i + 1 < loops.size(); ++i)
    if (loops_[std::size_t(loops[i])].statement->is_parallel) access.lanes_of = int(i);
  access.dims.insert(access.dims.end(), moved.begin(), moved.end());
  accesses_.push_back(std::move(access));
}

void Traffic::add_call(const Statement& s, int loop) {
  std::vector<Aval> avals;
  for (const Aval& aval : s.call->program->input_avals()) avals.push_back(aval);
  for (const Aval& aval : s.call->program->output_avals()) avals.push_back(aval);
  for (std::size_t i = 0; i < s.places.size(); ++i) {
    const bool is_result = i >= s.call->strides.size();
    const Sizes64 sizes = avals[i].shape.to_sizes();
    const Sizes64 strides = is_result ? dense_strides(sizes) : s.call->strides[i];
    std::vector<Dim> dims;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      dims.push_back({double(sizes[axis]), strides[axis]});
    add_access(s, s.places[i], loop, is_result, dims);
  }
}

double Traffic::bytes_of(int memory) const {
  const Memory& all = program_.memories[std::size_t(memory)];
  return double(all.size * size_of(all.dtype));
}

// What it reads or writes in one run of the loop that is `first` of those around it: in each of the
// lanes, where those are the steps of an outer one.
double Traffic::bytes_of(const Access& access, std::size_t first, Bytes which) const {
  const auto element = double(size_of(program_.memories[std::size_t(access.memory)].dtype));
  double anywhere = 1, elements = 1, span = 1;
  double nearest = std::numeric_limits<double>::infinity();  // in bytes
  const auto add = [&](const Dim& dim, bool is_computed) {
    if (is_computed) {
      anywhere *= dim.steps;
    } else if (dim.stride != 0 && dim.steps > 1) {
      elements *= dim.steps;
      span += double(std::abs(dim.stride)) * (dim.steps - 1);
      nearest = std::min(nearest, double(std::abs(dim.stride)) * element);
    }
  };
  for (std::size_t i = first; i < access.dims.size(); ++i)
    add(access.dims[i], int(i) < access.num_computed);
  if (const int outer = access.lanes_of; outer >= 0 && int(first) > outer)
    add({lanes_of(access), access.dims[std::size_t(outer)].stride}, outer < access.num_computed);
  double of_element = std::min(nearest, line);
  if (which == Bytes::held && nearest > line && nearest < 1e9) {
    constexpr std::int64_t sets = 4096;  // bytes after which the sets of a first cache begin again
    of_element = std::max(line, double(std::gcd(std::int64_t(nearest), sets)));
  }
  double bytes = std::max(std::min(elements * of_element, span * element), element);
  if (int(first) < access.num_computed) bytes = anywhere * std::max(bytes, line);
  return std::min(bytes, bytes_of(access.memory));
}

double Traffic::lanes_of(const Access& access) const {
  const Dim& outer = access.dims[std::size_t(access.lanes_of)];
  return std::min(outer.steps,
                  line / double(size_of(program_.memories[std::size_t(access.memory)].dtype)));
}

// Accesses of one loop to one memory lie beside each other; what several loops reach may be apart.
void Traffic::find_bytes_of_loops() {
  // Of the loops from `depth` on, in the one at depth - 1.
  const auto inside = [&](int loop, std::size_t depth) {
    std::map<std::pair<int, int>, double> most;  // by memory and the innermost loop
    for (const Access& access : accesses_) {
      const std::span<const int> loops = around(access.loop);
      if (loop >= 0 && std::find(loops.begin(), loops.end(), loop) == loops.end()) continue;
      double& bytes = most[{access.memory, access.loop}];
      bytes = std::max(bytes, bytes_of(access, depth, Bytes::held));
    }
    std::map<int, double> by_memory;
    for (const auto& [key, bytes] : most) by_memory[key.first] += bytes;
    double sum = 0;
    for (const auto& [memory, bytes] : by_memory) sum += std::min(bytes, bytes_of(memory));
    return sum;
  };
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    const std::size_t depth = loops_[i].path.size();
    loops_[i].bytes = inside(int(i), depth - 1);
    loops_[i].step_bytes = inside(int(i), depth);
  }
  bytes_ = inside(-1, 0);
}

// Whether another access of the same loop has brought the same lines.
bool Traffic::is_repeated(std::size_t access) const {
  const Access& a = accesses_[access];
  for (std::size_t i = access; i-- > 0;) {
    const Access& b = accesses_[i];
    if (b.loop != a.loop) return false;
    const auto is_alike = [](const Dim& x, const Dim& y) {
      return x.steps == y.steps && x.stride == y.stride;
    };
    if (b.memory == a.memory && b.is_write >= a.is_write && b.num_computed == a.num_computed &&
        std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(), is_alike))
      return true;
  }
  return false;
}

// Of a run of the access, bytes that a cache of this size does not hold. What a loop goes through
// in one run is there once if it fits; what all steps of a loop share is there from step to step if
// one step fits.
double Traffic::bytes_beyond(const Access& access, double cache) const {
  if (bytes_ <= cache) return 0;
  const std::span<const int> loops = around(access.loop);
  double times = 1, runs = 1;  // that bytes of inner loops are brought, and all of them
  std::size_t depth = 0;
  for (; depth + 1 < loops.size(); ++depth) {  // the innermost loop brings each line once
    const Loop& loop = loops_[std::size_t(loops[depth])];
    if (loop.bytes <= cache) break;
    const Dim& dim = access.dims[depth];
    const bool is_shared = dim.stride == 0 && int(depth) >= access.num_computed;
    runs *= std::max(dim.steps, 1.0);
    if (!is_shared || loop.step_bytes > cache) times *= std::max(dim.steps, 1.0);
  }
  const double bytes = bytes_of(access, depth);
  if (access.lanes_of >= 0 && int(depth) > access.lanes_of) times /= lanes_of(access);
  for (std::size_t i = depth; i < loops.size(); ++i) runs *= std::max(access.dims[i].steps, 1.0);
  return bytes * times / runs;
}

// Whether each step goes where nothing has brought its line in advance.
bool Traffic::is_scattered(const Access& access) const {
  constexpr double foreseen = 1024;  // bytes from step to step: a quarter of a page
  const std::span<const int> loops = around(access.loop);
  if (loops.empty()) return false;
  if (access.num_computed == int(loops.size())) return true;
  const auto distance = [&](std::size_t dim) {
    const Memory& memory = program_.memories[std::size_t(access.memory)];
    return double(std::abs(access.dims[dim].stride) * size_of(memory.dtype));
  };
  const bool has_neighbours =
      access.lanes_of >= 0 && distance(std::size_t(access.lanes_of)) <= line;
  return !has_neighbours && distance(loops.size() - 1) >= foreseen;
}

double Traffic::time_of(const Access& access) const {
  const auto& levels = machine_.levels;
  double time = 0, left = bytes_beyond(access, levels[0].bytes);
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const double further =
        i + 1 < levels.size() ? std::min(bytes_beyond(access, levels[i].bytes), left) : 0;
    double of_byte = 1 / (access.is_write ? levels[i].written : levels[i].read);
    if (is_scattered(access))
      of_byte = std::max(of_byte, levels[i].latency / misses_at_once / line);
    time += (left - further) * of_byte;
    left = further;
  }
  return time;
}

}  // namespace plait::codegen
