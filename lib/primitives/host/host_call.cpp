// host_call and ordered_host_call: an equation that runs a function of the host. See host_call.h.
//
//   function      the Callable, of a Function
//   dims, ranks,  the results of one call: their shapes one after another, the rank of each, and
//   dtypes        their dtypes ("f32 i32")
//   batched       whether the function takes further leading axes
//   lanes         sizes of the enclosing vmaps, outermost first; mapped: for each of them, 1 for
//                 each operand that is batched over it, with batch axes in front
//   cuts          pairs (target, axis), one for each of the last operands, which are int32 sizes:
//                 that axis is real up to the size only. A target is an operand, then a result (of
//                 one example), or, from -1 down, a lane
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/host_call.h>
#include <plait/primitives/narrow.h>
#include <plait/rules/autocast.h>
#include <plait/rules/guard.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/outcome.h"
#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

thread_local const NoHostCalls* innermost_refusal = nullptr;

struct Cut {
  std::int64_t target;
  int axis;
};

// The parsed parameters.
struct HostCall {
  Callable function;
  std::vector<Aval> results;  // of one call
  bool batched;
  Shape lanes;
  std::vector<int> mapped;
  std::vector<Cut> cuts;

  explicit HostCall(const Params& params)
      : function(params.get<Callable>("function")),
        batched(params.flag("batched")),
        lanes(params.get<Shape>("lanes")),
        mapped(params.ints("mapped")) {
    const Shape& dims = params.get<Shape>("dims");
    const std::string& dtypes = params.text("dtypes");
    std::size_t next = 0, at = 0;
    for (int rank : params.ints("ranks")) {
      const std::size_t end = std::min(dtypes.find(' ', at), dtypes.size());
      const auto dtype = at < end ? dtype_from_name(dtypes.substr(at, end - at)) : std::nullopt;
      if (!dtype || rank < 0 || next + std::size_t(rank) > dims.size()) throw_inconsistent(params);
      results.push_back({Shape(dims.begin() + next, dims.begin() + next + rank), *dtype});
      next += rank;
      at = end + 1;
    }
    const std::vector<int> pairs = params.ints("cuts");
    if (pairs.size() % 2 || next != dims.size()) throw_inconsistent(params);
    for (std::size_t i = 0; i < pairs.size(); i += 2) cuts.push_back({pairs[i], pairs[i + 1]});
  }

  Params to_params() const {
    Shape dims, ranks, pairs;
    std::string dtypes;
    for (const Aval& result : results) {
      for (Dim dim : result.shape) dims.push_back(dim);
      ranks.push_back(result.rank());
      dtypes += (dtypes.empty() ? "" : " ") + std::string(short_name_of(result.dtype));
    }
    for (const Cut& cut : cuts) {
      pairs.push_back(cut.target);
      pairs.push_back(cut.axis);
    }
    return {{"function", function}, {"dims", dims},   {"ranks", ranks},
            {"dtypes", dtypes},     {"lanes", lanes}, {"mapped", to_shape(mapped)},
            {"batched", batched},   {"cuts", pairs}};
  }

  std::size_t num_lanes() const { return lanes.size(); }
  // Operands of the function; those after them are sizes.
  std::size_t num_arguments(std::size_t num_operands) const { return num_operands - cuts.size(); }
  bool is_mapped(std::size_t lane, std::size_t operand, std::size_t num_operands) const {
    return mapped[lane * num_operands + operand] != 0;
  }

  [[noreturn]] static void throw_inconsistent(const Params& params) {
    throw InternalError("host_call: the parameters [" + params.to_string() + "] do not fit");
  }
};

std::string count_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " result" : " results");
}

// --- Running -------------------------------------------------------------------------------------

View at(const View& view, std::int64_t index) {
  View result = view;
  result.data = static_cast<char*>(view.data) + index * view.strides[0] * size_of(view.dtype);
  result.shape.erase(0);
  result.strides.erase(0);
  return result;
}

Array fitted_result(const Array& result, const View& wanted, std::size_t index,
                    const std::string& name) {
  const Aval promised{Shape::of(wanted.shape), wanted.dtype};
  auto what = [&] {
    return "host_call: result " + std::to_string(index) + " of `" + name + "` is " +
           result.aval().to_string() + ", and " + promised.to_string() + " is promised";
  };
  if (!(result.shape() == promised.shape))
    throw ShapeError(what(), "return an array of that shape, or promise another in out_types");
  if (result.dtype() == promised.dtype) return result;
  if (!result.aval().weak)
    throw DtypeError(what(), "convert the result, or promise its dtype in out_types");
  return narrowed(result, promised.dtype, "host_call");
}

void call_once(const HostCall& call, std::vector<View> inputs, std::vector<View> outputs) {
  const std::size_t num_arguments = call.num_arguments(inputs.size());
  for (std::size_t i = 0; i < call.cuts.size(); ++i) {
    const auto [target, axis] = call.cuts[i];
    if (target < 0) continue;
    const bool is_result = std::size_t(target) >= num_arguments;
    View& view = is_result ? outputs[target - num_arguments] : inputs[target];
    const std::int64_t size = *inputs[num_arguments + i].as<std::int32_t>();
    view.shape[axis] = std::clamp<std::int64_t>(size, 0, view.shape[axis]);
  }
  Arrays arguments;
  for (std::size_t i = 0; i < num_arguments; ++i)
    arguments.push_back(Array(Buffer::copy_of(inputs[i])));
  const std::string& name = call.function.name();
  const OutcomeScope own(nullptr);  // what the function does on devices is not this call's work
  const Arrays results = call.function.as<Function>()(arguments);
  if (results.size() != outputs.size())
    throw TreeError("host_call: `" + name + "` returned " + count_text(results.size()) + ", and " +
                        std::to_string(outputs.size()) +
                        (outputs.size() == 1 ? " is promised" : " are promised"),
                    "return one array for each of out_types");
  for (std::size_t i = 0; i < results.size(); ++i)
    copy_elements(fitted_result(results[i], outputs[i], i, name).host_buffer().view(), outputs[i]);
}

// Calls every example of the lanes from this one on.
void call_lanes(const HostCall& call, std::size_t lane, const std::vector<View>& inputs,
                const std::vector<View>& outputs) {
  if (lane == call.num_lanes()) return call_once(call, inputs, outputs);
  std::int64_t count = call.lanes[lane].constant();
  const std::size_t num_arguments = call.num_arguments(inputs.size());
  for (std::size_t i = 0; i < call.cuts.size(); ++i)
    if (call.cuts[i].target == -1 - std::int64_t(lane))
      count = std::clamp<std::int64_t>(*inputs[num_arguments + i].as<std::int32_t>(), 0, count);
  for (std::int64_t example = 0; example < count; ++example) {
    std::vector<View> sources = inputs, targets;
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (call.is_mapped(lane, i, sources.size())) sources[i] = at(sources[i], example);
    for (const View& output : outputs) targets.push_back(at(output, example));
    call_lanes(call, lane + 1, sources, targets);
  }
}

void eval_host_call(std::span<const View> inputs, std::span<const View> outputs,
                    const Params& params) {
  const HostCall call(params);
  require_host_calls(call.function.name());
  if (!call.cuts.empty())
    for (const View& output : outputs)
      std::memset(output.data, 0, std::size_t(output.size() * size_of(output.dtype)));
  call_lanes(call, 0, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()});
}

// --- Rules ---------------------------------------------------------------------------------------

std::vector<Aval> abstract_host_call(std::span<const Aval> inputs, const Params& params) {
  const HostCall call(params);
  if (inputs.size() < call.cuts.size() || call.mapped.size() != call.num_lanes() * inputs.size())
    HostCall::throw_inconsistent(params);
  std::vector<Aval> avals = call.results;
  for (Aval& aval : avals)
    for (std::size_t lane = call.num_lanes(); lane-- > 0;) aval.shape.insert(0, call.lanes[lane]);
  return avals;
}

std::vector<Batched> all_in_front(Arrays outputs) {
  std::vector<Batched> results;
  for (Array& output : outputs) results.push_back({std::move(output), 0});
  return results;
}

// One call with a further leading axis.
std::vector<Batched> batch_at_once(const Primitive& primitive, HostCall call, Dim size,
                                   std::span<const Batched> inputs) {
  Arrays operands;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(i < call.num_arguments(inputs.size()) ? batch_to_front(inputs[i], size)
                                                             : inputs[i].array);
  for (Aval& result : call.results) result.shape.insert(0, size);
  for (Cut& cut : call.cuts) ++cut.axis;
  return all_in_front(bind(primitive, operands, call.to_params()));
}

Batch::Rule batch_host_call(const Primitive& primitive) {
  return [&primitive](Dim size, std::span<const Batched> inputs, const Params& params) {
    HostCall call(params);
    const auto sizes = inputs.subspan(call.num_arguments(inputs.size()));
    const bool same_sizes = std::none_of(
        sizes.begin(), sizes.end(), [](const Batched& input) { return input.dim.has_value(); });
    if (call.batched && call.num_lanes() == 0 && same_sizes)
      return batch_at_once(primitive, std::move(call), size, inputs);
    Arrays operands;
    std::vector<int> mapped;
    for (const Batched& input : inputs) {
      mapped.push_back(input.dim.has_value());
      operands.push_back(input.dim ? batch_to_front(input, size) : input.array);
    }
    call.lanes.insert(0, size);
    call.mapped.insert(call.mapped.begin(), mapped.begin(), mapped.end());
    for (Cut& cut : call.cuts)
      if (cut.target < 0) --cut.target;  // its lane is now one deeper
    return all_in_front(bind(primitive, operands, call.to_params()));
  };
}

// The function sees real elements only: ragged axes are cut to sizes, which become operands.
Mask::Rule mask_host_call(const Primitive& primitive) {
  return [&primitive](std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                      const SizeValues& sizes) {
    HostCall call(params);
    const std::size_t num_operands = inputs.size(),
                      num_arguments = call.num_arguments(num_operands);
    Arrays operands;
    for (const Masked& input : inputs) operands.push_back(input.padded);
    auto cut = [&](Dim& dim, std::int64_t target, int axis) {
      const Dim bound = sizes.bound(dim);
      if (bound == dim) return;
      call.cuts.push_back({target, axis});
      operands.push_back(sizes.value(dim));
      dim = bound;
    };
    const std::vector<int> mapped = call.mapped;
    for (std::size_t i = 0; i < num_arguments; ++i) {
      Shape shape = inputs[i].aval.shape;
      for (std::size_t lane = 0; lane < call.num_lanes(); ++lane)
        if (mapped[lane * num_operands + i]) shape.erase(0);
      for (int axis = 0; axis < shape.rank(); ++axis) cut(shape[axis], std::int64_t(i), axis);
    }
    for (std::size_t i = 0; i < call.results.size(); ++i)
      for (int axis = 0; axis < call.results[i].rank(); ++axis)
        cut(call.results[i].shape[axis], std::int64_t(num_arguments + i), axis);
    for (std::size_t lane = 0; lane < call.num_lanes(); ++lane)
      cut(call.lanes[lane], -1 - std::int64_t(lane), 0);
    call.mapped.clear();
    for (std::size_t lane = 0; lane < call.num_lanes(); ++lane) {
      const auto begin = mapped.begin() + std::ptrdiff_t(lane * num_operands);
      call.mapped.insert(call.mapped.end(), begin, begin + std::ptrdiff_t(num_operands));
      call.mapped.insert(call.mapped.end(), operands.size() - num_operands, 0);
    }
    return Arrays(bind(primitive, operands, call.to_params()));
  };
}

// Where it is not live, it becomes a lane without examples.
Guard::Rule guard_host_call(const Primitive& primitive) {
  return {{}, [&primitive](const Array& live, std::span<const Array> inputs, const Params& params) {
            HostCall call(params);
            Arrays operands(inputs.begin(), inputs.end());
            std::vector<int> mapped(inputs.size() + 1, 0);  // the lane, and the size that cuts it
            for (std::size_t lane = 0; lane < call.num_lanes(); ++lane) {
              const auto begin = call.mapped.begin() + std::ptrdiff_t(lane * inputs.size());
              mapped.insert(mapped.end(), begin, begin + std::ptrdiff_t(inputs.size()));
              mapped.push_back(0);
            }
            for (Cut& cut : call.cuts)
              if (cut.target < 0) --cut.target;
            call.cuts.push_back({-1, 0});
            call.mapped = mapped;
            call.lanes.insert(0, 1);
            operands.push_back(lax::convert_element_type(live, DType::int32));
            Arrays outputs = bind(primitive, operands, call.to_params());
            for (Array& output : outputs) {
              Shape shape = output.shape();
              shape.erase(0);
              output = lax::reshape(output, shape);
            }
            return outputs;
          }};
}

Tangents jvp_host_call(std::span<const Array>, std::span<const Tangent>,
                       std::span<const Array> outputs, const Params& params) {
  Tangents tangents;
  for (const Array& output : outputs) {
    if (is_differentiable(output.aval()))
      throw MissingRuleError("host_call: `" + params.get<Callable>("function").name() +
                                 "` is a function of the host, and has no derivative",
                             "give host_call jvp= or vjp= (in C++ put custom_jvp or custom_vjp "
                             "around it), or apply stop_gradient to its arguments");
    tangents.push_back(Tangent(output.aval()));
  }
  return tangents;
}

// Flags the positive elements, and counts them in each row.
std::vector<Sample> samples_of_host_call() {
  const auto signs = [](std::span<const Array> inputs) -> Arrays {
    const Array zero = Array::literal(0, inputs[0].dtype());
    const Array positive = lax::convert_element_type(lax::gt(inputs[0], zero), DType::int32);
    return {positive, lax::reduce_sum(positive, std::vector<int>{inputs[0].ndim() - 1})};
  };
  static const Callable& function = *new Callable("signs", std::make_shared<Function>(signs));
  std::vector<Sample> samples;
  for (bool batched : {false, true})
    samples.push_back({{{{{5, 3}, DType::float64}}},
                       {{"function", function},
                        {"dims", Shape{5, 3, 5}},
                        {"ranks", Shape{2, 1}},
                        {"dtypes", std::string("i32 i32")},
                        {"lanes", Shape{}},
                        {"mapped", Shape{}},
                        {"batched", batched},
                        {"cuts", Shape{}}}});
  return samples;
}

Definition& with_rules(Definition&& definition) {
  const Primitive& primitive = definition.primitive();
  return definition.rule<Abstract>(abstract_host_call)
      .rule<Eval>(eval_host_call)
      .rule<Cost>(cost::unknown())
      .rule<Autocast>(Autocast::full)
      .refuse<Spelling>(spelling::no_function)
      .rule<PictureGroup>(PictureGroup::other)
      .refuse<Speculate>("the function may raise, or have an effect")
      .refuse<Motion>("the function may raise, or have an effect")
      .rule<OnHost>("a function of the host")
      .rule<Jvp>(jvp_host_call)
      .refuse<Transpose>("plait cannot see whether a function of the host is linear")
      .rule<Batch>(batch_host_call(primitive))
      .rule<Mask>(mask_host_call(primitive))
      .rule<Guard>(guard_host_call(primitive))
      .rule<Samples>(samples_of_host_call);
}

}  // namespace

constinit const Primitive host_call_p{"host_call"}, ordered_host_call_p{"ordered_host_call"};
static const auto host_call_def =
    with_rules(define(host_call_p, "Runs a function of the host, which has no effect."));
static const auto ordered_host_call_def =
    with_rules(define(ordered_host_call_p, "Runs a function of the host each time, in order."))
        .effectful();

// --- Calling -------------------------------------------------------------------------------------

Arrays bind_host_call(const Callable& function, std::span<const Aval> outputs,
                      std::span<const Array> inputs, const HostCallOptions& options) {
  require_host_calls(function.name());
  HostCall call(Params{{"function", function},
                       {"dims", Shape{}},
                       {"ranks", Shape{}},
                       {"dtypes", std::string()},
                       {"lanes", Shape{}},
                       {"mapped", Shape{}},
                       {"batched", options.batched},
                       {"cuts", Shape{}}});
  call.results.assign(outputs.begin(), outputs.end());
  return bind(options.ordered ? ordered_host_call_p : host_call_p, inputs, call.to_params());
}

Arrays host_call(const Function& function, std::span<const Aval> outputs,
                 std::span<const Array> inputs, const HostCallOptions& options) {
  const std::string& name = options.name;
  auto guarded = [function, name](std::span<const Array> arguments) {
    try {
      return function(arguments);
    } catch (const HostError&) {
      throw;  // from a nested host call
    } catch (const std::exception& error) {
      throw HostError("host_call: `" + name + "` raised: " + error.what(),
                      "mend the function, or what it is given", std::current_exception());
    }
  };
  return bind_host_call(Callable(name, std::make_shared<Function>(guarded)), outputs, inputs,
                        options);
}

Array host_call(const Function& function, const Aval& output, std::initializer_list<Array> inputs,
                const HostCallOptions& options) {
  return host_call(function, std::span(&output, 1),
                   std::span<const Array>(inputs.begin(), inputs.size()), options)[0];
}

std::vector<HostCallSite> host_calls_of(const Jaxpr& jaxpr) {
  std::vector<HostCallSite> sites;
  if (!holds_callable(jaxpr)) return sites;
  for (const Equation& equation : jaxpr->equations) {
    const bool ordered = *equation.primitive == ordered_host_call_p;
    if (ordered || *equation.primitive == host_call_p)
      sites.push_back({equation.params.get<Callable>("function").name(), ordered, equation.source});
    for_each_body(equation.params, [&](const Jaxpr& body) {
      const std::vector<HostCallSite> more = host_calls_of(body);
      sites.insert(sites.end(), more.begin(), more.end());
    });
  }
  return sites;
}

NoHostCalls::NoHostCalls(std::string reason)
    : reason_(std::move(reason)), outer_(std::exchange(innermost_refusal, this)) {}
NoHostCalls::~NoHostCalls() { innermost_refusal = outer_; }

void require_host_calls(const std::string& name) {
  if (innermost_refusal)
    throw ValueError("host_call: `" + name + "` is a function of the host, and " +
                         innermost_refusal->reason_ + " allows none",
                     "write it with plait's functions, or leave that context");
}

}  // namespace plait
