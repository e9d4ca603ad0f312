// Communication of ranks inside compiled programs. See include/plait/primitives/communicate.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/communicator.h>
#include <plait/base/hash.h>
#include <plait/base/source.h>
#include <plait/primitives/communicate.h>
#include <plait/primitives/families.h>
#include <plait/rules/autocast.h>
#include <plait/rules/interpret.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

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

// Of which collective of the program, and for messages about it.
struct Which {
  std::uint64_t site;
  const std::string& what;
};

void gather(const View& from, const View& to, const Ranks& ranks, const Which& which) {
  communicator()->all_gather(ranks, {from.data, bytes_of(from)}, rows_of(to, ranks.size()),
                             which.what, which.site);
}

void reduce(const View& from, const View& to, const Ranks& ranks, const std::string& kind,
            const Which& which) {
  const Combination by = kind == "sum"   ? Combination::sum
                         : kind == "max" ? Combination::max
                                         : Combination::min;
  all_reduce(*communicator(), ranks, by, from.dtype, from.data, to.data, num_elements(from.shape),
             which.what, which.site);
}

void exchange(const View& from, const View& to, const Ranks& ranks, const Which& which) {
  std::vector<ConstBytes> sent;
  for (const Bytes& row : rows_of(from, ranks.size())) sent.push_back({row.data, row.size});
  communicator()->all_to_all(ranks, sent, rows_of(to, ranks.size()), which.what, which.site);
}

void send(const View& from, const View& to, const Ranks& ranks, const Params& params,
          const Which& which) {
  const std::int64_t source = params.integer("source"), target = params.integer("target");
  const std::size_t size = bytes_of(from);
  if (source < 0) std::memset(to.data, 0, size);
  communicator()->send_receive(target < 0 ? -1 : ranks[std::size_t(target)],
                               {from.data, target < 0 ? 0 : size},
                               source < 0 ? -1 : ranks[std::size_t(source)],
                               {to.data, source < 0 ? 0 : size}, which.what, which.site);
}

void agree(const Params& params) {
  const std::shared_ptr<Communicator> job = communicator();
  Ranks ranks(std::size_t(job->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  plait::agree(*job, ranks, std::stoull(params.text("hash")), params.text("what"),
               params.text("program"));
}

void run(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  if (!are_places_ranks())
    throw ValueError("a program of one rank of a job runs in a process that is alone",
                     "start it with `plait run -n`, or compile it here");
  const std::string& kind = params.text("kind");
  if (kind == "agree") return agree(params);
  const Which which{std::uint64_t(params.integer("site")), params.text("what")};
  const Ranks ranks = ranks_along(axis_of(params));
  const Buffer from = inputs[0].is_dense() ? Buffer() : Buffer::copy_of(inputs[0]);
  const View& source = inputs[0].is_dense() ? inputs[0] : from.view();
  if (kind == "gather") return gather(source, outputs[0], ranks, which);
  if (kind == "exchange") return exchange(source, outputs[0], ranks, which);
  if (kind == "send") return send(source, outputs[0], ranks, params, which);
  reduce(source, outputs[0], ranks, kind, which);
}

// The program that is made for this rank now, by its hash, and how many collectives it has by now.
struct Made {
  std::uint64_t hash = 0, count = 0;
};
constinit thread_local Made made_now;

// 60 bits, as sizes have.
std::int64_t next_site() {
  return std::int64_t(hash_combine(made_now.hash, ++made_now.count) >> 4);
}

// "psum over 'data' at train.py:42 in loss:  total = lax.psum(x, 'data')"
std::string name_over(const std::string& name, const MeshAxis& axis, Source source) {
  return name + " over '" + axis.name + "'" + (source ? " at " + source.to_string() : "");
}

Params of_kind(const char* kind, const MeshAxis& axis, const std::string& name) {
  return {{"kind", std::string(kind)},
          {"axis", axis.to_string()},
          {"site", Dim(next_site())},
          {"what", name_over(name, axis, Source::current())}};
}

}  // namespace

constinit const Primitive communicate_p{"communicate"};
static const auto communicate_def =
    define(communicate_p, "What this rank gets for its operand from the ranks along an axis.")
        .family({"over a mesh", [](Definition&) {}})
        .effectful()
        .takes_stored()
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

// --- What ranks compare --------------------------------------------------------------------------

namespace {

// Host functions are numbered as each process made them: here, as the program names them.
std::string without_numbers(const std::string& text) {
  std::map<std::string, std::size_t> known;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t name = std::min(text.find('@', at), text.size()),
                      hash = text.find_first_not_of(
                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.<>",
                          std::min(name + 1, text.size()));
    result.append(text, at, name - at);
    at = name;
    if (at == text.size()) break;
    if (hash == text.npos || text[hash] != '#') {
      result += text[at++];
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of("0123456789", hash + 1), text.size());
    const std::size_t number =
        known.try_emplace(text.substr(name, end - name), known.size()).first->second;
    result.append(text, name, hash - name).append("#" + std::to_string(number));
    at = end;
  }
  return result;
}

void list_collectives(const Jaxpr& program, std::vector<std::string>& names) {
  for (const Equation& equation : program->equations) {
    const Primitive& primitive = *equation.primitive;
    const Params& params = equation.params;
    std::string name;
    if (primitive == mesh_reduce_p) name = "p" + params.text("kind");
    if (primitive == mesh_all_gather_p) name = "all_gather";
    if (primitive == mesh_all_to_all_p) name = "all_to_all";
    if (primitive == mesh_ppermute_p) name = "ppermute";
    if (!name.empty()) names.push_back(name_over(name, axis_of(params), equation.source));
    for_each_body(params, [&](const Jaxpr& body) { list_collectives(body, names); });
  }
}

std::string description_of(const Jaxpr& program) {
  constexpr std::size_t most = 3;
  std::vector<std::string> names;
  list_collectives(program, names);
  std::string text = "a program of " + std::to_string(program->equations.size()) + " equations";
  if (names.empty()) return text;
  text += " with";
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? " " : ", ") + names[i];
  return names.size() <= most ? text
                              : text + ", and " + std::to_string(names.size() - most) + " more";
}

}  // namespace

communicate::Scope::Scope(const Jaxpr& program)
    : text_(without_numbers(print(program))),
      what_(description_of(program)),
      hash_(std::hash<std::string>()(text_)),
      hash_around_(std::exchange(made_now.hash, hash_)),
      count_around_(std::exchange(made_now.count, 0)) {}

communicate::Scope::~Scope() { made_now = {hash_around_, count_around_}; }

Jaxpr communicate::Scope::agreed(const Jaxpr& mine) const {
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        bind(communicate_p, {},
             {{"kind", std::string("agree")},
              {"what", what_},
              {"program", text_},
              {"hash", std::to_string(hash_)}});
        return eval_jaxpr(mine, inputs);
      },
      mine->input_avals(), mine->sizes);
}

}  // namespace plait
