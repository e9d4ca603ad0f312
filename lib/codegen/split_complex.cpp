// Every complex number becomes its real part, under its number, and an imaginary part. The
// arithmetic is that of the Pointwise rules, operation by operation, so bits do not change.
//
// Memory of the program's own holds all real parts and then all imaginary ones, so that lanes read
// and write what lies side by side; operands and results hold pairs.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/split_complex.h"

#include <plait/primitives/primitives.h>

#include "codegen/prune.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

struct Unsplit {
  std::string reason;
};

class Splitter {
 public:
  explicit Splitter(const LoopProgram& from) : from_(from) {}

  LoopProgram run() {
    to_.dtypes = from_.dtypes;
    to_.ranges = from_.ranges;
    imaginary_.assign(from_.dtypes.size(), -1);
    for (std::size_t value = 0; value < from_.dtypes.size(); ++value)
      if (is_complex(from_.dtypes[value])) {
        to_.dtypes[value] = real_dtype_of(from_.dtypes[value]);
        imaginary_[value] = define(to_.dtypes[value]);
      }
    for (const auto& [value, literal] : from_.literals) {
      Literal part = literal;
      part.dtype = to_.dtypes[std::size_t(value)];
      part.imaginary = 0;
      to_.literals.emplace_back(value, part);
      if (part.dtype == literal.dtype) continue;
      part.real = literal.imaginary;
      to_.literals.emplace_back(imaginary(value), part);
    }
    for (const Memory& memory : from_.memories)
      is_planar_.push_back(is_complex(memory.dtype) && memory.space == Memory::Space::frame);
    keep_pairs_of_calls(from_.body);
    while (exchange_pairs(from_.body)) {
    }
    to_.memories = from_.memories;
    for (Memory& memory : to_.memories)
      if (is_complex(memory.dtype)) {
        memory.dtype = real_dtype_of(memory.dtype);
        memory.size *= 2;
      }
    to_.fails_by_example = from_.fails_by_example;
    to_.body = split(from_.body);
    return std::move(to_);
  }

 private:
  Value define(DType dtype) {
    to_.dtypes.push_back(dtype);
    return Value(to_.dtypes.size()) - 1;
  }
  Value imaginary(Value value) const { return imaginary_[std::size_t(value)]; }
  bool is_split(Value value) const { return value >= 0 && imaginary(value) >= 0; }
  bool is_split(const Place& place) const {
    return place.memory >= 0 && is_complex(from_.memories[std::size_t(place.memory)].dtype);
  }
  void keep_pairs_of_calls(const Block& block) {
    for (const Statement& s : block) {
      for (const Place& place : s.places) is_planar_[std::size_t(place.memory)] = false;
      for (const Block& inner : s.blocks) keep_pairs_of_calls(inner);
    }
  }
  // What changes places with pairs holds pairs. Returns whether it did not before.
  bool exchange_pairs(const Block& block) {
    bool changed = false;
    for (const Statement& s : block) {
      for (const auto& [a, b] : s.exchanged)
        if (is_planar_[std::size_t(a)] != is_planar_[std::size_t(b)]) {
          is_planar_[std::size_t(a)] = is_planar_[std::size_t(b)] = false;
          changed = true;
        }
      for (const Block& inner : s.blocks) changed |= exchange_pairs(inner);
    }
    return changed;
  }
  bool is_planar(const Place& place) const { return is_planar_[std::size_t(place.memory)]; }
  // From a real part to its imaginary one.
  std::int64_t apart(const Place& place) const {
    return is_planar(place) ? from_.memories[std::size_t(place.memory)].size : 1;
  }
  Place part(Place place, int which) const {
    const std::int64_t distance = is_planar(place) ? 1 : 2;
    place.offset = distance * place.offset + which * apart(place);
    for (Place::Term& term : place.terms) term.stride *= distance;
    return place;
  }

  Block split(const Block& block) {
    Block outer = std::exchange(out_, {});
    for (const Statement& statement : block) split(statement);
    return std::exchange(out_, std::move(outer));
  }

  void split(const Statement& s) {
    if (s.kind == Kind::compute) {
      bool splits = is_split(s.value);
      for (Value operand : s.operands) splits = splits || is_split(operand);
      if (!splits) return out_.push_back(s);
      return compute(s);
    }
    if (s.kind == Kind::combine && is_split(s.value)) return sum(s);
    if (s.kind == Kind::load || s.kind == Kind::store) {
      if (!is_split(s.place)) return out_.push_back(s);
      for (int which = 0; which < 2; ++which) {
        Statement moved = s;
        moved.place = part(s.place, which);
        if (which == 1 && s.kind == Kind::load) moved.value = imaginary(s.value);
        if (which == 1 && s.kind == Kind::store) moved.operands[0] = imaginary(s.operands[0]);
        out_.push_back(std::move(moved));
      }
      return;
    }
    Statement copied = s;
    for (std::vector<Place>* places : {&copied.places, &copied.soon})
      for (Place& place : *places)
        if (is_split(place)) place = part(place, 0);
    if (s.kind == Kind::copy && is_split(s.place)) {
      copied.place = part(s.place, 0), copied.source_place = part(s.source_place, 0);
      const bool has_planes = is_planar(s.place) || is_planar(s.source_place);
      const std::size_t axis = has_planes ? 0 : copied.shape.size();
      copied.shape.insert(axis, 2);
      const auto split_strides = [&](Sizes64& strides, const Place& place) {
        if (!is_planar(place))
          for (std::int64_t& stride : strides) stride *= 2;
        strides.insert(axis, apart(place));
      };
      split_strides(copied.strides, s.place);
      split_strides(copied.source_strides, s.source_place);
    }
    for (Statement::Region& region : copied.regions) {
      if (!is_split(region.place)) continue;
      const Place place = std::exchange(region.place, part(region.place, 0));
      if (is_planar(place)) {
        region.shape.insert(std::size_t(0), 2);
        region.strides.insert(std::size_t(0), apart(place));
      } else {
        for (std::int64_t& stride : region.strides) stride *= 2;
        region.shape.push_back(2);
        region.strides.push_back(1);
      }
    }
    copied.carries.clear();
    for (const Statement::Carry& carry : s.carries) {
      copied.carries.push_back(carry);
      if (!is_split(carry.value)) continue;
      Statement::Carry other = carry;
      for (Value* value : {&other.value, &other.first, &other.next, &other.last})
        if (*value >= 0) *value = imaginary(*value);
      for (Value& next : other.nexts) next = imaginary(next);
      copied.carries.push_back(std::move(other));
    }
    for (Block& block : copied.blocks) block = split(block);
    out_.push_back(std::move(copied));
  }

  // Two sums, of the real parts and of the imaginary ones.
  void sum(const Statement& s) {
    if (!(*s.primitive == add_p))
      throw Unsplit{"`" + std::string(s.primitive->name()) + "` of all of several complex numbers"};
    Statement real = s;
    for (Place& place : real.soon)
      if (is_split(place)) place = part(place, 0);
    real.blocks[0] = split(s.blocks[0]);
    Statement imag = real;
    Names names{{s.counter, define(to_.dtypes[std::size_t(s.counter)])}};
    imag.value = imaginary(s.value);
    imag.counter = names.at(s.counter);
    imag.soon.clear();
    imag.blocks[0] = copy_of(to_, real.blocks[0], names);
    for (Value& operand : imag.operands) operand = named(names, imaginary(operand));
    out_.push_back(std::move(real));
    out_.push_back(std::move(imag));
  }

  // --- Arithmetic --------------------------------------------------------------------------------

  Value literal(DType dtype, double number) {
    const Literal wanted = cast(Literal{DType::float64, false, 0, number, 0}, dtype, false);
    for (const auto& [value, literal] : to_.literals)
      if (literal == wanted) return value;
    const Value value = define(dtype);
    to_.literals.emplace_back(value, wanted);
    return value;
  }
  // result: where it goes; -1 for a new value.
  Value add(const Primitive& primitive, Values operands, Value result = -1, Params params = {}) {
    Statement statement;
    statement.source = source_;
    std::vector<Aval> avals;
    for (Value operand : operands) avals.push_back({{}, to_.dtypes[std::size_t(operand)]});
    statement.value = result >= 0 ? result : define(infer(primitive, avals, params)[0].dtype);
    statement.primitive = &primitive;
    statement.params = std::move(params);
    statement.operands = std::move(operands);
    out_.push_back(std::move(statement));
    return out_.back().value;
  }
  Value same(Value value, Value result) {
    return add(cast_p, {value}, result,
               {{"dtype", to_.dtypes[std::size_t(value)]}, {"weak", false}});
  }
  Value compare(const char* direction, Value a, Value b, Value result = -1) {
    return add(cmp_p, {a, b}, result, {{"direction", std::string(direction)}});
  }

  struct Number {
    Value real, imag;
  };
  Number number(Value value) const { return {value, imaginary(value)}; }
  Number multiply(Number a, Number b, Value real = -1, Value imag = -1) {
    const Value rr = add(mul_p, {a.real, b.real}), ii = add(mul_p, {a.imag, b.imag});
    const Value ri = add(mul_p, {a.real, b.imag}), ir = add(mul_p, {a.imag, b.real});
    return {add(sub_p, {rr, ii}, real), add(add_p, {ri, ir}, imag)};
  }

  void compute(const Statement& s) {
    source_ = s.source;
    const Primitive& p = *s.primitive;
    if (!codegen::is_split(p, s.params))
      throw Unsplit{"`" + std::string(p.name()) + "` of complex numbers"};
    const Value real = s.value, imag = imaginary(s.value), first = s.operands[0];
    if (p == add_p || p == sub_p) {
      add(p, {first, s.operands[1]}, real);
      add(p, {imaginary(first), imaginary(s.operands[1])}, imag);
    } else if (p == neg_p) {
      add(p, {first}, real);
      add(p, {imaginary(first)}, imag);
    } else if (p == mul_p) {
      multiply(number(first), number(s.operands[1]), real, imag);
    } else if (p == div_p) {
      divide(number(first), number(s.operands[1]), real, imag);
    } else if (p == integer_pow_p) {
      power(number(first), s.params.integer("y"), real, imag);
    } else if (p == select_p) {
      add(p, {first, s.operands[1], s.operands[2]}, real);
      add(p, {first, imaginary(s.operands[1]), imaginary(s.operands[2])}, imag);
    } else if (p == complex_p) {
      same(first, real);
      same(s.operands[1], imag);
    } else if (p == real_p) {
      same(first, real);
    } else if (p == imag_p) {
      same(imaginary(first), real);
    } else if (p == abs_p) {
      magnitude(number(first), real);
    } else if (p == cmp_p) {
      const std::string direction = s.params.text("direction");
      const Value a = compare(direction.c_str(), first, s.operands[1]),
                  b = compare(direction.c_str(), imaginary(first), imaginary(s.operands[1]));
      add(direction == "eq" ? and_p : or_p, {a, b}, real);
    } else {  // a cast
      Params params{{"dtype", to_.dtypes[std::size_t(real)]}, {"weak", false}};
      add(p, {first}, real, params);
      if (imag < 0) return;
      if (is_split(first))
        add(p, {imaginary(first)}, imag, params);
      else
        same(literal(to_.dtypes[std::size_t(imag)], 0), imag);
    }
  }

  // Squaring from the low bit up, as integer_pow does.
  void power(Number square, std::int64_t n, Value real, Value imag) {
    std::optional<Number> result;
    for (; n > 0; n >>= 1) {
      if (n & 1) result = result ? multiply(*result, square) : square;
      if (n > 1) square = multiply(square, square);
    }
    same(result->real, real);
    same(result->imag, imag);
  }

  // As quotient.
  void divide(Number a, Number b, Value real, Value imag) {
    const DType dtype = to_.dtypes[std::size_t(real)];
    const Value size = add(abs_p, {b.real});
    const Value is_real = compare("ge", size, add(abs_p, {b.imag}));
    const auto choose = [&](Value x, Value y) { return add(select_p, {is_real, x, y}); };
    const Value large = choose(b.real, b.imag), small = choose(b.imag, b.real);
    const Value p = choose(a.real, a.imag), q = choose(a.imag, a.real);
    const Value ratio = add(div_p, {small, large});
    const Value scale =
        add(div_p, {literal(dtype, 1), add(add_p, {large, add(mul_p, {small, ratio})})});
    const Value across = add(sub_p, {q, add(mul_p, {p, ratio})});
    const Value is_zero = compare("eq", large, literal(dtype, 0));
    add(select_p,
        {is_zero, add(div_p, {a.real, size}),
         add(mul_p, {add(add_p, {p, add(mul_p, {q, ratio})}), scale})},
        real);
    add(select_p,
        {is_zero, add(div_p, {a.imag, size}),
         add(mul_p, {choose(across, add(neg_p, {across})), scale})},
        imag);
  }

  // As detail::magnitude.
  void magnitude(Number z, Value result) {
    const DType dtype = to_.dtypes[std::size_t(result)];
    const Value a = add(abs_p, {z.real}), b = add(abs_p, {z.imag});
    const Value large = add(max_p, {a, b}), small = add(min_p, {a, b});
    const Value ratio = add(div_p, {small, large});
    const Value root = add(sqrt_p, {add(add_p, {literal(dtype, 1), add(mul_p, {ratio, ratio})})});
    const Value infinite = literal(dtype, INFINITY);
    const Value is_infinite = add(or_p, {compare("eq", a, infinite), compare("eq", b, infinite)});
    const Value is_zero = compare("eq", large, literal(dtype, 0));
    add(select_p,
        {is_infinite, infinite, add(select_p, {is_zero, large, add(mul_p, {large, root})})},
        result);
  }

  const LoopProgram& from_;
  LoopProgram to_;
  std::vector<Value> imaginary_;  // by value of from_; -1 of real numbers
  std::vector<bool> is_planar_;   // by memory
  Block out_;
  Source source_ = {};
};

}  // namespace

bool is_split(const Primitive& p, const Params& params) {
  if (p == integer_pow_p) return params.integer("y") > 0;
  if (p == cmp_p) return params.text("direction") == "eq" || params.text("direction") == "ne";
  if (p == cast_p) return !is_bool(params.get<DType>("dtype"));
  return p == add_p || p == sub_p || p == neg_p || p == mul_p || p == div_p || p == select_p ||
         p == complex_p || p == real_p || p == imag_p || p == abs_p;
}

Split split_complex(const LoopProgram& program) {
  try {
    LoopProgram split = Splitter(program).run();
    prune(split);
    return {std::move(split), {}};
  } catch (const Unsplit& unsplit) {
    return {{}, unsplit.reason};
  }
}

}  // namespace plait::codegen
