// See several_executable.h.
// SPDX-License-Identifier: Apache-2.0
#include "run/several_executable.h"

#include <plait/base/error.h>
#include <plait/base/internal_error.h>
#include <plait/base/interrupt.h>
#include <plait/base/transfer.h>

namespace plait {
namespace {

class SeveralExecutable final : public Executable {
 public:
  explicit SeveralExecutable(Stages stages) : all_(std::move(stages)) {}

  void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const override {
    if (inputs.size() != all_.num_inputs)
      throw InternalError("an executable of " + std::to_string(all_.num_inputs) +
                          " inputs was called with " + std::to_string(inputs.size()));
    std::vector<Buffer> made(all_.num_slots);
    const auto in = [&](Slot slot) {
      const auto i = std::size_t(slot);
      return i < inputs.size() ? inputs[i] : &made[i];
    };
    for (const Stage& stage : all_.stages) {
      check_interrupts();
      for (const Transfer& transfer : stage.transfers)
        made[std::size_t(transfer.to)] = in(transfer.from)->on(transfer.device);
      if (stage.part) {
        std::vector<const Buffer*> operands;
        for (const Slot slot : stage.part->inputs) operands.push_back(in(slot));
        std::vector<Buffer> results(stage.part->outputs.size());
        stage.part->executable->run(operands, results);
        for (std::size_t i = 0; i < results.size(); ++i)
          made[std::size_t(stage.part->outputs[i])] = std::move(results[i]);
      }
      for (const Slot slot : stage.last_used) made[std::size_t(slot)] = Buffer();
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = *in(all_.results[i]);
  }

  void run_into(std::span<const Buffer* const> inputs,
                std::span<const Buffer* const> outputs) const override {
    std::vector<Buffer> results(outputs.size());
    run(inputs, results);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Stream stream = Stream::current(outputs[i]->device());
      const Buffer result = results[i].on(outputs[i]->device());
      result.storage().wait_to_read(stream);
      outputs[i]->storage().wait_to_write(stream);
      copy(result.placed(), outputs[i]->placed(), stream);
      outputs[i]->storage().note_written(stream);
    }
  }

  std::unique_ptr<Session> open() const override {
    throw BackendError("a program that puts values on several devices cannot be a loop's body",
                       "call device_put outside of it");
  }
  std::vector<bool> carries_in_place() const override {
    return std::vector<bool>(all_.num_carries, false);
  }
  const std::vector<Aval>& outputs() const override { return all_.outputs; }
  bool moves_values() const override { return true; }
  // As if all parts ran at once: those of several devices may.
  std::int64_t arena_bytes() const override { return sum(&Executable::arena_bytes); }
  std::int64_t peak_bytes() const override { return sum(&Executable::peak_bytes); }

  std::string explain() const override {
    std::string text;
    for (const Stage& stage : all_.stages) {
      for (const Transfer& transfer : stage.transfers)
        text +=
            "copied to " + transfer.device.to_string() + ": " + transfer.aval.to_string() + "\n";
      if (stage.part)
        text += "on " + stage.part->device.to_string() + ":\n" + stage.part->executable->explain();
    }
    return text;
  }

 private:
  std::int64_t sum(std::int64_t (Executable::*of)() const) const {
    std::int64_t bytes = 0;
    for (const Stage& stage : all_.stages)
      if (stage.part) bytes += (*stage.part->executable.*of)();
    return bytes;
  }

  const Stages all_;
};

}  // namespace

std::shared_ptr<const Executable> make_several_executable(Stages stages) {
  return std::make_shared<const SeveralExecutable>(std::move(stages));
}

}  // namespace plait
