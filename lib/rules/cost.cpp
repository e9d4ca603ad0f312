// The cost of equations and programs, from the Cost and Bodies rules of their primitives. See
// rules/cost.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/bodies.h>
#include <plait/rules/cost.h>
#include <plait/rules/interpret.h>

namespace plait {

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  known &= other.known;
  return *this;
}

Work Work::times(double count) const {
  return {flops * count, bytes_read * count, bytes_written * count, known};
}

double value_of(Dim size) {
  if (size.is_constant()) return double(size.constant());
  throw ValueError("the work of a program depends on the size " + size.to_string(),
                   "instantiate the program first: instantiate(jaxpr, {{\"n\", 128}})");
}
double elements_of(const Shape& shape) {
  double count = 1;
  for (const Dim size : shape) count *= value_of(size);
  return count;
}
double elements_of(const Aval& aval) { return elements_of(aval.shape); }

// --- Bodies --------------------------------------------------------------------------------------

namespace {

// Of several alternatives, the one with the most arithmetic counts. The cost is known where all
// cost the same.
void choose_most(std::vector<BodyRun*>& alternatives) {
  BodyRun* most = nullptr;
  Work of_most;
  bool same = true;
  for (BodyRun* run : alternatives) {
    const Work work = work_of(run->body);
    same &= !most || work == of_most;
    if (!most || work.flops > of_most.flops ||
        (work.flops == of_most.flops && work.bytes() > of_most.bytes())) {
      most = run;
      of_most = work;
    }
  }
  for (BodyRun* run : alternatives) {
    run->times = run == most ? 1 : 0;
    run->known = same;
  }
}

}  // namespace

std::vector<BodyRun> bodies_run(const Equation& equation) {
  const std::vector<Body> bodies = bodies_of(equation);
  std::vector<BodyRun> runs;
  for (const Body& body : bodies)
    runs.push_back({body.sizes.empty() ? body.jaxpr : instantiate(body.jaxpr, body.sizes),
                    value_of(body.times), body.is_known, body.runs == Body::Runs::repeatedly,
                    body.operands});
  std::vector<BodyRun*> alternatives;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (bodies[i].runs == Body::Runs::alternatively) alternatives.push_back(&runs[i]);
  if (!alternatives.empty()) choose_most(alternatives);
  return runs;
}

// --- Equations and programs ----------------------------------------------------------------------

double bytes_of(const Aval& aval) {
  return aval.stack > 0 ? 0 : elements_of(aval) * double(size_of(aval.dtype));
}

Work work_of(const JaxprData& jaxpr, const Equation& equation) {
  std::vector<Aval> inputs, outputs;
  Work work;
  if (const std::vector<BodyRun> runs = bodies_run(equation); !runs.empty()) {
    for (const BodyRun& run : runs) {
      if (run.times > 0) work += work_of(run.body).times(run.times);
      work.known &= run.known;
    }
    return work;
  }
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const Atom& atom = equation.inputs[i];
    inputs.push_back(jaxpr.aval(atom));
    const auto begin = equation.inputs.begin(), here = begin + std::ptrdiff_t(i);
    if (atom.is_var() && std::find(begin, here, atom) == here)
      work.bytes_read += bytes_of(inputs.back());
  }
  for (const Var& var : equation.outputs) {
    outputs.push_back(jaxpr.aval(var));
    work.bytes_written += bytes_of(outputs.back());
  }
  const Primitive& primitive = *equation.primitive;
  if (const Cost::Rule* rule = Cost::table().find(primitive))
    (*rule)(work, inputs, outputs, equation.params);
  else if (Decompose::table().find(primitive))
    work = work_of(decomposition(primitive, inputs, equation.params));
  else
    work.known = false;
  return work;
}

Work work_of(const Jaxpr& jaxpr) {
  struct WorkOfProgram : Property<Work> {};
  return *jaxpr->memo.get(WorkOfProgram{}, [&] {
    Work work;
    for (const Equation& equation : jaxpr->equations) work += work_of(*jaxpr, equation);
    return work;
  });
}

// --- Time ----------------------------------------------------------------------------------------

double estimated_time(const Jaxpr& program, const Equation& equation, double unknown) {
  constexpr double alone = 60, element = 0.2, flop = 0.02;
  double time = 0;
  const std::vector<BodyRun> runs = bodies_run(equation);
  for (const BodyRun& run : runs)
    if (run.times > 0)
      time += (run.is_loop && !run.known ? unknown : run.times) * estimated_time(run.body, unknown);
  if (!runs.empty()) return time;
  std::vector<Aval> inputs, outputs;
  for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
  for (Var var : equation.outputs) outputs.push_back(program->aval(var));
  double most = 0;
  for (const std::vector<Aval>* avals : {&inputs, &outputs})
    for (const Aval& aval : *avals) most = std::max(most, elements_of(in_memory(aval)));
  Work work;
  if (const Cost::Rule* rule = Cost::table().find(*equation.primitive))
    (*rule)(work, inputs, outputs, equation.params);
  return alone + std::max(element * most, flop * work.flops);
}

double estimated_time(const Jaxpr& program, double unknown) {
  if (!program->sizes.empty()) return 0;
  struct EstimatedTime {
    using Result = double;
    double unknown;
    bool operator==(const EstimatedTime&) const = default;
  };
  return *program->memo.get(EstimatedTime{unknown}, [&] {
    double time = 0;
    for (const Equation& equation : program->equations)
      time += estimated_time(program, equation, unknown);
    return time;
  });
}

}  // namespace plait
