// Recipe: a port to new hardware. A pretend accelerator that has memory of its own: programs are
// uploaded to it once, as commands; a call copies inputs in, runs the commands there, and copies
// results out. It computes in rows of 16 float32, and nothing else: a program of other dtypes, or a
// primitive that is not among its commands, is left to decompositions and to the reference.
//
// Prints how a training step is cut between it and the reference, and what the laws say of it; the
// exit code is that of conformance.
// SPDX-License-Identifier: Apache-2.0
#include <plait/backend.h>
#include <plait/families.h>
#include <plait/plait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

using namespace plait;

namespace {

// --- The device ----------------------------------------------------------------------------------

constexpr std::int64_t lanes = 16;  // of its registers, and what arrays are padded to

std::int64_t padded(std::int64_t elements) { return (elements + lanes - 1) / lanes * lanes; }

// Its memory: one block for a call, in which arrays have addresses. Nothing outside can point into
// it; arrays come and go by copies.
class DeviceMemory {
 public:
  explicit DeviceMemory(float* base) : base_(base) {}
  float* at(std::int64_t address) const { return base_ + address; }
  void upload(const View& from, std::int64_t address) const {
    const Buffer dense = Buffer::copy_of(from);  // inputs may have any strides
    std::memcpy(at(address), dense.data(), std::size_t(dense.bytes()));
  }
  void download(std::int64_t address, const View& to) const {
    std::memcpy(to.data, at(address), std::size_t(to.size()) * sizeof(float));
  }

 private:
  float* base_;
};

// What it can be told to do with rows of 16, given addresses of arrays.
using Instruction = void (*)(const float* a, const float* b, const float* c, float* out);
template <class F>
constexpr Instruction rows(F) {
  return [](const float* a, const float* b, const float* c, float* out) {
    for (std::int64_t i = 0; i < lanes; ++i) out[i] = F()(a[i], b ? b[i] : 0, c ? c[i] : 0);
  };
}

// Whole primitives: 12 elementwise ones, and a product of matrices. `max` and `min` of NaN are NaN.
const std::map<std::string_view, Instruction> instructions = {
    {"add", rows([](float a, float b, float) { return a + b; })},
    {"sub", rows([](float a, float b, float) { return a - b; })},
    {"mul", rows([](float a, float b, float) { return a * b; })},
    {"div", rows([](float a, float b, float) { return a / b; })},
    {"neg", rows([](float a, float, float) { return -a; })},
    {"abs", rows([](float a, float, float) { return std::fabs(a); })},
    {"max", rows([](float a, float b, float) { return a != a || a > b ? a : b; })},
    {"min", rows([](float a, float b, float) { return a != a || a < b ? a : b; })},
    {"sqrt", rows([](float a, float, float) { return std::sqrt(a); })},
    {"exp", rows([](float a, float, float) { return std::exp(a); })},
    {"log", rows([](float a, float, float) { return std::log(a); })},
    {"tanh", rows([](float a, float, float) { return std::tanh(a); })},
};

// --- Commands ------------------------------------------------------------------------------------

struct Command {
  Instruction instruction = nullptr;  // none: the product of matrices
  std::int64_t operands[3] = {-1, -1, -1}, result = 0, size = 0;
  bool is_scalar[3] = {};
  std::int64_t m = 0, k = 0, n = 0;
};

std::int64_t elements(const Aval& aval) { return num_elements(aval.shape.to_sizes()); }

// A group as commands: every var and literal has an address.
class Commands final : public Kernel {
 public:
  explicit Commands(const Jaxpr& group) {
    const JaxprData& data = *group;
    std::vector<std::int64_t> address;
    for (const Aval& aval : data.avals) address.push_back(place(elements(aval)));
    for (int i = 0; i < data.num_binders; ++i) inputs_.push_back(address[std::size_t(i)]);
    auto address_of = [&](const Atom& atom) {
      if (atom.is_var()) return address[std::size_t(atom.var().id)];
      literals_.emplace_back(place(1), float(atom.literal().as_double()));
      return literals_.back().first;
    };
    for (const Equation& equation : data.equations) {
      const Aval& out = data.aval(equation.outputs[0]);
      Command command;
      command.result = address[std::size_t(equation.outputs[0].id)];
      command.size = elements(out);
      for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
        command.operands[i] = address_of(equation.inputs[i]);
        command.is_scalar[i] = data.aval(equation.inputs[i]).rank() == 0 && out.rank() > 0;
      }
      if (const auto found = instructions.find(equation.primitive->name());
          found != instructions.end()) {
        command.instruction = found->second;
      } else {
        const Sizes64 shape = out.shape.to_sizes();
        command.m = shape[0], command.n = shape[1];
        command.k = data.aval(equation.inputs[0]).shape.to_sizes()[1];
      }
      commands_.push_back(command);
    }
    for (const Atom& atom : data.outputs) outputs_.push_back(address_of(atom));
  }

  // Its memory lasts for one call: the plan gives it, and calls from several threads do not meet.
  std::int64_t scratch_bytes() const override { return size_ * std::int64_t(sizeof(float)); }

  void enqueue(std::span<const View> in, std::span<const View> out, void* scratch,
               const Launch&) const override {
    const DeviceMemory memory(static_cast<float*>(scratch));
    for (std::size_t i = 0; i < in.size(); ++i) memory.upload(in[i], inputs_[i]);
    for (const auto& [address, value] : literals_) *memory.at(address) = value;
    for (const Command& command : commands_) execute(command, memory);
    for (std::size_t i = 0; i < out.size(); ++i) memory.download(outputs_[i], out[i]);
  }

  std::string note() const override {
    return std::to_string(commands_.size()) + " commands, " + std::to_string(size_ * 4) +
           " bytes on the device";
  }

 private:
  std::int64_t place(std::int64_t count) {
    const std::int64_t address = size_;
    size_ += padded(count);
    return address;
  }

  static void execute(const Command& command, const DeviceMemory& memory) {
    if (!command.instruction) return multiply(command, memory);
    float splats[3][lanes];
    const float* from[3] = {};
    for (int i = 0; i < 3; ++i) {
      if (command.operands[i] < 0) continue;
      from[i] = memory.at(command.operands[i]);
      if (command.is_scalar[i]) from[i] = std::fill_n(splats[i], lanes, *from[i]) - lanes;
    }
    for (std::int64_t row = 0; row < padded(command.size); row += lanes) {
      auto at = [&](int i) { return from[i] && !command.is_scalar[i] ? from[i] + row : from[i]; };
      command.instruction(at(0), at(1), at(2), memory.at(command.result) + row);
    }
  }

  static void multiply(const Command& c, const DeviceMemory& memory) {
    const float *a = memory.at(c.operands[0]), *b = memory.at(c.operands[1]);
    float* out = memory.at(c.result);
    for (std::int64_t i = 0; i < c.m; ++i)
      for (std::int64_t j = 0; j < c.n; ++j) {
        float sum = 0;
        for (std::int64_t x = 0; x < c.k; ++x) sum += a[i * c.k + x] * b[x * c.n + j];
        out[i * c.n + j] = sum;
      }
  }

  std::vector<std::int64_t> inputs_, outputs_;
  std::vector<std::pair<std::int64_t, float>> literals_;
  std::vector<Command> commands_;
  std::int64_t size_ = 0;  // floats
};

// --- The backend ---------------------------------------------------------------------------------

class Accelerator final : public Backend {
 public:
  std::string_view name() const override { return "accelerator"; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device) const override {
    const bool is_product = *equation.primitive == dot_general_p;
    if (!is_product && !instructions.contains(equation.primitive->name())) return Support::no();
    for (const Aval& aval : inputs)
      if (aval.dtype != DType::float32) return Support::no("only float32");
    if (outputs[0].dtype != DType::float32) return Support::no("only float32");
    if (!is_product) return Support::yes();
    const bool is_matrices = inputs[0].rank() == 2 && inputs[1].rank() == 2 &&
                             outputs[0].rank() == 2 &&
                             equation.params.ints("lhs_contract") == std::vector<int>{1} &&
                             equation.params.ints("rhs_contract") == std::vector<int>{0};
    return is_matrices ? Support::yes() : Support::no("only products of matrices");
  }

  // What feeds each other stays on the device. The second group may be one equation that is
  // nobody's yet, which some backends take in spite of what supports says: not this one.
  bool joins(const Jaxpr& program, std::span<const int>, std::span<const int> group,
             std::span<const int> more) const override {
    return group.size() + more.size() <= 64 &&
           std::all_of(more.begin(), more.end(), [&](int index) {
             const Equation& equation = program->equations[std::size_t(index)];
             std::vector<Aval> inputs, outputs;
             for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
             for (Var var : equation.outputs) outputs.push_back(program->aval(var));
             return bool(supports(equation, inputs, outputs, {}));
           });
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target&) const override {
    return std::make_unique<Commands>(group);
  }
};

const bool registered = register_backend(std::make_unique<Accelerator>(), Preference::library);

Array loss(const Array& w, const Array& x, const Array& y) {
  const Array error = lax::sub(lax::tanh(lax::dot(x, w)), y);
  return numpy::mean(lax::mul(error, error));
}

}  // namespace

int main() {
  const Array w = lax::full({4, 2}, 0.5, DType::float32),
              x = lax::full({8, 4}, 0.25, DType::float32),
              y = lax::full({8, 2}, 1.0, DType::float32);
  const Backend &mine = *find_backend("accelerator"), &reference = *find_backend("reference");
  const Jaxpr step = make_jaxpr(value_and_grad(loss), w, x, y).jaxpr;
  std::puts(compile(step, {.backends = {&mine, &reference}})->explain().c_str());
  std::printf("loss %.4f\n\n", value_and_grad(loss)(w, x, y).first.item<float>());

  const ConformanceReport report = conformance(mine);
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}
