// The laws of a backend over every primitive and dtype. See conformance.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/conformance.h>

#include <plait/compile/compile.h>
#include <plait/inspect/tolerance.h>
#include <plait/primitives/fourier.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/inline.h>
#include <plait/trace/wait.h>

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "inspect/kernel_laws.h"

namespace plait {
namespace {

using laws::Case;
using State = ConformanceRow::State;

constexpr DType dtypes[] = {DType::float64, DType::float32,    DType::bfloat16, DType::float16,
                            DType::int32,   DType::int64,      DType::int16,    DType::int8,
                            DType::uint64,  DType::uint32,     DType::uint16,   DType::uint8,
                            DType::bool_,   DType::complex128, DType::complex64};
// Examples at once: odd sizes for every vector width; and, for float32, enough to divide among
// threads.
constexpr std::int64_t many = 101, most = 20011;

// The case in another dtype in place of float64, or of int32 that is not an index where it has no
// float64.
std::optional<Case> in_dtype(const Case& one, DType dtype) {
  auto has = [&](DType own) {
    return std::any_of(one.inputs.begin(), one.inputs.end(),
                       [&](const Sample::Input& input) { return input.aval.dtype == own; });
  };
  if (has(DType::float64)) return dtype == DType::float64 ? one : laws::with_dtype(one, dtype);
  using Values = Sample::Input::Values;
  Case other = one;
  bool changed = false;
  for (Sample::Input& input : other.inputs) {
    const bool is_number = input.values != Values::indices && input.values != Values::key;
    if (input.aval.dtype != DType::int32 || !is_number) continue;
    input.aval.dtype = dtype;
    changed = true;
  }
  // A case without such inputs is tried unchanged, once.
  if (!changed) return dtype == DType::float64 ? std::optional<Case>(one) : std::nullopt;
  try {
    if (other.primitive) infer(*other.primitive, other.avals(), other.params);
    return other;
  } catch (const Error&) {
    return std::nullopt;
  }
}

DType dtype_of(const Case& one) {
  for (const Sample::Input& input : one.inputs)
    if (is_inexact(input.aval.dtype)) return input.aval.dtype;
  return one.inputs.empty() ? DType::float64 : one.inputs[0].aval.dtype;
}

// Values that arithmetic must propagate: NaN, infinities, signed zeros, every step elements.
Array special_values(const Array& like, std::int64_t step) {
  const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
  Array result = laws::converted(like, like.dtype());
  Buffer buffer = result.buffer();
  visit_dtype(like.dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_floating_point_v<T> || detail::is_half<T>)
      for (std::int64_t i = 0; i < num_elements(buffer.shape()); i += step)
        static_cast<T*>(buffer.mutable_data())[i] =
            T(float(special[std::size_t(i / step) % std::size(special)]));
  });
  return result;
}

// Tries one primitive or composite in one dtype.
class Trial {
 public:
  Trial(const Backend& backend, const ConformanceOptions& options, ConformanceRow& row)
      : backend_(backend), options_(options), row_(row) {}

  // False when the case tests nothing: it holds no equation, or cannot be traced.
  bool run(const Case& one) {
    if (row_.state == State::failed) return true;  // the first failure is enough
    Jaxpr program;
    try {
      program = make_jaxpr(one.function(), one.avals(), "conformance").jaxpr;
    } catch (const Error&) {
      return false;
    }
    if (program->equations.empty() || holds_callable(program)) return false;
    try {
      check(one, program);
    } catch (const std::exception& error) {
      fail(one, std::string("threw: ") + error.what());
    }
    return true;
  }

 private:
  void check(const Case& one, const Jaxpr& program) {
    const Arrays inputs = one.values();
    const bool is_taken = std::any_of(program->equations.begin(), program->equations.end(),
                                      [&](const Equation& e) { return takes(*program, e); });
    if (!is_taken) return;
    if (!options_.runs) return void(++row_.samples);
    if (program->equations.size() == 1) {
      if (auto found = kernel_law(program, inputs)) return fail(one, *found);
      for (const Arrays& special : with_special_values(program->equations[0], inputs))
        if (auto found = kernel_law(program, special))
          return fail(one, "NaN and infinities: " + *found);
    }
    std::vector<std::pair<std::string, Jaxpr>> programs{{"f", program}};
    if (options_.programs) add_transformed(one, inputs, programs);
    for (const auto& [name, each] : programs)
      if (auto found = program_law(each)) return fail(one, name + ": " + *found);
    ++row_.samples;
  }

  // For elementwise primitives, special values are in all inputs at once; for others, in one input
  // at a time, and so few that most sums are numbers. Not in weights that padding multiplies: some
  // libraries skip it, and others compute zero times infinity. Nor in signals, whose spectra are
  // NaN wherever the order of sums has it.
  static std::vector<Arrays> with_special_values(const Equation& equation, const Arrays& inputs) {
    if (Pointwise::table().find(*equation.primitive)) {
      Arrays special;
      for (const Array& input : inputs) special.push_back(special_values(input, 2));
      return {special};
    }
    std::vector<Arrays> all;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_floating(inputs[i].dtype()) || (i > 0 && *equation.primitive == conv_p) ||
          *equation.primitive == fft_p)
        continue;
      all.push_back(inputs);
      all.back()[i] = special_values(inputs[i], 1 + num_elements(inputs[i].shape().to_sizes()) / 5);
    }
    return all;
  }

  // Whether the backend claims an equation; records the reason if not.
  bool takes(const JaxprData& program, const Equation& equation) {
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program.aval(atom));
    for (Var var : equation.outputs) outputs.push_back(program.aval(var));
    for (const std::vector<Aval>* avals : {&inputs, &outputs})
      for (const Aval& aval : *avals)
        if (aval.stack > 0) return false;
    const Support support = backend_.supports(equation, inputs, outputs, options_.device);
    if (support) return true;
    if (!row_.detail.empty()) return false;
    const Inline::Rule* inlining = Inline::table().find(*equation.primitive);
    const bool is_claimable = inlining && inlining->when == Inline::When::unclaimed;
    row_.detail = Eval::table().find(*equation.primitive)          ? "reference"
                  : holds_bodies(equation.params) && !is_claimable ? "control"
                                                                   : "decomposed";
    if (!support.reason.empty()) row_.detail += ": " + support.reason;
    return false;
  }

  std::optional<std::string> kernel_law(const Jaxpr& program, const Arrays& inputs) const {
    std::vector<Buffer> buffers;
    for (const Array& input : inputs) buffers.push_back(input.buffer());
    return laws::kernel_violation(backend_, options_.device, program, inputs,
                                  run_without(program, buffers));
  }

  // The reference backend, and loops and branches over it: these run everything.
  static std::vector<const Backend*> everything() {
    std::vector<const Backend*> backends;
    for (const char* name : {"control", "reference"})
      if (const Backend* backend = find_backend(name)) backends.push_back(backend);
    return backends;
  }
  static Arrays run_without(const Jaxpr& program, std::span<const Buffer> inputs) {
    Arrays results;
    for (const Buffer& buffer : compile(program, {.backends = everything()})->run(inputs))
      results.push_back(Array(buffer));
    return results;
  }

  // Programs that transforms make from the case.
  void add_transformed(const Case& one, const Arrays& inputs,
                       std::vector<std::pair<std::string, Jaxpr>>& programs) const {
    const Function f = one.function();
    std::vector<bool> wrt;
    for (const Array& input : inputs) wrt.push_back(is_differentiable(input.aval()));
    auto add = [&](const char* name, const std::function<Jaxpr()>& make) {
      try {
        programs.emplace_back(name, make());
      } catch (const Error&) {
        // A named refusal does not concern the backend.
      }
    };
    add("vmap of f", [&] {
      const std::vector<std::optional<int>> dims(inputs.size(), 0);
      return batch_jaxpr(make_jaxpr(f, one.avals(), "conformance").jaxpr, 3, dims)->jaxpr;
    });
    if (std::find(wrt.begin(), wrt.end(), true) == wrt.end()) return;
    add("gradient of f", [&] {
      return make_jaxpr(
                 [&](std::span<const Array> x) {
                   const flat::Pullback pullback = flat::vjp(f, x, wrt);
                   Tangents cotangents;
                   for (const Array& output : pullback.outputs)
                     cotangents.push_back(is_differentiable(output.aval())
                                              ? Tangent(output)
                                              : Tangent(output.aval()));
                   Arrays results;
                   for (const Tangent& tangent : pullback.pull(cotangents))
                     results.push_back(tangent.instantiate());
                   return results;
                 },
                 one.avals(), "conformance")
          .jaxpr;
    });
  }

  // Requires the result of the backend with the reference to equal that of the reference alone.
  std::optional<std::string> program_law(const Jaxpr& program) const {
    std::vector<Buffer> inputs;
    for (std::size_t i = 0; i < program->input_avals().size(); ++i) {
      const Aval& aval = program->input_avals()[i];
      if (aval.stack > 0) return std::nullopt;
      const auto values =
          is_inexact(aval.dtype) ? Sample::Input::Values::unit : Sample::Input::Values::boolean;
      inputs.push_back(laws::values_for({aval, values, 2}, 5 + unsigned(i)).buffer());
    }
    Arrays wanted;
    try {
      wanted = run_without(program, inputs);
    } catch (const Error&) {
      return std::nullopt;  // these values are refused: an index, a check
    }
    // On a device, what it leaves runs on the other backends that are there.
    std::vector<const Backend*> backends =
        options_.device.is_host() ? everything() : backends_of(options_.device);
    std::erase(backends, &backend_);
    backends.insert(backends.begin(), &backend_);
    for (Buffer& input : inputs) input = input.on(options_.device);
    Arrays given;
    const CompileOptions wanted_options{.device = options_.device, .backends = std::move(backends)};
    for (const Buffer& buffer : compile(program, wanted_options)->run(inputs))
      given.push_back(Array(buffer));
    return laws::difference(given, wanted);
  }

  void fail(const Case& one, const std::string& what) {
    row_.state = State::failed;
    row_.detail = one.to_string() + ": " + what;
  }

  const Backend& backend_;
  const ConformanceOptions& options_;
  ConformanceRow& row_;
};

// A row for each dtype that the cases support.
void try_cases(const Backend& backend, const ConformanceOptions& options, const std::string& name,
               const std::vector<Case>& cases, std::vector<ConformanceRow>& rows) {
  std::map<DType, ConformanceRow> by_dtype;
  const auto is_wanted = [&](DType dtype) {
    const std::vector<DType>& wanted = options.dtypes;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), dtype) != wanted.end();
  };
  for (const Case& one : cases)
    for (DType dtype : dtypes) {
      const std::optional<Case> other = in_dtype(one, dtype);
      if (!other) continue;
      const DType key = dtype_of(*other);
      if (!is_wanted(key)) continue;
      auto [at, is_first] = by_dtype.try_emplace(key);
      ConformanceRow& row = at->second;
      row.primitive = name;
      row.dtype = key;
      const bool asked = Trial(backend, options, row).run(*other);
      if (is_first && !asked) by_dtype.erase(at);
    }
  // In float32, enough examples for several threads; kernels only.
  for (const Case& one : cases) {
    const auto row = by_dtype.find(DType::float32);
    if (!options.runs || row == by_dtype.end() || row->second.samples == 0) break;
    const std::optional<Case> larger = laws::enlarged(one, most);
    const auto other = larger ? laws::with_dtype(*larger, DType::float32) : std::nullopt;
    if (!other) continue;
    ConformanceOptions alone = options;
    alone.programs = false;
    Trial(backend, alone, row->second).run(*other);
    break;
  }
  for (auto& [dtype, row] : by_dtype) {
    if (row.state != State::failed && row.samples == 0) row.state = State::refused;
    if (row.state == State::passed) row.detail.clear();
    rows.push_back(std::move(row));
  }
}

std::string names_of(const std::vector<const ConformanceRow*>& rows) {
  std::string text;
  for (const ConformanceRow* row : rows)
    text += (text.empty() ? "" : " ") + std::string(short_name_of(row->dtype));
  return text;
}

}  // namespace

int ConformanceReport::count(State state) const {
  return int(std::count_if(rows.begin(), rows.end(),
                           [&](const ConformanceRow& row) { return row.state == state; }));
}

std::string ConformanceReport::to_string() const {
  constexpr std::size_t width = 24;
  std::string text;
  auto line = [&](const std::string& name, const std::string& rest) {
    text += name + std::string(name.size() < width ? width - name.size() : 1, ' ') + rest + "\n";
  };
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    std::map<std::string, std::vector<const ConformanceRow*>> refused;
    std::vector<const ConformanceRow*> good;
    for (; end < rows.size() && rows[end].primitive == rows[begin].primitive; ++end) {
      if (rows[end].state == State::passed) good.push_back(&rows[end]);
      if (rows[end].state == State::refused) refused[rows[end].detail].push_back(&rows[end]);
    }
    if (!good.empty()) line(rows[begin].primitive, "passed   " + names_of(good));
    for (const auto& [why, these] : refused)
      line(rows[begin].primitive,
           "refused  " + names_of(these) + (why.empty() ? "" : "  (" + why + ")"));
    for (; begin < end; ++begin)
      if (rows[begin].state == State::failed)
        line(rows[begin].primitive, "FAILED   " + std::string(short_name_of(rows[begin].dtype)) +
                                        "  " + rows[begin].detail);
  }
  return text + backend + ": " + std::to_string(count(State::passed)) + " passed, " +
         std::to_string(count(State::refused)) +
         " refused (run by decomposition or the reference), " +
         std::to_string(count(State::failed)) + " failed";
}

ConformanceReport conformance(const Backend& backend, const ConformanceOptions& options) {
  ConformanceReport report{std::string(backend.name()), {}};
  const Waiting waiting;
  auto is_wanted = [&](const std::string& name) {
    return options.primitives.empty() ||
           std::find(options.primitives.begin(), options.primitives.end(), name) !=
               options.primitives.end();
  };
  const std::vector<Case> large = laws::large_cases();
  for (const std::string& name : options.primitives) {
    const bool is_composite =
        std::any_of(large.begin(), large.end(), [&](const Case& one) { return one.name == name; });
    if (!find_primitive(name) && !is_composite)
      throw ValueError("conformance: there is no primitive '" + name + "'",
                       "name a primitive, as plait.rules lists them, or a composite");
  }
  for (const PrimitiveInfo* info : laws::primitives_under_law()) {
    const std::string name(info->primitive->name());
    if (!is_wanted(name) || info->primitive->is_effectful()) continue;
    // Its sample is a program for the CPU.
    if (*info->primitive == device_put_p && !options.device.is_host()) continue;
    std::vector<Case> cases;
    try {
      cases = laws::cases_of(*info->primitive);
    } catch (const MissingRuleError& error) {
      if (!options.primitives.empty()) throw;
      // A primitive of the user's: it cannot be tried, and the others can.
      report.rows.push_back({name, DType::float64, State::refused, 0, error.problem()});
      continue;
    }
    for (const Case& one : cases)
      if (std::optional<Case> larger = laws::enlarged(one, many)) {
        cases.push_back(std::move(*larger));
        break;
      }
    for (const Case& one : large)
      if (one.name == name) cases.push_back(one);
    try_cases(backend, options, name, cases, report.rows);
  }
  for (const Case& one : large)
    if (is_wanted(one.name) && !one.primitive)
      try_cases(backend, options, one.name, {one}, report.rows);
  return report;
}

ConformanceReport conformance(const std::string& backend, const ConformanceOptions& options) {
  return conformance(backend_named(backend), options);
}

const Backend& backend_named(const std::string& name, std::span<const std::string> modules) {
  for (const std::string& path : modules)
    if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      const char* reason = dlerror();
      throw ValueError(
          "the module " + path + " cannot be loaded: " + (reason ? reason : "nobody says why"),
          "give the path of a shared object that registers a backend");
    }
  if (const Backend* backend = find_backend(name)) return *backend;
  std::string known;
  for (const Backend* one : backends_of())
    known += (known.empty() ? "" : ", ") + std::string(one->name());
  for (const MissingBackend& missing : missing_backends())
    if (missing.name == name)
      throw BackendError("the backend " + name + " cannot be used here: " + missing.reason,
                         "install what it needs, or name one of " + known);
  throw ValueError("there is no backend '" + name + "'",
                   "name one of " + known + ", or load the module that registers it");
}

}  // namespace plait
