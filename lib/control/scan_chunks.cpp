// A scan in chunks of several steps: unrolled, or segments that reverse mode rematerialises.
//
// The xs are cut along their first axis: a scan runs over the whole chunks, and a shorter chunk
// takes the remaining steps. It is built from scan and checkpoint alone, so transforms need no new
// rules.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/bodies.h>

#include "control/bodies.h"

namespace plait {
namespace {

Array slice_rows(const Array& x, std::int64_t begin, std::int64_t end) {
  return lax::slice_in_dim(x, Dim(begin), Dim(end));
}
Arrays slice_rows(std::span<const Array> xs, std::int64_t begin, std::int64_t end) {
  Arrays results;
  for (const Array& x : xs) results.push_back(slice_rows(x, begin, end));
  return results;
}

// Reshapes n * size rows to n chunks of size rows, and back.
Array cut(const Array& x, std::int64_t size) {
  Shape shape = x.shape();
  shape[0] = x.shape(0).constant() / size;
  shape.insert(1, size);
  return lax::reshape(x, shape);
}
Array joined(const Array& chunks) {
  Shape shape = chunks.shape();
  shape.erase(0);
  shape[0] = chunks.shape(0).constant() * chunks.shape(1).constant();
  return lax::reshape(chunks, shape);
}

// Runs `size` steps of a scan on these carries and rows.
using ChunkScan =
    std::function<flat::Scanned(const Arrays& carry, const Arrays& xs, std::int64_t size)>;

flat::Scanned scan_chunks(const ChunkScan& chunk, const Arrays& init, const Arrays& xs,
                          std::int64_t length, std::int64_t size, bool reverse,
                          std::string_view name) {
  const std::int64_t num_whole = length / size, rest = length % size;
  const std::int64_t first = reverse ? rest : 0;  // the shorter chunk runs last
  const Arrays whole = slice_rows(xs, first, first + num_whole * size);
  flat::Scanned done;
  if (num_whole == 1) {
    done = chunk(init, whole, size);
  } else {
    Arrays chunks;
    for (const Array& x : whole) chunks.push_back(cut(x, size));
    const std::size_t n = init.size();
    const Function body = [&](std::span<const Array> now) {
      const flat::Scanned step = chunk(slice(now, 0, n), slice(now, n, now.size()), size);
      return concatenate(step.carry, step.ys);
    };
    done = flat::scan(body, init, chunks, {Dim(num_whole), reverse}, name);
    for (Array& y : done.ys) y = joined(y);
  }
  if (rest == 0) return done;
  const std::int64_t begin = reverse ? 0 : length - rest;
  const flat::Scanned last = chunk(done.carry, slice_rows(xs, begin, begin + rest), rest);
  for (std::size_t i = 0; i < done.ys.size(); ++i)
    done.ys[i] = lax::concatenate(
        reverse ? Arrays{last.ys[i], done.ys[i]} : Arrays{done.ys[i], last.ys[i]}, 0);
  return {last.carry, done.ys};
}

Array without_first(const Array& row) {
  Shape shape = row.shape();
  shape.erase(0);
  return lax::reshape(row, shape);
}

flat::Scanned unrolled(const Function& step, const Arrays& init, const Arrays& xs,
                       std::int64_t size, bool reverse) {
  Arrays carry = init;
  std::vector<Arrays> ys;  // by output, each by row
  for (std::int64_t k = 0; k < size; ++k) {
    const std::int64_t i = reverse ? size - 1 - k : k;
    Arrays now = carry;
    for (const Array& x : xs) now.push_back(without_first(slice_rows(x, i, i + 1)));
    const Arrays outputs = step(now);
    carry = slice(outputs, 0, init.size());
    ys.resize(outputs.size() - init.size(), Arrays(std::size_t(size)));
    for (std::size_t y = 0; y < ys.size(); ++y) {
      const Array& output = outputs[init.size() + y];
      ys[y][std::size_t(i)] = batch_to_front({output, std::nullopt}, 1);
    }
  }
  flat::Scanned done{carry, {}};
  for (const Arrays& parts : ys) done.ys.push_back(lax::concatenate(parts, 0));
  return done;
}

}  // namespace

flat::Scanned scan_in_chunks(const Function& body, std::span<const Array> init,
                             std::span<const Array> given, std::int64_t length,
                             const flat::ScanOptions& options, std::string_view name) {
  Arrays carry(init.begin(), init.end());
  const Arrays xs(given.begin(), given.end());
  const Traced traced = trace_carried(body, carry, slices_of(avals_of(xs)), name);
  const Function step = [&](std::span<const Array> now) {
    return eval_jaxpr(traced.jaxpr, concatenate(slice(now, 0, now.size()), traced.captured));
  };
  if (!options.checkpoints) {
    const ChunkScan chunk = [&](const Arrays& carry, const Arrays& xs, std::int64_t size) {
      return unrolled(step, carry, xs, size, options.reverse);
    };
    const std::int64_t size = options.unroll == 0 ? length : std::min(options.unroll, length);
    return scan_chunks(chunk, carry, xs, length, size, options.reverse, name);
  }
  // Chen et al. 2016, Training deep nets with sublinear memory cost: the carries at the starts of
  // segments are kept, and one segment at a time is rematerialised.
  const ChunkScan segment = [&](const Arrays& carry, const Arrays& xs, std::int64_t size) {
    const std::size_t n = carry.size();
    const Function steps = [&](std::span<const Array> now) {
      flat::ScanOptions inner{Dim(size), options.reverse, options.unroll};
      const flat::Scanned done = flat::scan(step, now.first(n), now.subspan(n), inner, name);
      return concatenate(done.carry, done.ys);
    };
    const Arrays outputs = flat::checkpoint(steps, concatenate(carry, xs), flat::nothing_saveable(),
                                            std::string(name));
    return flat::Scanned{slice(outputs, 0, n), slice(outputs, n, outputs.size())};
  };
  const std::int64_t size = (length - 1) / *options.checkpoints + 1;
  return scan_chunks(segment, carry, xs, length, size, options.reverse, name);
}

void require_checkpoints(std::optional<std::int64_t> checkpoints, std::string_view name) {
  if (checkpoints && *checkpoints < 1)
    throw ValueError(std::string(name) + ": checkpoints is " + std::to_string(*checkpoints),
                     "give how many carries to keep, 1 or more, or leave it out to keep all");
}

}  // namespace plait
