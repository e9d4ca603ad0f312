// Communication of ranks inside compiled programs. See include/plait/primitives/communicate.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/communicator.h>
#include <plait/base/source.h>
#include <plait/primitives/communicate.h>
#include <plait/primitives/families.h>
#include <plait/rules/autocast.h>
#include <plait/rules/interpret.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <cstring>
#include <numeric>

#include "base/collectives.h"
#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using places::axis_of;

// The ranks along an axis through this one, in the order of their places.
Ranks ranks_along(const MeshAxis& axis) {
  const std::int64_t mine = communicator()->rank();
  const std::int64_t first = mine - axis.coordinate(mine) * axis.stride;
  Ranks ranks;
  for (std::int64_t i = 0; i < axis.size; ++i) ranks.push_back(int(first + i * axis.stride));
  return ranks;
}

std::size_t bytes_of(const View& view) {
  return std::size_t(num_elements(view.shape) * size_of(view.dtype));
}
std::vector<Bytes> rows_of(const View& view, std::size_t count) {
  std::vector<Bytes> rows;
  const std::size_t size = bytes_of(view) / count;
  for (std::size_t i = 0; i < count; ++i) rows.push_back({view.as<char>() + i * size, size});
  return rows;
}

void gather(const View& from, const View& to, const Ranks& ranks, const std::string& what) {
  communicator()->all_gather(ranks, {from.data, bytes_of(from)}, rows_of(to, ranks.size()), what);
}

void reduce(const View& from, const View& to, const Ranks& ranks, const std::string& kind,
            const std::string& what) {
  const Combination by = kind == "sum"   ? Combination::sum
                         : kind == "max" ? Combination::max
                                         : Combination::min;
  all_reduce(*communicator(), ranks, by, from.dtype, from.data, to.data, num_elements(from.shape),
             what);
}

void exchange(const View& from, const View& to, const Ranks& ranks, const std::string& what) {
  std::vector<ConstBytes> sent;
  for (const Bytes& row : rows_of(from, ranks.size())) sent.push_back({row.data, row.size});
  communicator()->all_to_all(ranks, sent, rows_of(to, ranks.size()), what);
}

void send(const View& from, const View& to, const Ranks& ranks, const Params& params,
          const std::string& what) {
  const std::int64_t source = params.integer("source"), target = params.integer("target");
  const std::size_t size = bytes_of(from);
  if (source < 0) std::memset(to.data, 0, size);
  communicator()->send_receive(
      target < 0 ? -1 : ranks[std::size_t(target)], {from.data, target < 0 ? 0 : size},
      source < 0 ? -1 : ranks[std::size_t(source)], {to.data, source < 0 ? 0 : size}, what);
}

void agree(const Params& params, const std::string& what) {
  const std::shared_ptr<Communicator> job = communicator();
  Ranks ranks(std::size_t(job->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  plait::agree(*job, ranks, std::stoull(params.text("hash")), what);
}

void run(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  if (!are_places_ranks())
    throw ValueError("a program of one rank of a job runs in a process that is alone",
                     "start it with `plait run -n`, or compile it here");
  const std::string &kind = params.text("kind"), &what = params.text("what");
  if (kind == "agree") return agree(params, what);
  const Ranks ranks = ranks_along(axis_of(params));
  const Buffer from = inputs[0].is_dense() ? Buffer() : Buffer::copy_of(inputs[0]);
  const View& source = inputs[0].is_dense() ? inputs[0] : from.view();
  if (kind == "gather") return gather(source, outputs[0], ranks, what);
  if (kind == "exchange") return exchange(source, outputs[0], ranks, what);
  if (kind == "send") return send(source, outputs[0], ranks, params, what);
  reduce(source, outputs[0], ranks, kind, what);
}

Params of_kind(const char* kind, const MeshAxis& axis, const std::string& name) {
  const Source source = Source::current();
  return {
      {"kind", std::string(kind)},
      {"axis", axis.to_string()},
      {"what", name + " over '" + axis.name + "'" + (source ? " at " + source.to_string() : "")}};
}

}  // namespace

constinit const Primitive communicate_p{"communicate"};
static const auto communicate_def =
    define(communicate_p, "What this rank gets for its operand from the ranks along an axis.")
        .family({"over a mesh", [](Definition&) {}})
        .effectful()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& kind = params.text("kind");
          if (kind == "agree") return std::vector<Aval>();
          Aval aval = inputs[0];
          if (kind == "gather") aval.shape.insert(0, Dim(axis_of(params).size));
          return std::vector<Aval>{aval};
        })
        .rule<Eval>(run)
        .rule<OnHost>("ranks give each other memory of the host")
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Spelling>(spelling::no_function)
        .refuse<Speculate>("all ranks take part in it")
        .refuse<Motion>("all ranks take part in it")
        .refuse<Jvp>("programs are differentiated before they are compiled for ranks")
        .refuse<Batch>("programs are batched before they are compiled for ranks")
        .refuse<Mask>("programs are masked before they are compiled for ranks")
        .rule<Samples>([] { return std::vector<Sample>(); });  // it never runs alone

Array communicate::reduce(const Array& x, const MeshAxis& axis, const std::string& kind) {
  return bind(communicate_p, {x}, of_kind(kind.c_str(), axis, "p" + kind));
}
Array communicate::all_gather(const Array& x, const MeshAxis& axis) {
  return bind(communicate_p, {x}, of_kind("gather", axis, "all_gather"));
}
Array communicate::all_to_all(const Array& x, const MeshAxis& axis) {
  return bind(communicate_p, {x}, of_kind("exchange", axis, "all_to_all"));
}
Array communicate::send(const Array& x, const MeshAxis& axis, std::int64_t source,
                        std::int64_t target) {
  return bind(
      communicate_p, {x},
      of_kind("send", axis, "ppermute").with("source", Dim(source)).with("target", Dim(target)));
}

Jaxpr communicate::agreed(const Jaxpr& program, const Jaxpr& as) {
  const std::uint64_t hash = std::hash<std::string>()(print(as));
  const std::string what = "a program of " + std::to_string(as->equations.size()) + " equations";
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        bind(communicate_p, {},
             {{"kind", std::string("agree")}, {"what", what}, {"hash", std::to_string(hash)}});
        return eval_jaxpr(program, inputs);
      },
      program->input_avals(), program->sizes);
}

}  // namespace plait
