// Programs: literals, equality, inference and folding, constraints. See jaxpr.h.
// SPDX-License-Identifier: Apache-2.0
#include "ir/environment.h"
#include "ir/operands.h"
#include "ir/possible.h"

#include <plait/base/hash.h>
#include <plait/base/stored.h>
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

namespace plait {
namespace {

std::string text_of(double value) {
  char text[40];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  std::string result(text, end);
  if (result.find_first_of(".en") == std::string::npos) result += ".0";
  return result;
}

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::float16:
      return float(float16(float(value)));
    case DType::bfloat16:
      return float(bfloat16(float(value)));
    case DType::float32:
    case DType::complex64:
      return float(value);
    default:
      return value;
  }
}

std::int64_t wrapped(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return value != 0;
    case DType::int8:
      return static_cast<std::int8_t>(value);
    case DType::int16:
      return static_cast<std::int16_t>(value);
    case DType::int32:
      return static_cast<std::int32_t>(value);
    case DType::int4:
      return ((value & 15) ^ 8) - 8;
    case DType::uint4:
      return value & 15;
    case DType::uint8:
      return static_cast<std::uint8_t>(value);
    case DType::uint16:
      return static_cast<std::uint16_t>(value);
    case DType::uint32:
      return static_cast<std::uint32_t>(value);
    default:
      return value;
  }
}

}  // namespace

complex128 Literal::as_complex() const {
  if (is_inexact(dtype)) return {real, imaginary};
  if (dtype == DType::uint64) return {double(static_cast<std::uint64_t>(integer)), 0};
  return {double(integer), 0};
}

std::string Literal::to_string() const {
  std::string value;
  if (dtype == DType::bool_)
    value = integer ? "true" : "false";
  else if (dtype == DType::uint64)
    value = std::to_string(static_cast<std::uint64_t>(integer));
  else if (is_integer(dtype))
    value = std::to_string(integer);
  else if (is_complex(dtype))
    value = "(" + text_of(real) + "," + text_of(imaginary) + ")";
  else
    value = text_of(real);
  return value + ":" + std::string(short_name_of(dtype)) + (weak ? "*" : "");
}

std::size_t Literal::hash() const {
  return hash_combine(
      hash_combine(std::size_t(dtype) * 2 + weak, std::hash<std::int64_t>{}(integer)),
      hash_combine(std::bit_cast<std::uint64_t>(real), std::bit_cast<std::uint64_t>(imaginary)));
}

bool Literal::operator==(const Literal& other) const {
  return dtype == other.dtype && weak == other.weak && integer == other.integer &&
         std::bit_cast<std::uint64_t>(real) == std::bit_cast<std::uint64_t>(other.real) &&
         std::bit_cast<std::uint64_t>(imaginary) == std::bit_cast<std::uint64_t>(other.imaginary);
}

Literal cast(const Literal& literal, DType dtype, bool weak) {
  Literal result{dtype, weak, 0, 0, 0};
  if (is_float8(dtype)) {
    result.real = float8_value(float8_bits(literal.as_complex().real(), dtype), dtype);
  } else if (is_inexact(dtype)) {
    const complex128 value = literal.as_complex();
    result.real = rounded(value.real(), dtype);
    if (is_complex(dtype)) result.imaginary = rounded(value.imag(), dtype);
  } else if (is_inexact(literal.dtype)) {
    if (dtype == DType::bool_)
      result.integer = literal.real != 0 || literal.imaginary != 0;
    else if (std::isnan(literal.real))
      result.integer = 0;
    else if (dtype == DType::uint64 && literal.real >= 0x1p63)
      result.integer = std::int64_t(std::uint64_t(std::min(literal.real, 0x1.fffffffffffffp63)));
    else
      result.integer =
          wrapped(std::int64_t(std::clamp(literal.real, -0x1p63, 0x1.fffffffffffffp62)), dtype);
  } else {
    result.integer = wrapped(literal.integer, dtype);
  }
  return result;
}

std::vector<Aval> JaxprData::output_avals() const {
  std::vector<Aval> avals;
  for (const Atom& atom : outputs) avals.push_back(aval(atom));
  return avals;
}

std::size_t Jaxpr::hash() const { return data_ ? data_->hash : 0; }
std::string Jaxpr::to_string() const { return print(*this); }

bool Jaxpr::operator==(const Jaxpr& other) const {
  if (data_ == other.data_) return true;
  if (!data_ || !other.data_ || data_->hash != other.data_->hash) return false;
  const JaxprData &a = *data_, &b = *other.data_;
  auto same = [](const Equation& x, const Equation& y) {
    return *x.primitive == *y.primitive && x.inputs == y.inputs && x.outputs == y.outputs &&
           x.params == y.params;
  };
  return a.sizes == b.sizes && a.constraints == b.constraints && a.num_binders == b.num_binders &&
         a.avals == b.avals && a.outputs == b.outputs &&
         std::equal(a.equations.begin(), a.equations.end(), b.equations.begin(), b.equations.end(),
                    same);
}

Params map_bodies(const Params& params, const std::function<Jaxpr(const Jaxpr&)>& f) {
  std::vector<Params::Entry> entries(params.entries().begin(), params.entries().end());
  for (auto& [name, value] : entries) {
    if (Jaxpr* body = std::get_if<Jaxpr>(&value)) *body = f(*body);
    if (auto* bodies = std::get_if<std::vector<Jaxpr>>(&value))
      for (Jaxpr& body : *bodies) body = f(body);
  }
  return Params(std::move(entries));
}

bool holds_bodies(const Params& params) {
  bool found = false;
  for_each_body(params, [&](const Jaxpr&) { found = true; });
  return found;
}

bool holds_callable(const Params& params) {
  bool found = std::ranges::any_of(params.entries(), [](const Params::Entry& entry) {
    return std::holds_alternative<Callable>(entry.second);
  });
  for_each_body(params, [&](const Jaxpr& body) { found = found || holds_callable(body); });
  return found;
}

bool holds_callable(const Jaxpr& jaxpr) {
  struct HoldsCallable : Property<bool> {};
  return *jaxpr->memo.get(HoldsCallable{}, [&] {
    return std::ranges::any_of(
        jaxpr->equations, [](const Equation& equation) { return holds_callable(equation.params); });
  });
}

bool is_effectful(const Equation& equation) {
  bool found = equation.primitive->is_effectful();
  for_each_body(equation.params, [&](const Jaxpr& body) { found |= body->effectful; });
  return found;
}

void require_possible(const Aval& aval, std::string_view who) {
  constexpr int max_rank = 64;  // the maximum of NumPy, and of Python's buffers
  constexpr std::int64_t max_bytes = std::int64_t(1) << 62;
  auto fail = [&](const std::string& what, const char* fix) {
    throw ShapeError(
        std::string(who) + ": an array of shape (" + aval.shape.to_string() + ") " + what, fix);
  };
  if (aval.rank() > max_rank)
    fail("has " + std::to_string(aval.rank()) + " axes", "give at most 64 axes");
  std::int64_t bytes = size_of(aval.dtype);
  for (Dim dim : aval.shape) {
    if (!dim.is_constant()) continue;
    if (dim.constant() < 0) fail("has a negative size", "give sizes >= 0");
    if (dim.constant() > 0 && __builtin_mul_overflow(bytes, dim.constant(), &bytes))
      bytes = max_bytes;
    if (bytes >= max_bytes)
      fail("has more elements than memory can ever hold", "give smaller sizes");
  }
}

namespace {

// Whether a result of this dtype takes it from an operand of that one: x, real(x), complex(x, y).
bool is_dtype_of(DType result, DType operand) {
  return result == operand || (is_inexact(result) && is_inexact(operand) &&
                               real_dtype_of(result) == real_dtype_of(operand));
}

// NOTE: [weakness] A result is weak if all operands that count are weak: those with the dtype of
// the result. Where none has it, as for indices of extremes, the operation itself names the dtype,
// and Abstract says whether it is weak. So do equations that state a dtype (cast) and those that
// hold programs, whose outputs know it. Bools are strong: they yield to nothing.
bool states_weakness(const Params& params) {
  return params.has("weak") || holds_bodies(params) || holds_callable(params);
}
void weaken(std::vector<Aval>& outputs, std::span<const Aval> inputs, const Params& params) {
  for (Aval& output : outputs) {
    bool counts = false, weak = !is_bool(output.dtype);
    for (const Aval& input : inputs) {
      if (!is_dtype_of(output.dtype, input.dtype)) continue;
      counts = true;
      weak &= input.weak;
    }
    if (counts && weak != output.weak && !states_weakness(params)) output.weak = weak;
  }
}

}  // namespace

std::vector<Aval> infer(const Primitive& primitive, std::span<const Aval> inputs,
                        const Params& params) {
  require_operands(primitive, inputs.size());
  if (!primitive.takes_stored())
    for (const Aval& input : inputs)
      if (is_stored(input.dtype)) throw_stored(input.dtype);
  std::vector<Aval> outputs = rule<Abstract>(primitive)(inputs, params);
  MeshAxes varying;
  for (const Aval& input : inputs) varying |= input.varying;
  if (!varying.empty() && !primitive.states_varying())
    for (Aval& output : outputs) output.varying |= varying;
  for (const Aval& aval : outputs) require_possible(aval, primitive.name());
  weaken(outputs, inputs, params);
  return outputs;
}

std::optional<std::vector<Atom>> simplify(const Primitive& primitive, std::span<const Atom> inputs,
                                          std::span<const Aval> avals, const Params& params) {
  if (const Identity::Rule* identity = Identity::table().find(primitive);
      identity && (*identity)(avals, params))
    return std::vector<Atom>{inputs[0]};
  if (std::any_of(inputs.begin(), inputs.end(), [](const Atom& atom) { return atom.is_var(); }))
    return std::nullopt;
  const Fold::Rule* fold = Fold::table().find(primitive);
  if (!fold) return std::nullopt;
  std::vector<Literal> literals;
  for (const Atom& atom : inputs) literals.push_back(atom.literal());
  std::optional<std::vector<Literal>> folded = (*fold)(literals, params);
  if (!folded) return std::nullopt;
  return std::vector<Atom>(folded->begin(), folded->end());
}

namespace {
std::atomic<bool (*)(const Constraint&)> constraint_sink{nullptr};
thread_local const GrantedConstraints* granted_constraints = nullptr;
}  // namespace

GrantedConstraints::GrantedConstraints(std::span<const Constraint> constraints)
    : previous_(std::exchange(granted_constraints, this)), constraints_(constraints) {}
GrantedConstraints::GrantedConstraints(All)
    : previous_(std::exchange(granted_constraints, this)), all_(true) {}
GrantedConstraints::~GrantedConstraints() { granted_constraints = previous_; }

bool GrantedConstraints::includes(const Constraint& constraint) const {
  if (all_ || std::find(constraints_.begin(), constraints_.end(), constraint) != constraints_.end())
    return true;
  std::vector<std::pair<Dim, Dim>> orders;
  for (const Constraint& one : constraints_) orders.emplace_back(one.left, one.right);
  const SizeFacts facts(orders);
  return less_equal(constraint.left, constraint.right).value_or(false);
}

void set_constraint_sink(bool (*sink)(const Constraint& constraint)) { constraint_sink = sink; }

void require_less_equal(Dim left, Dim right, const std::function<ShapeError()>& describe) {
  const std::optional<bool> decided = less_equal(left, right);
  if (decided && *decided) return;
  if (decided) throw describe();
  if (granted_constraints) {
    if (!granted_constraints->includes({left, right})) throw describe();
    return;
  }
  auto* sink = constraint_sink.load();
  if (!sink || !sink({left, right})) throw describe();
}

Jaxpr instantiate(const Jaxpr& jaxpr, SizeSubstitution sizes) {
  for (const auto& [size, value] : sizes) {
    if (value.is_constant() && value.constant() < 0)
      throw ValueError("the size " + size.to_string() + " is " + value.to_string(),
                       "give a size of 0 or more");
    if (std::find(jaxpr->sizes.begin(), jaxpr->sizes.end(), size) == jaxpr->sizes.end())
      throw ValueError("the program has no size named '" + size.to_string() + "'",
                       "name one of its sizes");
  }
  for (const Constraint& constraint : jaxpr->constraints) {
    const Dim left = constraint.left.substitute(sizes), right = constraint.right.substitute(sizes);
    if (less_equal(left, right) == false)
      throw ShapeError("the program needs " + constraint.left.to_string() +
                           " <= " + constraint.right.to_string() + ", and here that is " +
                           left.to_string() + " <= " + right.to_string(),
                       "call it with sizes that satisfy this");
  }
  // Constraints still undecided follow from the program's own, which are added below.
  const GrantedConstraints granted(GrantedConstraints::All::granted);
  Builder builder;
  Environment environment(jaxpr);
  for (int i = 0; i < jaxpr->num_binders; ++i) {
    Aval aval = jaxpr->avals[i];
    aval.shape = substitute(aval.shape, sizes);
    require_possible(aval, "instantiate");
    environment.set(Var{i}, builder.add_binder(std::move(aval)));
  }
  for (const Equation& equation : jaxpr->equations) {
    SourceScope scope(equation.source);
    std::vector<Atom> inputs = environment.read(equation.inputs);
    std::vector<Aval> avals;
    for (const Atom& atom : inputs) avals.push_back(builder.aval(atom));
    Params params = instantiate_bodies(substitute(equation.params, sizes));
    if (const auto simplified = simplify(*equation.primitive, inputs, avals, params))
      environment.set(equation.outputs, *simplified);
    else
      environment.set(equation.outputs, builder.add(*equation.primitive, std::move(inputs),
                                                    std::move(params), equation.source));
  }
  for (const Constraint& constraint : jaxpr->constraints) {
    const Constraint now{constraint.left.substitute(sizes), constraint.right.substitute(sizes)};
    if (!less_equal(now.left, now.right)) builder.add_constraint(now);
  }
  std::vector<Dim> left;
  for (Dim size : jaxpr->sizes) collect_sizes(Shape{size.substitute(sizes)}, left);
  return builder.close(environment.read(jaxpr->outputs), std::move(left));
}

Jaxpr open_body(const Params& params, std::string_view name) {
  const Jaxpr& body = params.get<Jaxpr>(name);
  if (!params.has("sizes")) return body;
  const Shape& values = params.get<Shape>("sizes");
  if (values.size() < body->sizes.size())
    throw InternalError(std::to_string(values.size()) + " values for the sizes of\n" + print(body));
  std::vector<std::pair<Dim, Dim>> replacements;
  bool trivial = true;
  for (std::size_t i = 0; i < body->sizes.size(); ++i) {
    replacements.emplace_back(body->sizes[i], values[i]);
    trivial &= body->sizes[i] == values[i];
  }
  return trivial ? body : instantiate(body, replacements);
}

// Substitutes constant values of the parameter "sizes" into the bodies.
Params instantiate_bodies(const Params& params) {
  const ParamValue* fed = params.find("sizes");
  const Shape* values = fed ? std::get_if<Shape>(fed) : nullptr;
  if (!values ||
      std::none_of(values->begin(), values->end(), [](Dim dim) { return dim.is_constant(); }))
    return params;
  auto with_constants = [&](const Jaxpr& body) {
    std::vector<std::pair<Dim, Dim>> replacements;
    for (std::size_t i = 0; i < values->size() && i < body->sizes.size(); ++i)
      if ((*values)[i].is_constant()) replacements.emplace_back(body->sizes[i], (*values)[i]);
    return instantiate(body, replacements);
  };
  Shape open;
  for (Dim dim : *values)
    if (!dim.is_constant()) open.push_back(dim);
  const Params mapped = map_bodies(params, with_constants);
  return open.empty() ? mapped.without("sizes") : mapped.with("sizes", open);
}

}  // namespace plait
