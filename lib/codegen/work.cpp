// See work.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/work.h"

#include <plait/primitives/primitives.h>
#include <plait/primitives/special.h>
#include <plait/rules/motion.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "codegen/lanes.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr double scalar = 0.5, byte_in_lanes = 0.02;

bool is_division(const Primitive& primitive) {
  return primitive == div_p || primitive == rem_p || primitive == sqrt_p;
}
// In additions.
double weight_of(const Primitive& primitive) {
  constexpr double division = 4, function = 12;
  return is_division(primitive) ? division : is_function(primitive) ? function : 1;
}

constexpr double usual_steps = 16;  // of a while

class Reader {
 public:
  explicit Reader(const LoopProgram& program) : reads(program.memories.size()) {
    visit(program.body, 1);
  }

  std::vector<Reads> reads;

 private:
  using Counter = std::pair<Value, std::int64_t>;  // and its steps
  static constexpr std::int64_t farthest = 4;      // that lanes find in a few vectors

  void visit(const Block& block, double times) {
    for (const Statement& s : block) {
      if (s.kind == Kind::load) {
        add(s.place, times);
        if (combination_ && std::abs(stride_of(s.place, combination_->counter)) > farthest)
          reads[std::size_t(s.place.memory)].jumping += times;
      }
      if (s.kind == Kind::copy) add_copy(s, times);
      if (s.kind == Kind::call)
        for (const Place& place : s.places) reads[std::size_t(place.memory)] = unknown;
      const bool counts = s.kind == Kind::repeat || s.kind == Kind::combine;
      if (counts) counters_.emplace_back(s.kind == Kind::repeat ? s.value : s.counter, s.steps);
      const double steps = counts ? double(s.steps) : s.kind == Kind::loop ? usual_steps : 1;
      const Statement* const outer = combination_;
      if (s.is_parallel) is_in_lanes_ = true;
      if (s.kind == Kind::combine && !is_in_lanes_) combination_ = &s;
      for (const Block& inner : s.blocks) visit(inner, times * steps);
      combination_ = outer;
      if (s.is_parallel) is_in_lanes_ = false;
      if (counts) counters_.pop_back();
    }
  }
  // Its axes are loops in each other.
  void add_copy(const Statement& copy, double times) {
    const std::size_t before = counters_.size();
    Place place = copy.source_place;
    for (std::size_t axis = 0; axis < copy.shape.size(); ++axis) {
      const Value counter = -2 - Value(axis);
      counters_.emplace_back(counter, copy.shape[axis]);
      if (copy.source_strides[axis] != 0)
        place.terms.push_back({counter, copy.source_strides[axis]});
      times *= double(copy.shape[axis]);
    }
    add(place, times);
    counters_.resize(before);
  }
  void add(const Place& place, double times) {
    Reads& of_memory = reads[std::size_t(place.memory)];
    of_memory.elements += times;
    const auto nearest = std::min_element(place.terms.begin(), place.terms.end(),
                                          [](const Place::Term& a, const Place::Term& b) {
                                            return std::abs(a.stride) < std::abs(b.stride);
                                          });
    if (nearest == place.terms.end()) return;
    double between = 1;
    for (auto counter = counters_.rbegin();
         counter != counters_.rend() && counter->first != nearest->index; ++counter)
      if (std::any_of(place.terms.begin(), place.terms.end(),
                      [&](const Place::Term& term) { return term.index == counter->first; }))
        between *= double(counter->second);
    of_memory.between = std::max(of_memory.between, between);
  }

  static constexpr Reads unknown{std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::infinity()};
  std::vector<Counter> counters_;           // of the loops around
  const Statement* combination_ = nullptr;  // around, whose steps are lanes
  bool is_in_lanes_ = false;
};

// Instructions, by what is written for each statement in as many lanes.
class Code {
 public:
  Code(const LoopProgram& program, int vector_bytes)
      : program_(program), vector_bytes_(vector_bytes), has_lanes_(find_lanes(program)) {}

  // counter: of the loop whose steps are lanes.
  double of(const Block& block, int lanes = 1, Value counter = -1) const {
    double sum = 0;
    for (const Statement& s : block) sum += of(s, lanes, counter);
    return sum;
  }

 private:
  double of(const Statement& s, int lanes, Value counter) const {
    constexpr double loop = 8, copy = 24;
    switch (s.kind) {
      case Kind::compute:
        return instructions_of(*s.primitive) / 2 * registers_of(s.value, lanes);
      case Kind::load:
      case Kind::store: {
        constexpr double of_lane = 4;  // its place, the access, and to or from a vector
        const bool is_apart =
            std::any_of(s.place.terms.begin(), s.place.terms.end(), [&](const Place::Term& term) {
              return term.index != counter && has_lanes_[std::size_t(term.index)];
            });
        return lanes > 1 && is_apart ? of_lane * lanes : 1 + double(s.place.terms.size());
      }
      case Kind::repeat:
        if (!s.is_parallel || lanes > 1) return loop + of(s.blocks[0], lanes, counter);
        return of_lanes(s, num_lanes(program_, s, vector_bytes_), s.value);
      case Kind::combine:
        if (lanes > 1 || s.is_in_order) return loop + of(s.blocks[0], lanes, counter);
        return of_lanes(s, num_lanes_of_combination(program_, s), s.counter);
      case Kind::copy:
        return copy;
      default: {  // the test of a loop in lanes is written twice
        double sum = loop;
        for (const Block& block : s.blocks) sum += of(block, lanes, counter);
        if (s.kind == Kind::loop && lanes > 1) sum += of(s.blocks[0], lanes, counter);
        return sum;
      }
    }
  }
  // Steps that do not fill the lanes are written once more.
  double of_lanes(const Statement& s, int lanes, Value counter) const {
    const bool has_rest = s.steps > lanes && s.steps % lanes != 0;
    return 8 + of(s.blocks[0], lanes, counter) * (has_rest ? 2 : 1);
  }
  double registers_of(Value value, int lanes) const {
    if (!has_lanes_[std::size_t(value)]) return 1;
    return std::ceil(double(lanes) * double(size_of(program_.dtypes[std::size_t(value)])) /
                     vector_bytes_);
  }

  const LoopProgram& program_;
  const int vector_bytes_;
  const std::vector<bool> has_lanes_;
};

}  // namespace

double code_of(const LoopProgram& program, int vector_bytes) {
  return Code(program, vector_bytes).of(program.body);
}

bool is_long_code(const LoopProgram& program, int vector_bytes) {
  constexpr std::size_t few_statements = 3000;
  constexpr double most = 20000;
  return num_statements(program.body) > few_statements && code_of(program, vector_bytes) > most;
}

std::vector<Reads> reads_of(const LoopProgram& program) { return std::move(Reader(program).reads); }

bool is_function(const Primitive& primitive) {
  return !is_division(primitive) && !moves_as(primitive, Motion::cheap) &&
         !moves_as(primitive, Motion::layout);
}

double instructions_of(const Primitive& primitive) {
  static const auto& many =
      *new std::unordered_map<int, double>{{div_p.index(), 8},
                                           {sqrt_p.index(), 8},
                                           {exp_p.index(), 24},
                                           {expm1_p.index(), 36},
                                           {log_p.index(), 32},
                                           {log1p_p.index(), 48},
                                           {tanh_p.index(), 40},
                                           {erf_p.index(), 48},
                                           {pow_p.index(), 80},
                                           {atan2_p.index(), 60},
                                           {erf_inv_p.index(), 120},
                                           {sin_p.index(), 60},
                                           {cos_p.index(), 60},
                                           {lgamma_p.index(), 400},
                                           {digamma_p.index(), 400},
                                           {rem_p.index(), 30},
                                           {random_bits_p.index(), 110},
                                           {igamma_p.index(), 2000},
                                           {igammac_p.index(), 2000},
                                           {igamma_grad_a_p.index(), 4000},
                                           {random_gamma_grad_p.index(), 4000},
                                           {betainc_p.index(), 2000},
                                           {zeta_p.index(), 1000},
                                           {polygamma_p.index(), 1000},
                                           {bessel_i0e_p.index(), 120},
                                           {bessel_i1e_p.index(), 120},
                                           {erfc_p.index(), 60},
                                           {erfcx_p.index(), 120},
                                           {ndtri_p.index(), 300},
                                           {expi_p.index(), 400},
                                           {expn_p.index(), 400},
                                           {spence_p.index(), 100},
                                           {dawsn_p.index(), 300},
                                           {fresnel_sine_p.index(), 600},
                                           {fresnel_cosine_p.index(), 600},
                                           {sine_integral_p.index(), 600},
                                           {cosine_integral_p.index(), 600},
                                           {owens_t_p.index(), 1200},
                                           {hyp1f1_p.index(), 1000},
                                           {hyp2f1_p.index(), 1000}};
  const auto found = many.find(primitive.index());
  return found == many.end() ? 2 : found->second;
}

bool is_light(const Primitive& primitive) {
  static const auto& light = *new std::unordered_set<int>{
      add_p.index(), sub_p.index(), mul_p.index(),  neg_p.index(),   abs_p.index(),
      max_p.index(), min_p.index(), and_p.index(),  or_p.index(),    xor_p.index(),
      not_p.index(), cmp_p.index(), cast_p.index(), select_p.index()};
  return light.count(primitive.index()) > 0;
}

double Work::of(const Block& block, Value lane) const {
  double sum = 0;
  for (const Statement& s : block) sum += of(s, lane);
  return sum;
}

double Work::of(const Statement& s, Value lane) const {
  constexpr double addition_in_order = 1.3;  // waits for the one before it
  const bool is_in_lanes = lane != none;
  double inner = 0;
  for (const Block& block : s.blocks)
    inner += of(block, is_in_lanes               ? lane
                       : s.is_parallel           ? s.value
                       : s.kind == Kind::combine ? s.counter
                                                 : none);
  const auto in_lanes = [&] {
    return byte_in_lanes / 2 * double(size_of(program_.dtypes[std::size_t(s.value)]));
  };
  switch (s.kind) {
    case Kind::compute:
      return weight_of(*s.primitive) * (is_in_lanes ? in_lanes() : scalar);
    case Kind::load:
    case Kind::store:
      return of_access(s.place, lane);
    case Kind::combine:
      return double(s.steps) *
             (inner + (s.is_in_order && !is_in_lanes ? addition_in_order : in_lanes()));
    case Kind::repeat:
      return double(s.steps) * (inner + (s.is_parallel ? 0 : scalar));
    case Kind::loop:
      return usual_steps * inner;
    case Kind::copy:
      return double(num_elements(s.shape)) * 2 * byte_in_lanes * double(bytes_of(s.place));
    default:
      return scalar + inner;
  }
}

// Lanes whose elements do not lie side by side are loaded and stored one by one.
double Work::of_access(const Place& place, Value lane) const {
  if (lane == none) return scalar;
  for (const Place::Term& term : place.terms)
    if (term.index == lane && term.stride != 1) return scalar;
  return byte_in_lanes * double(bytes_of(place));
}

}  // namespace plait::codegen
