// See text.h.
// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <plait/base/internal_error.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "accesses.h"
#include "codegen/effects.h"
#include "codegen/scalar_text.h"
#include "codegen/walk.h"
#include "fours.h"
#include "kept.h"
#include "sorts.h"
#include "strips.h"

namespace plait::cuda {

using codegen::Block;
using codegen::Effects;
using codegen::integer_text;
using codegen::LoopProgram;
using codegen::Memory;
using codegen::Place;
using codegen::scalar_text;
using codegen::Statement;
using codegen::type_text;
using codegen::Value;
using Kind = Statement::Kind;

namespace {

constexpr int lanes = 8;  // of an octet: the parts of a combination, see NOTE: [reduction order]
constexpr int threads_of_block = 256, most_threads = 1024, threads_of_processor = 2048;
constexpr int threads_of_warps = 128;  // of a block whose warps run steps: in all they have rows
constexpr std::int64_t most_blocks = 1 << 16;   // more steps are further rounds of the same threads
constexpr std::int64_t most_shared = 32 << 10;  // bytes, of the terms of a combination
// Loops of fewer steps are run by each thread for itself.
constexpr std::int64_t fewest_of_octet = 16, fewest_of_block = 512;
// Loops of fewer steps are run by octets, others by warps.
constexpr std::int64_t fewest_of_warp = fewest_of_strip;
// Octets are for combinations; from so many steps on, others are a warp's, whose lanes share lines
// of memory.
constexpr std::int64_t fewest_of_lines = 64;
// From so many on, where most threads of a grid would be idle, the blocks of it run them.
constexpr std::int64_t fewest_of_idle = 128;
// Grids of fewer steps have blocks for each.
constexpr std::int64_t few_steps = 2048;
// The same of steps that warps run, unless they are wide.
constexpr std::int64_t few_warps = 512, wide_of_warp = 4096;
// From so many steps on, that only compute, load and store, threads run several at once.
constexpr std::int64_t many_steps = 1 << 20, unrolled = 4;

// How many turns loops that may be endless take between looks whether to stop, by team: a look
// takes a microsecond, and that of a block or a grid its threads take together.
constexpr std::int64_t turns_between_looks[] = {1 << 16, 1 << 12, 1 << 11, 1 << 10, 1 << 6};
// Other loops in order look too, from so many steps on.
constexpr std::int64_t many_turns[] = {1 << 16, 1 << 16, 1 << 16, 1 << 16, 1 << 10};

// Loops that take in short terms: several are on their way at once.
constexpr const char* in_pipeline = "#pragma unroll 8";
constexpr std::size_t most_of_pipeline = 8;
constexpr const char* in_pipeline_of_fours = "#pragma unroll 4";
constexpr std::int64_t most_turns_unrolled = 16;

enum class Team : std::uint8_t { thread, octet, warp, block, grid };
// Of those of a block.
constexpr std::int64_t members_of(Team team) {
  return team == Team::thread ? 1 : team == Team::octet ? lanes : team == Team::warp ? 32 : 0;
}
Team narrowest(Width width) {
  return width.steps < fewest_of_octet  ? Team::thread
         : width.steps < fewest_of_warp ? Team::octet
                                        : Team::warp;
}

// Whether neighbouring steps of a counter read neighbouring elements, while the steps of
// combinations go further.
bool reads_columns(const Block& body, Value inner) {
  int columns = 0, rows = 0;
  codegen::for_each_statement(body, [&](const Statement& s) {
    if (s.kind != Kind::combine) return;
    codegen::for_each_statement(s.blocks[0], [&](const Statement& load) {
      if (load.kind != Kind::load) return;
      if (codegen::stride_of(load.place, s.counter) == 1)
        ++rows;
      else if (codegen::stride_of(load.place, inner) == 1)
        ++columns;
    });
  });
  return columns > rows;
}

// in_registers: its rows, if each step may be one of a warp.
Team team_of(const Stage& stage, bool in_registers) {
  if (stage.is_cooperative) return Team::grid;
  if (has_sorts(stage.body)) return Team::block;
  const Width width = width_of(stage.body);
  const bool is_few = stage.steps() < few_steps,
             has_blocks = stage.steps() < (width.steps < wide_of_warp ? few_warps : few_steps);
  if (!stage.rows.empty())
    return in_registers && !width.is_deep && !has_blocks ? Team::warp : Team::block;
  if (stage.grid.empty()) return width.steps < fewest_of_octet ? Team::thread : Team::block;
  if (width.steps < fewest_of_octet) return Team::thread;
  if (reads_columns(stage.body, stage.grid.back().counter) && !is_few) return Team::thread;
  return width.is_deep || (has_blocks && width.steps >= fewest_of_block) ? Team::block
                                                                         : narrowest(width);
}

class KernelWriter {
 public:
  KernelWriter(const Staged& staged, const Stage& stage, std::string_view name, std::int64_t kernel,
               std::vector<const Statement*>& checks, bool is_guarded, Sizes sizes,
               std::int64_t shared_of_block)
      : program_(staged.program),
        wide_(staged.fewest_of_cooperative),
        kernel_(kernel),
        checks_(checks),
        shared_of_block_(shared_of_block),
        sizes_(sizes) {
    std::optional<RegisterRows> in_registers;
    if (sizes == Sizes::written && !stage.is_cooperative)
      in_registers = register_rows_of(program_, stage);
    team_ = team_of(stage, in_registers.has_value());
    for (const auto& [value, literal] : program_.literals) literals_.emplace(value, literal);
    result_.name = name;
    result_.is_cooperative = stage.is_cooperative;
    result_.is_guarded = is_guarded;
    codegen::for_each_statement(stage.body, [&](const Statement& s) {
      result_.may_fail |= s.kind == Kind::check || s.kind == Kind::loop || takes_long(s, team_);
    });
    Effects effects;
    for (const Statement& s : stage.body) effects.add(s);
    const std::set<int> reads(effects.reads.begin(), effects.reads.end()),
        writes(effects.writes.begin(), effects.writes.end());
    std::set<int> used = reads;
    used.insert(writes.begin(), writes.end());
    if (team_ == Team::warp) {
      if (in_registers) register_rows_ = std::move(*in_registers);
      for (const Row* row : register_rows_.rows)
        if (row->is_own) used.erase(row->memory);
    } else {
      for (const Row& row : stage.rows) {
        rows_.emplace(row.memory, &row);
        if (row.is_own) used.erase(row.memory);
      }
    }
    for (const Stage::Axis& axis : stage.grid) grid_.insert(axis.counter);
    if (team_ == Team::block) keep(staged, stage, used);
    codegen::for_each_statement(stage.body, [&](const Statement& s) {
      if (s.kind == Kind::repeat || s.kind == Kind::combine)
        counters_.insert(s.kind == Kind::combine ? s.counter : s.value);
    });
    result_.memories.assign(used.begin(), used.end());
    std::set_intersection(reads.begin(), reads.end(), writes.begin(), writes.end(),
                          std::inserter(changing_, changing_.end()));
    codegen::for_each_statement(stage.body, [&](const Statement& s) {
      if (s.kind == Kind::call) note_sort(s);
    });
    if (team_ == Team::thread && stage.steps() >= many_steps) fours_ = fours_of(stage);
    if (team_ == Team::warp || team_ == Team::block) has_fours_ = may_have_fours(stage);
    choose_blocks(stage);
    write_kernel(stage);
  }
  KernelText take() { return std::move(result_); }

 private:
  // --- Lines -------------------------------------------------------------------------------------

  void line(const std::string& text) { result_.text += indent_ + text + "\n"; }
  template <class Body>
  void in_braces(const std::string& before, const Body& body) {
    line(before.empty() ? "{" : before + " {");
    indent_ += "  ";
    body();
    indent_.resize(indent_.size() - 2);
    line("}");
  }
  static std::string number(std::int64_t value) { return integer_text(value); }
  // A size, a stride, an offset or a bound: written down, or a parameter of the kernel.
  std::string size(std::int64_t value) {
    if (sizes_ == Sizes::written) return number(value);
    result_.sizes.push_back(value);
    return "n" + number(std::int64_t(result_.sizes.size()) - 1);
  }

  DType dtype(Value value) const { return program_.dtypes[std::size_t(value)]; }
  std::string type(Value value) const { return type_text(dtype(value)); }
  std::string name(Value value) const {
    const auto found = literals_.find(value);
    return found == literals_.end() ? "v" + number(value) : codegen::literal_text(found->second);
  }
  std::string index_name(Value value) const {
    const auto found = literals_.find(value);
    return found == literals_.end() ? "v" + number(value) : number(found->second.integer);
  }
  void define(Value value, const std::string& expression) {
    line("const " + type(value) + " " + name(value) + " = " + expression + ";");
  }
  void declare(Value value, const std::string& expression) {
    line(type(value) + " " + name(value) + (expression.empty() ? "" : " = " + expression) + ";");
  }
  void assign(const std::string& target, const std::string& expression) {
    line(target + " = " + expression + ";");
  }

  void add_term(std::string& sum, std::int64_t factor, const std::string& index) {
    if (sizes_ == Sizes::given && factor != 1) {
      sum += (sum.empty() ? "" : " + ") + index + (index.empty() ? "" : " * ") + size(factor);
      return;
    }
    if (factor == 0) return;
    const std::uint64_t size = factor < 0 ? 0 - std::uint64_t(factor) : std::uint64_t(factor);
    const std::string term = index.empty() ? std::to_string(size)
                             : size == 1   ? index
                                           : index + " * " + std::to_string(size);
    sum += sum.empty() ? (factor < 0 ? "-" : "") : (factor < 0 ? " - " : " + ");
    sum += term;
  }
  // further: more indices and their strides.
  using Further = std::vector<std::pair<std::string, std::int64_t>>;
  std::string offset(const Place& place, const Further& further = {}) {
    if (const auto known = offsets_.find(&place); known != offsets_.end()) return known->second;
    std::string sum;
    for (const Place::Term& term : place.terms) add_term(sum, term.stride, index_name(term.index));
    for (const auto& [index, stride] : further) add_term(sum, stride, index);
    add_term(sum, place.offset, "");
    if (sum.empty()) sum = "0";
    // Two loops of one stage have the same parameters.
    if (fours_) offsets_.emplace(&place, sum);
    return sum;
  }
  // Where a block has the elements of a place in its row, behind its begin; not with others.
  std::optional<Place> in_row(const Place& place) const {
    const auto found = rows_.find(place.memory);
    if (found == rows_.end()) return {};
    const Row& row = *found->second;
    Place inner{place.memory}, outer{place.memory};
    inner.offset = place.offset - row.low;
    for (const Place::Term& term : place.terms)
      (grid_.contains(term.index) ? outer : inner).terms.push_back(term);
    const bool is_here =
        outer.terms == row.terms &&
        std::all_of(inner.terms.begin(), inner.terms.end(),
                    [&](const Place::Term& term) { return counters_.contains(term.index); });
    return is_here ? std::optional(inner) : std::nullopt;
  }
  bool is_in_register(const Place& place) const { return register_rows_.places.contains(&place); }
  std::string element(const Place& place, const Further& further = {}) {
    if (is_in_register(place)) return "row_m" + number(place.memory) + "[turn].at[k]";
    if (const std::optional<Place> inner = in_row(place))
      return "row_m" + number(place.memory) + "[" + offset(*inner, further) + "]";
    return "m" + number(place.memory) + "[" + offset(place, further) + "]";
  }
  std::string expression(const Statement& s) const {
    std::vector<DType> dtypes;
    std::vector<std::string> names;
    for (const Value operand : s.operands) {
      dtypes.push_back(dtype(operand));
      names.push_back(name(operand));
    }
    const auto overflow =
        program_.range(s.value) ? codegen::Overflow::wraps : codegen::Overflow::undefined;
    return scalar_text(*s.primitive, s.params, dtypes, names, overflow);
  }

  // --- The kernel --------------------------------------------------------------------------------

  void choose_blocks(const Stage& stage) {
    const std::int64_t members = members_of(team_);
    if (team_ == Team::grid) {
      const std::int64_t width = width_of(stage.body).steps;
      result_.threads = int(std::clamp<std::int64_t>(width / 4 / 32 * 32, 32, threads_of_block));
      result_.blocks = std::max<std::int64_t>(2, (width + result_.threads - 1) / result_.threads);
    } else if (stage.grid.empty()) {
      result_.threads = team_ == Team::thread ? 1 : threads_of_block;
    } else if (members == 0) {
      // Many small blocks wait for their memory side by side.
      const std::int64_t width = width_of(stage.body).steps;
      result_.threads = stage.rows.empty() || stage.steps() < few_steps
                            ? threads_of_block
                            : int(std::clamp<std::int64_t>(width / 8 / 32 * 32, 64, 256));
      result_.blocks = stage.steps();
    } else {
      // A few steps have small blocks, so that more processors take part.
      result_.threads = stage.steps() * members < (1 << 15) ? 64
                        : team_ == Team::warp               ? threads_of_warps
                                                            : threads_of_block;
      const std::int64_t teams = result_.threads / members *
                                 (fours_               ? 4
                                  : is_unrolled(stage) ? unrolled
                                                       : 1);
      result_.blocks = (stage.steps() + teams - 1) / teams;
    }
    result_.blocks = std::clamp<std::int64_t>(result_.blocks, 1, most_blocks);
    if (result_.shared_bytes > 0) result_.threads = threads_beside(stage);
    if (sorting_bytes_ > 0) {
      result_.threads = threads_that_sort;
      result_.blocks = std::min(result_.blocks, most_sorting_blocks);
      // A sort alone has no use for more.
      if (team_ == Team::grid && stage.body.size() == 1 && stage.body[0].kind == Kind::call)
        result_.blocks = std::min(result_.blocks, Sorting(stage.body[0]).tiles());
    }
  }

  // Whether a thread runs several steps at once, so that more of what they read is on its way.
  bool is_unrolled(const Stage& stage) const {
    return team_ == Team::thread && stage.steps() >= many_steps && stage.body.size() <= 32 &&
           std::all_of(stage.body.begin(), stage.body.end(), codegen::is_straight);
  }

  void write_kernel(const Stage& stage) {
    indent_ = "  ";
    if (result_.is_guarded) line("if (has_failed_before(failed, " + number(kernel_) + ")) return;");
    if (result_.may_fail)
      line("const Word word{failed, " + number(kernel_) + ", failure, call_step};");
    if (team_ == Team::grid)
      line(
          "const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x, "
          "threads = (long)gridDim.x * blockDim.x;");
    declare_kept();
    const auto write_body = [&] {
      if (stage.grid.empty())
        write_in_order(stage.body, team_);
      else
        write_grid(stage);
    };
    if (has_fours_)
      in_both_ways(write_body);
    else
      write_body();
    result_.text = heading(stage) + shared() + result_.text + "}\n";
  }
  static std::string replaced(std::string text, std::string_view old, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(old, at)) != text.npos; at += by.size())
      text.replace(at, old.size(), by);
    return text;
  }
  // The same twice, where neighbours may lie as fours: so, and as they always lie.
  template <class Body>
  void in_both_ways(const Body& body) {
    const std::string before = std::exchange(result_.text, {}), indent = indent_;
    indent_ += "  ";
    body();
    std::string own = std::exchange(result_.text, before), fits;
    indent_ = indent;
    const auto add = [&](const std::string& condition) {
      fits += (fits.empty() ? "" : " && ") + condition;
    };
    for (const int memory : aligned_) add("begins_fours(m" + number(memory) + ")");
    if (sizes_ == Sizes::given)
      for (const std::int64_t each : divided_) add(size(each) + " % 4 == 0");
    if (fits.empty()) {  // they do
      result_.text += replaced(replaced(own, "\n  ", "\n").substr(2), "in_fours", "true");
      return;
    }
    line("const auto run = [&](auto way) {");
    line("  constexpr bool in_fours = decltype(way)::value;");
    result_.text += own;
    line("};");
    line("if (" + fits + ")");
    line("  run(InFours());");
    line("else");
    line("  run(OneByOne());");
  }
  std::string heading(const Stage& stage) const {
    static constexpr const char* teams[] = {"threads", "octets", "warps", "blocks"};
    std::string parameters;
    const auto add = [&](const std::string& parameter) {
      parameters += (parameters.empty() ? "" : ", ") + parameter;
    };
    for (const int memory : result_.memories) {
      const Memory& m = program_.memories[std::size_t(memory)];
      const char* const kind = m.space == Memory::Space::operand ? "In<"
                               : changing_.contains(memory)      ? "InOut<"
                                                                 : "Out<";
      add(kind + type_text(m.dtype) + "> m" + number(memory));
    }
    if (result_.is_cooperative) add("Grid* grid");
    if (result_.is_guarded || result_.may_fail) add("Out<int> failed");
    if (result_.may_fail) add("Failure* failure, int call_step");
    for (std::size_t i = 0; i < result_.sizes.size(); ++i) add("long n" + number(std::int64_t(i)));
    std::string comment = stage.is_cooperative ? "// once, by all blocks"
                          : stage.grid.empty() ? "// once"
                                               : "// ";
    if (!stage.grid.empty() && sizes_ == Sizes::written)
      comment += number(stage.steps()) + (stage.steps() == 1 ? " step, by " : " steps, by ");
    if (!stage.grid.empty()) comment += teams[int(team_)];
    // Several blocks of a processor sort.
    const std::string bounds = sorting_bytes_ > 0 ? "__launch_bounds__(256, 3) "
                               : result_.threads > threads_of_block
                                   ? "__launch_bounds__(" + number(result_.threads) + ") "
                                   : "";
    return comment + "\nextern \"C\" __global__ void " + bounds + result_.name + "(" + parameters +
           ") {\n";
  }

  void write_grid(const Stage& stage) {
    const std::int64_t members = members_of(team_), steps = stage.steps(),
                       per_block = members == 0 ? 1 : result_.threads / members;
    // Rounds of 32 bits end before they overflow.
    is_short_ = steps + per_block * result_.blocks < (std::int64_t(1) << 31);
    const std::string type = is_short_ ? "unsigned" : "long", wide = is_short_ ? "" : "(long)",
                      thread = wide + "blockIdx.x * blockDim.x + threadIdx.x",
                      all = wide + "gridDim.x * blockDim.x";
    const std::string each = std::to_string(members) + "u";
    const std::string first = members == 0   ? wide + "blockIdx.x"
                              : members == 1 ? thread
                                             : "(" + thread + ") / " + each,
                      next = members == 0   ? "gridDim.x"
                             : members == 1 ? all
                                            : all + " / " + each;
    if (fours_) {
      std::string aligned;
      for (const int memory : fours_->memories)
        aligned +=
            (aligned.empty() ? "" : " && ") + std::string("begins_fours(m") + number(memory) + ")";
      in_braces("if (" + aligned + ")", [&] {
        in_braces("for (" + type + " step = " + first + "; step < " + limit(steps / 4) +
                      "; step += " + next + ")",
                  [&] { write_four_steps(stage); });
        line("return;");
      });
    } else if (is_unrolled(stage)) {
      line("#pragma unroll " + number(unrolled));
    }
    in_braces("for (" + type + " step = " + first + "; step < " + limit(steps) +
                  "; step += " + next + ")",
              [&] { write_step(stage); });
  }
  // A size that a step of the grid is compared with, or divided by.
  std::string limit(std::int64_t value) {
    if (sizes_ == Sizes::given) return is_short_ ? "unsigned(" + size(value) + ")" : size(value);
    return number(value) + (is_short_ ? "u" : "L");
  }

  // The counters of the grid, of which the innermost one makes so many steps at once.
  void write_counters(const Stage& stage, std::int64_t at_once) {
    std::int64_t inner = 1;
    std::vector<std::string> counters;
    const bool is_given = sizes_ == Sizes::given;
    for (auto axis = stage.grid.rbegin(); axis != stage.grid.rend(); ++axis) {
      const bool is_last = axis == stage.grid.rbegin(), is_first = axis + 1 == stage.grid.rend();
      const bool is_divided = !is_last && (is_given || inner > 1);
      const std::int64_t steps = is_last ? axis->steps / at_once : axis->steps;
      std::string text = "step";
      if (is_divided) text += " / " + limit(inner);
      if (!is_first) text = (is_divided ? "(" + text + ")" : text) + " % " + limit(steps);
      if (is_last && at_once > 1) text = "long(" + text + ") * " + number(at_once);
      counters.push_back("const long " + name(axis->counter) + " = " + text + ";");
      inner *= steps;
    }
    std::for_each(counters.rbegin(), counters.rend(), [&](const std::string& text) { line(text); });
  }

  // Of the innermost counter four steps, which have a loop of their own around what differs: what
  // they have in common, and what they load and store together, is outside.
  void write_four_steps(const Stage& stage) {
    write_counters(stage, 4);
    const std::string counter = name(stage.grid.back().counter), first = "first_" + counter;
    const auto four = [&](const Statement& s) {
      return "four" + number(std::int64_t(&s - stage.body.data()));
    };
    const auto type_of = [&](const Statement& s) {
      return "Four<" + type_text(program_.memories[std::size_t(s.place.memory)].dtype) + "> ";
    };
    std::vector<const Statement*> each, stores;
    for (const Statement& s : stage.body) {
      if (fours_->common.contains(s.value)) {
        write(s, Team::thread);
        continue;
      }
      each.push_back(&s);
      if (!fours_->whole.contains(&s)) continue;
      if (s.kind == Kind::store) {
        stores.push_back(&s);
        line(type_of(s) + four(s) + ";");
      } else {
        line("const " + type_of(s) + four(s) + " = load4(m" + number(s.place.memory) + ", " +
             offset(s.place) + ");");
      }
    }
    const bool uses_counter = std::any_of(each.begin(), each.end(), [&](const Statement* s) {
      Effects effects;
      if (!fours_->whole.contains(s)) effects.add(*s);
      return std::find(effects.used.begin(), effects.used.end(), stage.grid.back().counter) !=
             effects.used.end();
    });
    if (uses_counter) line("const long " + first + " = " + counter + ";");
    line("#pragma unroll");
    in_braces("for (int lane = 0; lane < 4; ++lane)", [&] {
      if (uses_counter) line("const long " + counter + " = " + first + " + lane;");
      for (const Statement* s : each)
        if (!fours_->whole.contains(s))
          write(*s, Team::thread);
        else if (s->kind == Kind::store)
          assign(four(*s) + ".at[lane]", name(s->operands[0]));
        else
          define(s->value, four(*s) + ".at[lane]");
    });
    for (const Statement* s : stores)
      line("store4(m" + number(s->place.memory) + ", " + offset(s->place) + ", " + four(*s) + ");");
  }

  void write_step(const Stage& stage) {
    write_counters(stage, 1);
    bring_rows(stage);
    bring_kept();
    {
      const Enclosing loop(*this, "continue");
      order_ = is_short_ ? "long(step)" : "step";
      write_in_order(stage.body, team_);
    }
    put_kept_back();
  }

  // --- What a block keeps ------------------------------------------------------------------------

  void keep(const Staged& staged, const Stage& stage, std::set<int>& used) {
    // Combinations need some for their terms, and the system does.
    std::int64_t most = shared_of_block_ - (4 << 10);
    codegen::for_each_statement(stage.body, [&](const Statement& s) {
      if (s.kind == Kind::combine) most = shared_of_block_ - most_shared - (4 << 10);
    });
    kept_ = kept_of(staged, stage, most);
    std::erase_if(kept_, [&](const Kept& kept) { return rows_.contains(kept.row.memory); });
    for (const Kept& kept : kept_) {
      rows_.emplace(kept.row.memory, &kept.row);
      if (kept.row.is_own) used.erase(kept.row.memory);
      result_.shared_bytes += cuda::room_of(program_, kept.row);
    }
  }
  bool is_kept(int memory) const {
    return std::any_of(kept_.begin(), kept_.end(),
                       [&](const Kept& kept) { return kept.row.memory == memory; });
  }
  // As many as a processor has in all, of the blocks that find room there.
  int threads_beside(const Stage& stage) const {
    const std::int64_t blocks = shared_of_block_ / (result_.shared_bytes + (2 << 10)),
                       width = width_of(stage.body).steps;
    int threads = threads_of_block;
    while (threads < most_threads && 2 * threads * blocks <= threads_of_processor &&
           2 * threads <= width)
      threads *= 2;
    return threads;
  }
  void declare_kept() {
    if (kept_.empty()) return;
    line("SHARED_BYTES(kept);");
    std::int64_t at = 0;
    for (const Kept& kept : kept_) {
      const std::string type = type_text(dtype_of(kept.row));
      line("InOut<" + type + "> row_m" + number(kept.row.memory) + " = (InOut<" + type +
           ">)(kept + " + size(at) + ");");
      at += cuda::room_of(program_, kept.row);
    }
  }
  // Once all threads have left the step before.
  void bring_kept() {
    if (kept_.empty()) return;
    meet(Team::block);
    for (const Kept& kept : kept_)
      if (!kept.row.is_own) copy_row(kept.row, Direction::here);
    meet(Team::block);
  }
  void put_kept_back() {
    const auto goes_back = [](const Kept& kept) { return kept.is_written && !kept.row.is_own; };
    if (std::none_of(kept_.begin(), kept_.end(), goes_back)) return;
    meet(Team::block);
    for (const Kept& kept : kept_)
      if (goes_back(kept)) copy_row(kept.row, Direction::back);
  }
  enum class Direction : std::uint8_t { here, back };
  void copy_row(const Row& row, Direction direction) {
    const std::string memory = "m" + number(row.memory);
    in_braces("for (long i = threadIdx.x; i < " + size(row.size) + "; i += blockDim.x)", [&] {
      const std::string there =
          memory + "[" + offset({row.memory, row.low, row.terms}, {{"i", 1}}) + "]";
      const std::string here = "row_" + memory + "[i]";
      assign(direction == Direction::here ? here : there,
             direction == Direction::here ? there : here);
    });
  }
  // What a memory is called where it is a block's, or is not.
  std::string memory_name(int memory) const {
    return (rows_.contains(memory) ? "row_m" : "m") + number(memory);
  }

  // Once all threads have left the step before.
  void bring_rows(const Stage& stage) {
    if (team_ == Team::warp) return bring_rows_to_registers();
    if (rows_.empty()) return;
    meet(Team::block);
    bool is_any_brought = false;
    for (const Row& row : stage.rows) {
      if (row.is_own) continue;
      is_any_brought = true;
      const std::string memory = "m" + number(row.memory);
      const Place place{row.memory, row.low, row.terms};
      if (has_fours_ && row.size >= 2 * result_.threads && fits_fours(place, -1, row.size)) {
        aligned_.insert(row.memory);
        know_divided(place, -1);
        const std::string way = lanes_text(Team::block, row.size);
        in_turns(Team::block, row.size, [&] {
          const std::string loaded =
              way + "::load(" + memory + ", " + offset(place) + ", turn, " + size(row.size) + ")";
          line(way + "::store(row_" + memory + ", 0, turn, " + size(row.size) + ", " + loaded +
               ");");
        });
        continue;
      }
      in_braces("for (long i = threadIdx.x; i < " + size(row.size) + "; i += blockDim.x)", [&] {
        assign("row_" + memory + "[i]", memory + "[" + offset(place, {{"i", 1}}) + "]");
      });
    }
    if (is_any_brought) meet(Team::block);
  }
  // By a warp: those that are its own are written before they are read.
  void bring_rows_to_registers() {
    for (const Row* row : register_rows_.rows) {
      const std::string memory = "m" + number(row->memory);
      line("Four<" + type_text(dtype_of(*row)) + "> row_" + memory + "[" +
           number((row->size + parts_of_strip - 1) / parts_of_strip) + "];");
      if (row->is_own) continue;
      const Place place{row->memory, row->low, row->terms};
      const std::string way = lanes_text(Team::warp, row->size);
      const bool fits = fits_fours(place, -1, row->size);
      if (fits) aligned_.insert(row->memory);
      in_turns(Team::warp, row->size, [&] {
        if (fits)
          return assign(
              "row_" + memory + "[turn]",
              way + "::load(" + memory + ", " + offset(place) + ", turn, " + size(row->size) + ")");
        for_each_of_four(Team::warp, row->size, [&] {
          assign("row_" + memory + "[turn].at[k]",
                 memory + "[" + offset(place, {{way + "::index(turn, k)", 1}}) + "]");
        });
      });
    }
  }

  // What a failed check does to leave the step in which it stands.
  struct Enclosing {
    Enclosing(KernelWriter& writer, std::string text) : writer(writer), before(writer.leave_) {
      leave = std::move(text);
      writer.leave_ = this;
    }
    ~Enclosing() { writer.leave_ = before; }
    Enclosing(const Enclosing&) = delete;
    KernelWriter& writer;
    const Enclosing* const before;
    std::string leave;
  };

  // Says of failures in the steps of loops, if there can be any, which of them comes first.
  struct Ordered {
    Ordered(KernelWriter& writer, std::span<const Statement* const> loops)
        : writer(writer), before(writer.order_) {
      for (const Statement* loop : loops)
        if (codegen::has_checks(*loop))
          writer.order_ = (writer.order_ == "0"
                               ? ""
                               : "(" + writer.order_ + ") * " + writer.size(loop->steps) + " + ") +
                          writer.name(loop->value);
    }
    ~Ordered() { writer.order_ = before; }
    Ordered(const Ordered&) = delete;
    KernelWriter& writer;
    const std::string before;
  };

  // --- Teams -------------------------------------------------------------------------------------

  static std::string rank(Team team) {
    static constexpr const char* texts[] = {"0", "(threadIdx.x & 7u)", "(threadIdx.x & 31u)",
                                            "threadIdx.x", "thread"};
    return texts[int(team)];
  }
  static std::string members(Team team) {
    static constexpr const char* texts[] = {"1", "8", "32", "blockDim.x", "threads"};
    return texts[int(team)];
  }
  // Of smaller teams in a team: the number of this one, and how many there are.
  static std::string rank(Team inner, Team team) {
    const std::string each = number(members_of(inner));
    if (inner == Team::octet || inner == Team::warp)
      return rank(team) + " / " + each + (team == Team::grid ? "" : "u");
    return inner == Team::block ? "blockIdx.x" : rank(team);
  }
  static std::string members(Team inner, Team team) {
    const std::string each = number(members_of(inner));
    if (team == Team::warp && inner == Team::octet) return "4";
    if (inner == Team::octet || inner == Team::warp)
      return members(team) + " / " + each + (team == Team::grid ? "" : "u");
    return inner == Team::block ? "gridDim.x" : members(team);
  }
  void meet(Team team) {
    static constexpr const char* texts[] = {"", "__syncwarp(octet());", "__syncwarp();",
                                            "__syncthreads();", "sync_grid(grid);"};
    if (team == Team::thread) return;
    const std::string meeting = indent_ + texts[int(team)] + "\n";
    if (!result_.text.ends_with("\n" + meeting)) result_.text += meeting;
  }

  // What members of a team have read and written since they met; apart, what the first of them has
  // written alone.
  struct Pending {
    std::vector<Region> reads, writes, stores;
    bool is_empty() const { return reads.empty() && writes.empty() && stores.empty(); }
    bool conflicts(const Accesses& next, bool is_store) const {
      return may_share(writes, next.reads) || may_share(stores, next.reads) ||
             may_share(writes, next.writes) || may_share(reads, next.writes) ||
             (!is_store && may_share(stores, next.writes));
    }
    void add(const Accesses& next, bool is_store) {
      reads.insert(reads.end(), next.reads.begin(), next.reads.end());
      auto& to = is_store ? stores : writes;
      to.insert(to.end(), next.writes.begin(), next.writes.end());
    }
  };

  // Statements of a team, one after the other.
  void write_in_order(const Block& block, Team team) {
    Pending pending;
    write_in_order(block, team, pending);
  }
  void write_in_order(const Block& block, Team team, Pending& pending) {
    for (const Statement& s : block) {
      if (team == Team::thread) {
        write(s, team);
        if (checks_before_others(s, block)) leave_where_failed(team);
        continue;
      }
      const Accesses accesses = shared_accesses(s);
      const bool is_store = s.kind == Kind::store;
      if (pending.conflicts(accesses, is_store)) {
        meet(team);
        pending = {};
      }
      has_met_ = false;
      write(s, team);
      const bool ends_met = s.kind == Kind::repeat && !codegen::runs_in_any_order(s) &&
                            !accesses.writes.empty() && s.exchanged.empty();
      if (ends_met || (team == Team::block && s.kind == Kind::combine && has_met_))
        pending = {};
      else
        pending.add(accesses, is_store);
      if (checks_before_others(s, block)) leave_where_failed(team);
    }
  }
  // But for those that each lane has for itself.
  Accesses shared_accesses(const Statement& s) const {
    Accesses accesses(s);
    for (const Row* row : register_rows_.rows) {
      const auto is_own = [&](const Region& region) {
        return row->is_own && region.memory == row->memory;
      };
      std::erase_if(accesses.reads, is_own);
      std::erase_if(accesses.writes, is_own);
    }
    return accesses;
  }
  // Whether steps may fail, each for itself, before statements that may rely on all checks.
  static bool checks_before_others(const Statement& s, const Block& block) {
    return s.kind != Kind::check && &s != &block.back() && codegen::has_checks(s);
  }
  // The members of a team agree about it.
  void leave_where_failed(Team team) {
    const std::string leave = (leave_ ? leave_->leave : "return") + std::string(";");
    if (team == Team::octet || team == Team::warp) meet(team);
    line("if (" + agreed("has_failed(word)", team) + ") " + leave);
  }
  // What the first member of a team says.
  static std::string agreed(const std::string& said, Team team) {
    static constexpr const char* before[] = {"", "from_first_lane(", "from_first_of_warp(",
                                             "from_first_thread(", "from_first_block("};
    return team == Team::thread ? said
                                : before[int(team)] + said + (team == Team::grid ? ", grid)" : ")");
  }
  // The same for the steps of a loop that runs in order: the next one may use what this one has.
  void write_one_after_another(const Block& block, Team team) {
    Pending pending;
    write_in_order(block, team, pending);
    meet_behind({&block}, team, pending);
  }
  void meet_behind(std::initializer_list<const Block*> blocks, Team team, const Pending& pending) {
    Effects effects;
    for (const Block* block : blocks)
      for (const Statement& s : *block) effects.add(s);
    if (!effects.writes.empty() && !pending.is_empty()) meet(team);
  }

  void write(const Statement& s, Team team) {
    switch (s.kind) {
      case Kind::compute:
        return define(s.value, expression(s));
      case Kind::load:
        return define(s.value, element(s.place));
      case Kind::store:
        return write_store(s, team);
      case Kind::copy:
        return write_copy(s, team);
      case Kind::check:
        return write_check(s, team);
      case Kind::repeat:
        return codegen::runs_in_any_order(s) ? write_shared(s, team) : write_repeat(s, team);
      case Kind::combine:
        return write_combine(s, team);
      case Kind::loop:
        return write_while(s, team);
      case Kind::branch:
        return write_branch(s, team);
      case Kind::call:
        return write_sort(s, team);
    }
  }

  void write_store(const Statement& s, Team team) {
    const std::string text = element(s.place) + " = " + name(s.operands[0]) + ";";
    line(team == Team::thread ? text : "if (" + rank(team) + " == 0) " + text);
  }

  void write_check(const Statement& s, Team team) {
    checks_.push_back(&s);
    const std::string index = name(s.operands[0]);
    in_braces("if (" + index + " < " + size(s.low) + " || " + index + " > " + size(s.high) + ")",
              [&] {
                line((team == Team::thread ? "" : "if (" + rank(team) + " == 0) ") + "fail(word, " +
                     number(std::int64_t(checks_.size())) + ", " + index + ", " + order_ + ");");
                line((leave_ ? leave_->leave : "return") + std::string(";"));
              });
  }

  // for each index of a shape, shared by the members of a team, body(indices).
  template <class Body>
  void for_each_element(std::span<const std::int64_t> shape, Team team, const Body& body) {
    std::int64_t count = 1;
    for (const std::int64_t each : shape) count *= each;
    const std::string i = "i" + number(depth_++);
    in_braces("for (long " + i + " = " + rank(team) + "; " + i + " < " + size(count) + "; " + i +
                  " += " + members(team) + ")",
              [&] {
                std::vector<std::string> indices(shape.size());
                std::int64_t inner = 1;
                for (std::size_t axis = shape.size(); axis-- > 0;) {
                  std::string text = axis + 1 < shape.size() ? i + " / " + size(inner) : i;
                  if (axis > 0) text = "(" + text + ") % " + size(shape[axis]);
                  indices[axis] = "(" + text + ")";
                  inner *= shape[axis];
                }
                body(indices);
              });
    --depth_;
  }

  void write_copy(const Statement& s, Team team) {
    for_each_element(s.shape, team, [&](const std::vector<std::string>& indices) {
      Further to, from;
      for (std::size_t axis = 0; axis < indices.size(); ++axis) {
        to.emplace_back(indices[axis], s.strides[axis]);
        from.emplace_back(indices[axis], s.source_strides[axis]);
      }
      assign(element(s.place, to), element(s.source_place, from));
    });
  }

  // --- Sorts -------------------------------------------------------------------------------------

  // Passes read what others have written, also where they take turns.
  void note_sort(const Statement& s) {
    for (std::size_t i = s.call->strides.size(); i < s.places.size(); ++i)
      changing_.insert(s.places[i].memory);
    if (s.place.memory >= 0) changing_.insert(s.place.memory);
    sorting_bytes_ = std::max(sorting_bytes_, Sorting(s).shared_bytes());
  }
  // By all blocks together, or by each one for itself.
  void write_sort(const Statement& s, Team team) {
    const Sorting sorting(s);
    std::vector<std::string> arguments{
        team == Team::grid ? "{grid, blockIdx.x, gridDim.x}" : "{nullptr, 0, 1}", "sorting",
        number(sorting.tile_bytes())};
    const auto add = [&](const Place& place, const std::string& type) {
      const std::string at = offset(place);
      arguments.push_back("(InOut<" + type + ">)" + (at == "0" ? "" : "(") + "m" +
                          number(place.memory) + (at == "0" ? "" : " + " + at + ")"));
    };
    const std::size_t arrays = s.call->strides.size();
    for (std::size_t array = 0; array < arrays; ++array) {
      const std::string type = word_text(array == 0 ? sorting.keys : *sorting.values);
      for (const std::size_t place : {array, arrays + array}) add(s.places[place], type);
    }
    if (!sorting.values) arguments.insert(arguments.end(), {"{}", "{}"});
    if (!sorting.is_short) {
      add(s.place, word_text(DType::uint8));
      arguments.insert(arguments.end(), {size(sorting.values_at()), size(sorting.counts_at())});
    }
    arguments.insert(arguments.end(),
                     {size(sorting.rows), size(sorting.size), number(sorting.passes)});
    std::string text;
    for (const std::string& argument : arguments) text += (text.empty() ? "" : ", ") + argument;
    line(sort_text(sorting) + "(" + text + ");");
  }

  // --- Loops in any order ------------------------------------------------------------------------

  static bool has_combinations(const Statement& loop) {
    bool has = false;
    codegen::for_each_statement(loop,
                                [&](const Statement& s) { has = has || s.kind == Kind::combine; });
    return has;
  }
  // The team that runs a step of a loop that a team shares.
  Team inner_team(const Statement& loop, Team team) const {
    if (team == Team::thread) return team;
    if (has_sorts(loop))
      return team == Team::grid && !is_run_together(loop, wide_) ? Team::block : team;
    const Width width = width_of(loop.blocks[0]);
    const Team narrow =
        width.steps >= fewest_of_lines && !has_combinations(loop) ? Team::warp : narrowest(width);
    const bool is_wide = narrow != Team::thread;
    if (team == Team::grid) {
      if (is_run_together(loop, wide_)) return team;
      const bool is_few = loop.steps < few_steps;
      if (loop.steps == 1) return Team::block;
      if (!is_wide || (reads_columns(loop.blocks[0], loop.value) && !is_few)) return Team::thread;
      const std::int64_t members = loop.steps * members_of(narrow);
      const bool are_idle = !has_combinations(loop) && width.steps >= fewest_of_idle &&
                            2 * members <= result_.blocks * result_.threads;
      const bool by_blocks = is_few && (width.steps >= fewest_of_block || are_idle);
      return width.is_deep || by_blocks ? Team::block : narrow;
    }
    if (team == Team::octet) return is_wide && loop.steps < lanes ? team : Team::thread;
    if (!is_wide) return Team::thread;
    if (team == Team::warp) return narrow == Team::warp || loop.steps < 4 ? team : narrow;
    const bool are_few = loop.steps * (narrow == Team::warp ? 16 : lanes) < result_.threads;
    return width.is_deep || (are_few && width.steps >= fewest_of_block) ? team : narrow;
  }

  void write_shared(const Statement& s, Team team) {
    const Team inner = inner_team(s, team);
    if (inner == team) {
      in_braces(counting(name(s.value), size(s.steps)), [&] {
        const Enclosing loop(*this, "continue");
        const Ordered ordered(*this, {{&s}});
        write_one_after_another(s.blocks[0], team);
      });
      return;
    }
    // Loops in each other that threads share are one loop.
    const Statement* innermost = &s;
    std::vector<const Statement*> nest{&s};
    while (innermost->blocks[0].size() == 1 &&
           codegen::runs_in_any_order(innermost->blocks[0][0])) {
      innermost = &innermost->blocks[0][0];
      nest.push_back(innermost);
    }
    const bool is_nest_of_threads =
        inner == Team::thread ||
        (team == Team::grid && width_of(innermost->blocks[0]).steps < fewest_of_octet);
    if (nest.size() > 1 && is_nest_of_threads) {
      std::vector<std::int64_t> shape;
      for (const Statement* loop : nest) shape.push_back(loop->steps);
      return for_each_element(shape, team, [&](const std::vector<std::string>& indices) {
        for (std::size_t i = 0; i < nest.size(); ++i)
          line("const long " + name(nest[i]->value) + " = " + indices[i] + ";");
        const Enclosing loop(*this, "continue");
        const Ordered ordered(*this, nest);
        write_in_order(innermost->blocks[0], Team::thread);
      });
    }
    if (goes_in_strips(s, inner, team)) return write_strip(s, team, [] {});
    in_braces("for (long " + name(s.value) + " = " + rank(inner, team) + "; " + name(s.value) +
                  " < " + size(s.steps) + "; " + name(s.value) + " += " + members(inner, team) +
                  ")",
              [&] {
                const Enclosing loop(*this, "continue");
                const Ordered ordered(*this, {{&s}});
                write_in_order(s.blocks[0], inner);
              });
  }

  // --- Strips ------------------------------------------------------------------------------------

  // Whether neighbours from a place on may lie as fours.
  bool fits_fours(const Place& place, Value counter, std::int64_t steps) const {
    return sizes_ == Sizes::given || (steps % 4 == 0 && begins_at_fours(place, counter));
  }
  bool may_have_fours(const Stage& stage) const {
    bool may = std::any_of(stage.rows.begin(), stage.rows.end(), [&](const Row& row) {
      return !row.is_own && fits_fours({row.memory, row.low, row.terms}, -1, row.size);
    });
    codegen::for_each_statement(stage.body, [&](const Statement& s) {
      may = may || (is_strip(s) && !whole_of(s).empty());
    });
    return may;
  }
  // Loads and stores of a strip that may be of four elements at once.
  std::set<const Statement*> whole_of(const Statement& strip) const {
    std::set<const Statement*> whole = neighbours_of(strip);
    std::erase_if(whole, [&](const Statement* s) {
      return is_in_register(s->place) ||
             !fits_fours(in_row(s->place).value_or(s->place), counter_of(strip), strip.steps);
    });
    return whole;
  }
  bool goes_in_strips(const Statement& s, Team inner, Team team) const {
    if (inner != Team::thread || !is_strip(s)) return false;
    if (team == Team::warp)
      return std::any_of(s.blocks[0].begin(), s.blocks[0].end(),
                         [&](const Statement& each) { return is_in_register(each.place); }) ||
             s.steps >= parts_of_strip;
    return team == Team::block && has_fours_ && s.steps >= 2 * result_.threads;
  }
  // What fours rely on: asked once, for the whole kernel.
  void know_fours(const Place& place, Value counter) {
    const std::optional<Place> inner = in_row(place);
    if (!inner) aligned_.insert(place.memory);
    know_divided(inner.value_or(place), counter);
  }
  void know_divided(const Place& place, Value counter) {
    if (sizes_ == Sizes::written) return;
    divided_.push_back(place.offset);
    for (const Place::Term& term : place.terms)
      if (term.index != counter) divided_.push_back(term.stride);
  }
  bool may_be_fours(std::int64_t steps) const {
    return has_fours_ && (sizes_ == Sizes::given || steps % 4 == 0);
  }
  std::string lanes_text(Team team, std::int64_t steps) const {
    return "Lanes<" + number(team == Team::warp ? 32 : result_.threads) + ", " +
           (may_be_fours(steps) ? "in_fours" : "false") + ">";
  }
  std::int64_t in_turn(Team team) const {
    return team == Team::warp ? parts_of_strip : 4 * result_.threads;
  }
  template <class Body>
  void in_turns(Team team, std::int64_t steps, const Body& body) {
    const std::int64_t each = in_turn(team);
    divided_.push_back(steps);
    if (sizes_ == Sizes::written) {
      const std::int64_t turns = (steps + each - 1) / each;
      // The other way is rarely gone: it need not take as long to compile.
      const std::string at_once = number(std::min(turns, most_turns_unrolled));
      line("#pragma unroll " +
           (may_be_fours(steps) ? "(in_fours ? " + at_once + " : 1)" : at_once));
      in_braces("for (int turn = 0; turn < " + number(turns) + "; ++turn)", body);
    } else {
      line(in_pipeline_of_fours);
      in_braces("for (long turn = 0; turn * " + number(each) + " < " + size(steps) + "; ++turn)",
                body);
    }
  }
  // The four elements of a lane in a turn, of which some may be beyond the end.
  template <class Body>
  void for_each_of_four(Team team, std::int64_t steps, const Body& body) {
    line("#pragma unroll");
    in_braces("for (int k = 0; k < 4; ++k)", [&] {
      if (sizes_ == Sizes::given || steps % in_turn(team) != 0)
        line("if (!" + lanes_text(team, steps) + "::has(turn, k, " + size(steps) + ")) continue;");
      body();
    });
  }
  // The steps of a strip by a warp or a block; behind each of them: take_in().
  template <class TakeIn>
  void write_strip(const Statement& s, Team team, const TakeIn& take_in) {
    const Block& body = s.blocks[0];
    const std::string way = lanes_text(team, s.steps), counter = name(counter_of(s));
    std::set<const Statement*> whole;
    if (has_fours_ && is_strip(s)) whole = whole_of(s);
    const auto four = [&](const Statement& each) { return "four_" + own_name(each, body); };
    const auto type_of = [&](const Statement& each) {
      return "Four<" + type_text(program_.memories[std::size_t(each.place.memory)].dtype) + "> ";
    };
    const auto at = [&](const Statement& each) {
      const std::optional<Place> inner = in_row(each.place);
      Place place = inner.value_or(each.place);
      std::erase_if(place.terms,
                    [&](const Place::Term& term) { return term.index == counter_of(s); });
      return (inner ? "row_m" : "m") + number(place.memory) + ", " + offset(place) + ", turn, " +
             size(s.steps);
    };
    in_turns(team, s.steps, [&] {
      for (const Statement* each : whole) know_fours(each->place, counter_of(s));
      for (const Statement& each : body)
        if (whole.contains(&each) && each.kind == Kind::load)
          line("const " + type_of(each) + four(each) + " = " + way + "::load(" + at(each) + ");");
        else if (whole.contains(&each))
          line(type_of(each) + four(each) + ";");
      for_each_of_four(team, s.steps, [&] {
        const Enclosing loop(*this, "continue");
        if (uses(body, whole, counter_of(s)))
          line("const long " + counter + " = " + way + "::index(turn, k);");
        for (const Statement& each : body)
          if (!whole.contains(&each))
            write(each, Team::thread);
          else if (each.kind == Kind::load)
            define(each.value, four(each) + ".at[k]");
          else
            assign(four(each) + ".at[k]", name(each.operands[0]));
        take_in();
      });
      for (const Statement& each : body)
        if (whole.contains(&each) && each.kind == Kind::store)
          line(way + "::store(" + at(each) + ", " + four(each) + ");");
    });
  }
  static std::string own_name(const Statement& s, const Block& block) {
    return s.kind == Kind::load ? "v" + number(s.value) : number(&s - block.data());
  }
  // Whether statements use a value, but for where whole ones and those in registers are.
  bool uses(const Block& body, const std::set<const Statement*>& whole, Value value) const {
    return std::any_of(body.begin(), body.end(), [&](const Statement& s) {
      Effects effects;
      if (whole.contains(&s) || is_in_register(s.place))
        effects.used = s.operands;
      else
        effects.add(s);
      return std::find(effects.used.begin(), effects.used.end(), value) != effects.used.end();
    });
  }

  // --- Loops in order, and branches --------------------------------------------------------------

  static std::string counting(const std::string& i, const std::string& count) {
    return "for (long " + i + " = 0; " + i + " < " + count + "; ++" + i + ")";
  }

  void write_repeat(const Statement& s, Team team) {
    begin(s);
    in_braces(counting(name(s.value), size(s.steps)), [&] {
      const Enclosing loop(*this, "continue");
      const Ordered ordered(*this, {{&s}});
      write_one_after_another(s.blocks[0], team);
      end_step(s);
      if (takes_long(s, team)) look_after(turns_between_looks[int(team)], name(s.value), team);
    });
    end(s, team);
  }
  static bool takes_long(const Statement& s, Team team) {
    return s.kind == Kind::repeat && !codegen::runs_in_any_order(s) &&
           s.steps >= many_turns[int(team)];
  }
  void write_while(const Statement& s, Team team) {
    begin(s);
    in_braces("for (unsigned turn = 0;; ++turn)", [&] {
      const Enclosing loop(*this, "break");
      Pending pending;
      write_in_order(s.blocks[0], team, pending);
      line("if (!" + name(s.operands[0]) + ") break;");
      write_in_order(s.blocks[1], team, pending);
      meet_behind({&s.blocks[0], &s.blocks[1]}, team, pending);
      end_step(s);
      look_after(turns_between_looks[int(team)], "turn", team);
    });
    end(s, team);
  }
  // Ends a loop that the host wants to stop; members of a team agree about it.
  void look_after(std::int64_t turns, const std::string& turn, Team team) {
    std::string wanted = "is_stopped(word)";
    if (team >= Team::block) wanted = rank(team) + " == 0 && " + wanted;
    line("if (" + turn + " % " + number(turns) + " == " + number(turns - 1) + " && " +
         agreed(wanted, team) + ") " + (team == team_ ? "return;" : "break;"));
  }

  std::string is_swapped(const Statement& s) const {
    return "is_swapped_m" + number(s.exchanged[0][0]) + "_" + number(homes_.at(&s));
  }
  void begin(const Statement& s) {
    for (const Statement::Carry& carry : s.carries) declare(carry.value, name(carry.first));
    if (s.exchanged.empty()) return;
    homes_.emplace(&s, std::int64_t(homes_.size()));
    line("bool " + is_swapped(s) + " = false;");
  }
  void end_step(const Statement& s) {
    std::vector<std::pair<Value, Value>> moves;
    for (const Statement::Carry& carry : s.carries)
      if (carry.next != carry.value) moves.emplace_back(carry.value, carry.next);
    bool in_turn = true;  // no move overwrites what a later one reads
    for (std::size_t i = 0; i < moves.size(); ++i)
      for (std::size_t later = i + 1; later < moves.size(); ++later)
        in_turn &= moves[later].second != moves[i].first;
    if (!in_turn)
      for (const auto& [to, from] : moves)
        line("const " + type(to) + " next_" + name(to) + " = " + name(from) + ";");
    for (const auto& [to, from] : moves)
      assign(name(to), in_turn ? name(from) : "next_" + name(to));
    for (const auto& [a, b] : s.exchanged)
      line("swap(" + memory_name(a) + ", " + memory_name(b) + ");");
    if (!s.exchanged.empty()) assign(is_swapped(s), "!" + is_swapped(s));
  }
  void end(const Statement& s, Team team) {
    if (!s.exchanged.empty())
      in_braces("if (" + is_swapped(s) + ")", [&] {
        if (s.kind == Kind::loop && touches_memory(s.blocks[0])) meet(team);
        for (std::size_t i = 0; i < s.exchanged.size(); ++i) write_home(s, i, team);
      });
    for (const Statement::Carry& carry : s.carries) define(carry.last, name(carry.value));
  }
  static bool touches_memory(const Block& block) {
    return std::any_of(block.begin(), block.end(), [](const Statement& s) {
      const Accesses accesses(s);
      return !accesses.reads.empty() || !accesses.writes.empty();
    });
  }
  // What two memories hold changes places, once they have theirs again.
  void write_home(const Statement& s, std::size_t pair, Team team) {
    const std::string a = memory_name(s.exchanged[pair][0]), b = memory_name(s.exchanged[pair][1]);
    line("swap(" + a + ", " + b + ");");
    const std::int64_t size = program_.memories[std::size_t(s.exchanged[pair][0])].size;
    const Statement::Region all{{-1}, {size}, {1}};
    const Statement::Region& region = s.regions.empty() ? all : s.regions[pair];
    for_each_element(region.shape, team, [&](const std::vector<std::string>& indices) {
      Further further;
      for (std::size_t axis = 0; axis < indices.size(); ++axis)
        further.emplace_back(indices[axis], region.strides[axis]);
      Place place = region.place;
      place.memory = s.exchanged[pair][0];
      const std::optional<Place> inner = in_row(place);
      const std::string at = "[" + offset(inner ? *inner : place, further) + "]";
      line("const " + type_text(program_.memories[std::size_t(s.exchanged[pair][0])].dtype) +
           " held = " + a + at + ";");
      assign(a + at, b + at);
      assign(b + at, "held");
    });
  }

  void write_branch(const Statement& s, Team team) {
    for (const Statement::Carry& carry : s.carries) declare(carry.value, "");
    for (std::size_t i = 0; i < s.blocks.size(); ++i) {
      const bool is_last = i + 1 == s.blocks.size();
      line((i == 0 ? "" : "} else ") +
           (is_last ? "{" : "if (" + name(s.operands[0]) + " == " + std::to_string(i) + ") {"));
      indent_ += "  ";
      write_one_after_another(s.blocks[i], team);
      for (const Statement::Carry& carry : s.carries)
        assign(name(carry.value), name(carry.nexts[i]));
      indent_.resize(indent_.size() - 2);
    }
    line("}");
  }

  // --- Combinations ------------------------------------------------------------------------------

  // A number with the terms of a step taken in, or two numbers combined.
  std::string taken_in(const Statement& s, const std::string& into,
                       const std::vector<std::string>& terms) const {
    if (*s.primitive == dot_general_p)
      return "lax::fma(" + terms[0] + ", " + terms[1] + ", " + into + ")";
    return both(s, into, terms[0]);
  }
  std::string both(const Statement& s, const std::string& a, const std::string& b) const {
    const DType of = dtype(s.value);
    const Primitive& by = *s.primitive == dot_general_p ? add_p : *s.primitive;
    return scalar_text(by, {}, {of, of}, {a, b}, codegen::Overflow::undefined);
  }
  // What a combination gives: the number so far is `first` at first, and takes in terms.
  struct Result {
    Value value, first;
    std::vector<Value> terms;
  };
  static std::vector<Result> results_of(const Statement& s) {
    std::vector<Result> results{
        {s.value, s.operands[0], {s.operands.begin() + 1, s.operands.end()}}};
    for (const Statement::Carry& carry : s.carries)
      results.push_back({carry.last, carry.first, {carry.next}});
    return results;
  }
  std::string part_of(const Result& result) const { return "part_of_" + name(result.value); }
  void begin_part(const Result& result) {
    line(type(result.value) + " " + part_of(result) + " = " + name(result.first) + ";");
  }
  void take_in(const Statement& s, const Result& result, const std::string& into) {
    std::vector<std::string> terms;
    for (const Value term : result.terms) terms.push_back(name(term));
    assign(into, taken_in(s, into, terms));
  }

  void write_combine(const Statement& s, Team team) {
    if (team == Team::grid) team = Team::block;  // each block all of it
    if (s.is_in_order) return combine_in_order(s, team);
    if (team == Team::thread) return combine_by_thread(s);
    if (team == Team::block) return combine_by_block(s);
    if (is_long(s)) return combine_by_warp(s);
    if (team == Team::warp && stores(s)) return combine_by_first_octet(s);
    combine_by_octet(s);
  }

  // All members compute it, unless it stores meanwhile: then the first one does.
  void combine_in_order(const Statement& s, Team team) {
    const std::vector<Result> results = results_of(s);
    const auto run = [&](const auto& into) {
      in_braces(counting(name(s.counter), size(s.steps)), [&] {
        const Enclosing loop(*this, "continue");
        write_in_order(s.blocks[0], Team::thread);
        for (const Result& result : results) take_in(s, result, into(result));
      });
    };
    const auto run_parts = [&] { run([&](const Result& result) { return part_of(result); }); };
    if (team == Team::thread || !stores(s)) {
      for (const Result& result : results) declare(result.value, name(result.first));
      run([&](const Result& result) { return name(result.value); });
    } else if (team == Team::octet || team == Team::warp) {
      for (const Result& result : results) begin_part(result);
      in_braces("if (" + rank(team) + " == 0)", run_parts);
      for (const Result& result : results) define(result.value, agreed(part_of(result), team));
    } else {
      by_few_threads(s, "threadIdx.x == 0", [&] {
        for (const Result& result : results) begin_part(result);
        run_parts();
        for (std::size_t i = 0; i < results.size(); ++i)
          line(total(s, i) + " = " + part_of(results[i]) + ";");
      });
    }
  }
  static bool stores(const Statement& s) {
    Effects effects;
    effects.add(s);
    return !effects.writes.empty();
  }
  // Some threads of a block find what all of them then know. All have read what was known before.
  template <class Body>
  void by_few_threads(const Statement& s, const std::string& which, const Body& body) {
    const std::vector<Result> results = results_of(s);
    std::size_t& known = totals_[dtype(s.value)];
    known = std::max(known, results.size());
    meet(Team::block);
    in_braces("if (" + which + ")", body);
    meet(Team::block);
    has_met_ = true;
    for (std::size_t i = 0; i < results.size(); ++i) define(results[i].value, total(s, i));
  }
  std::string total(const Statement& s, std::size_t i) const {
    return "total_" + type(s.value) + "[" + number(std::int64_t(i)) + "]";
  }

  // Eight parts in registers, which a loop over them that is unrolled keeps there. A long one has
  // 16 groups of them, one after the other.
  void combine_by_thread(const Statement& s) {
    const std::vector<Result> results = results_of(s);
    const auto total = [&](const Result& result) { return part_of_thread(result, "0"); };
    if (!is_long(s)) {
      combine_eight_parts(s, {});
      for (const Result& result : results) define(result.value, total(result));
      return;
    }
    const std::string group = "group" + number(depth_++);
    constexpr int groups = parts_of_strip / lanes, levels = 4;
    static_assert(groups == 1 << levels);
    const auto level = [&](const Result& result, int i) {
      return "level" + number(i) + "_of_" + name(result.value);
    };
    for (const Result& result : results)
      for (int i = 0; i < levels; ++i) line(type(result.value) + " " + level(result, i) + ";");
    in_braces(counting(group, number(groups)), [&] {
      combine_eight_parts(s, group);
      join_groups(0, levels, group, [&](int i, bool joins) {
        for (const Result& result : results) {
          const std::string at_level = level(result, std::min(i, levels - 1));
          if (joins)
            assign(total(result), both(s, at_level, total(result)));
          else
            assign(at_level, total(result));
        }
      });
    });
    --depth_;
    for (const Result& result : results) define(result.value, level(result, levels - 1));
  }
  // As a number is counted up in binary: two neighbours of a level are one of the next.
  template <class At>
  void join_groups(int level, int levels, const std::string& group, const At& at) {
    if (level == levels) return at(level, false);
    line("if (" + group + " >> " + number(level) + " & 1) {");
    indent_ += "  ";
    at(level, true);
    join_groups(level + 1, levels, group, at);
    indent_.resize(indent_.size() - 2);
    line("} else {");
    indent_ += "  ";
    at(level, false);
    indent_.resize(indent_.size() - 2);
    line("}");
  }
  std::string part_of_thread(const Result& result, const std::string& i) const {
    return "parts_of_" + name(result.value) + "[" + i + "]";
  }
  // Of all terms, or of those of a group of parts. Their combination is the first one at last.
  void combine_eight_parts(const Statement& s, const std::string& group) {
    const std::vector<Result> results = results_of(s);
    const std::string part = "part" + number(depth_++),
                      behind = group.empty() ? part : group + " * 8 + " + part;
    const std::int64_t stride = group.empty() ? lanes : parts_of_strip;
    for (const Result& result : results) {
      line(type(s.value) + " " + part_of_thread(result, number(lanes)) + ";");
      line("#pragma unroll");
      line(counting(part, number(lanes)) + " " + part_of_thread(result, part) + " = " +
           name(result.first) + ";");
    }
    const auto write_parts = [&](const std::string& first, const std::string& end, int count) {
      line("#pragma unroll");
      in_braces(counting(part, number(count)), [&] {
        const Enclosing loop(*this, "continue");
        line("const long " + name(s.counter) + " = " + first + " + " + behind + ";");
        if (!end.empty()) line("if (" + name(s.counter) + " >= " + end + ") break;");
        write_in_order(s.blocks[0], Team::thread);
        for (const Result& result : results) take_in(s, result, part_of_thread(result, part));
      });
    };
    const std::int64_t whole = s.steps / stride * stride;
    if (sizes_ == Sizes::given || whole > 0) {
      const std::string first = "first" + number(depth_), steps = size(whole);
      in_braces("for (long " + first + " = 0; " + first + " < " + steps + "; " + first +
                    " += " + number(stride) + ")",
                [&] { write_parts(first, "", lanes); });
    }
    if (sizes_ == Sizes::given || (!group.empty() && whole < s.steps))
      write_parts(size(whole), size(s.steps), lanes);
    else if (whole < s.steps)
      write_parts(number(whole), "", int(s.steps - whole));
    --depth_;
    for (const Result& result : results)
      for (int width = lanes / 2; width > 0; width /= 2)
        for (int i = 0; i < width; ++i) {
          // Of a long combination neighbours come first.
          const int a = group.empty() ? i : i * (lanes / width),
                    b = group.empty() ? i + width : a + lanes / width / 2;
          const std::string into = part_of_thread(result, number(a));
          assign(into, both(s, into, part_of_thread(result, number(b))));
        }
  }

  // Each lane has a part.
  void combine_by_octet(const Statement& s) {
    take_in_parts(s);
    for (const Result& result : results_of(s)) {
      join_lanes(s, part_of(result));
      define(result.value, "from_first_lane(" + part_of(result) + ")");
    }
  }
  // The octets of a warp would all store the same.
  void combine_by_first_octet(const Statement& s) {
    const std::vector<Result> results = results_of(s);
    for (const Result& result : results) begin_part(result);
    in_braces("if (" + rank(Team::warp) + " < 8)", [&] {
      take_in_to_parts(s);
      for (const Result& result : results) join_lanes(s, part_of(result));
    });
    for (const Result& result : results)
      define(result.value, "from_first_of_warp(" + part_of(result) + ")");
  }
  void take_in_parts(const Statement& s) {
    for (const Result& result : results_of(s)) begin_part(result);
    take_in_to_parts(s);
  }
  void take_in_to_parts(const Statement& s) {
    if (s.blocks[0].size() <= most_of_pipeline &&
        std::all_of(s.blocks[0].begin(), s.blocks[0].end(), codegen::is_straight))
      line(in_pipeline);
    in_braces("for (long " + name(s.counter) + " = threadIdx.x & 7u; " + name(s.counter) + " < " +
                  size(s.steps) + "; " + name(s.counter) + " += 8)",
              [&] {
                const Enclosing loop(*this, "continue");
                write_in_order(s.blocks[0], Team::thread);
                for (const Result& result : results_of(s)) take_in(s, result, part_of(result));
              });
  }
  void join_lanes(const Statement& s, const std::string& part) {
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      assign(part, both(s, part, "from_lane_after(" + part + ", " + number(distance) + ")"));
  }

  // Each lane of a warp has four parts.
  std::string part_of_lane(const Result& result) const {
    return "parts_of_" + name(result.value) + "[k]";
  }
  void begin_parts_of_lanes(const Statement& s) {
    for (const Result& result : results_of(s)) {
      const std::string first = name(result.first);
      line(type(result.value) + " parts_of_" + name(result.value) + "[4] = {" + first + ", " +
           first + ", " + first + ", " + first + "};");
    }
  }
  std::string joined(const Statement& s, const Result& result) const {
    const std::string type_of = type(result.value);
    return lanes_text(Team::warp, s.steps) + "::joined(parts_of_" + name(result.value) + ", [](" +
           type_of + " a, " + type_of + " b) { return " + both(s, "a", "b") + "; })";
  }
  void take_in_by_warp(const Statement& s) {
    begin_parts_of_lanes(s);
    write_strip(s, Team::warp, [&] {
      for (const Result& result : results_of(s)) take_in(s, result, part_of_lane(result));
    });
  }
  void combine_by_warp(const Statement& s) {
    take_in_by_warp(s);
    for (const Result& result : results_of(s)) define(result.value, joined(s, result));
  }

  // All threads, or smaller teams, compute terms, which then every warp, or octet, takes in for
  // itself. Few terms, or such as find no room, and rows, are computed by each of these, or by the
  // first one for all if they store.
  void combine_by_block(const Statement& s) {
    const bool is_wide = is_long(s);
    if (takes_row(s)) return is_wide ? combine_by_warp(s) : combine_by_octet(s);
    const Width width = width_of(s.blocks[0]);
    const std::vector<Result> results = results_of(s);
    const auto count = s.steps * std::int64_t(s.operands.size() - 1 + s.carries.size());
    if (s.steps * width.steps <= fewest_of_block / 4 || !has_room(dtype(s.operands[1]), count)) {
      if (stores(s)) return by_first_warp(s);
      return is_wide ? combine_by_warp(s) : combine_by_octet(s);
    }
    meet(Team::block);
    write_terms(s);
    meet(Team::block);
    has_met_ = true;
    const auto take_in_terms = [&](const auto& term, const auto& part) {
      std::size_t t = 0;
      for (const Result& result : results) {
        std::vector<std::string> names;
        for (std::size_t n = 0; n < result.terms.size(); ++n) names.push_back(term(t++));
        assign(part(result), taken_in(s, part(result), names));
      }
    };
    if (is_wide) {
      begin_parts_of_lanes(s);
      const std::string way = lanes_text(Team::warp, s.steps);
      in_turns(Team::warp, s.steps, [&] {
        for (std::size_t t = 0; t < num_terms(s); ++t)
          line("const auto term" + number(std::int64_t(t) + 1) + " = " + way + "::load(" +
               terms_of(s) + ", " + first_of_terms(s, t, "0") + ", turn, " + size(s.steps) + ");");
        for_each_of_four(Team::warp, s.steps, [&] {
          take_in_terms(
              [](std::size_t t) { return "term" + number(std::int64_t(t) + 1) + ".at[k]"; },
              [&](const Result& result) { return part_of_lane(result); });
        });
      });
      for (const Result& result : results) define(result.value, joined(s, result));
      return;
    }
    for (const Result& result : results) begin_part(result);
    line(in_pipeline);
    in_braces("for (long i = threadIdx.x & 7u; i < " + size(s.steps) + "; i += 8)", [&] {
      for (std::size_t t = 0; t < num_terms(s); ++t)
        line("const " + type_text(dtype(s.operands[1])) + " term" + number(std::int64_t(t) + 1) +
             " = " + terms_of(s) + "[" + first_of_terms(s, t, "") + "i];");
      take_in_terms([](std::size_t t) { return "term" + number(std::int64_t(t) + 1); },
                    [&](const Result& result) { return part_of(result); });
    });
    for (const Result& result : results) {
      join_lanes(s, part_of(result));
      define(result.value, "from_first_lane(" + part_of(result) + ")");
    }
  }
  static std::size_t num_terms(const Statement& s) {
    return s.operands.size() - 1 + s.carries.size();
  }
  std::string terms_of(const Statement& s) const {
    return "terms_" + type_text(dtype(s.operands[1]));
  }
  // Of the first of the terms of this number; none: what the first ones have.
  std::string first_of_terms(const Statement& s, std::size_t t, const std::string& none) {
    if (t == 0) return none;
    return size(std::int64_t(t) * s.steps) + (none.empty() ? " + " : "");
  }
  // Into shared memory, by the threads of a block or smaller teams.
  void write_terms(const Statement& s) {
    const std::vector<Result> results = results_of(s);
    const Team team = narrowest(width_of(s.blocks[0]));
    const std::string i = name(s.counter);
    if (team == Team::thread && has_fours_ && is_strip(s) && s.steps >= 2 * result_.threads)
      return write_strip(s, Team::block, [&] {
        write_own_terms(s, team, lanes_text(Team::block, s.steps) + "::index(turn, k)");
      });
    in_braces("for (long " + i + " = " + rank(team, Team::block) + "; " + i + " < " +
                  size(s.steps) + "; " + i + " += " + members(team, Team::block) + ")",
              [&] {
                const Enclosing loop(*this, "continue");
                write_in_order(s.blocks[0], team);
                write_own_terms(s, team, i);
              });
  }
  void write_own_terms(const Statement& s, Team team, const std::string& index) {
    std::size_t t = 0;
    for (const Result& result : results_of(s))
      for (const Value value : result.terms)
        line((team == Team::thread ? "" : "if (" + rank(team) + " == 0) ") + terms_of(s) + "[" +
             first_of_terms(s, t++, "") + index + "] = " + name(value) + ";");
  }
  // What stores may not run twice.
  void by_first_warp(const Statement& s) {
    const std::vector<Result> results = results_of(s);
    by_few_threads(s, is_long(s) ? "threadIdx.x < 32" : "threadIdx.x < 8", [&] {
      if (is_long(s)) {
        take_in_by_warp(s);
        for (const Result& result : results)
          line("const " + type(result.value) + " " + part_of(result) + " = " + joined(s, result) +
               ";");
      } else {
        take_in_parts(s);
        for (const Result& result : results) join_lanes(s, part_of(result));
      }
      for (std::size_t i = 0; i < results.size(); ++i)
        line("if (threadIdx.x == 0) " + total(s, i) + " = " + part_of(results[i]) + ";");
    });
  }
  // Whether the terms of a combination are a row that the block has.
  bool takes_row(const Statement& s) const {
    const Block& terms = s.blocks[0];
    return terms.size() == 1 && terms[0].kind == Kind::load && in_row(terms[0].place).has_value();
  }
  // Whether the terms of a combination find room in shared memory, which is then theirs.
  bool has_room(DType of, std::int64_t count) {
    if (sizes_ == Sizes::given) count = (count + 1023) / 1024 * 1024;
    std::int64_t& known = terms_[of];
    std::int64_t bytes = sorting_bytes_;
    for (const auto& [memory, row] : rows_)
      if (!is_kept(memory)) bytes += room_of(*row) * plait::size_of(dtype_of(*row));
    for (const auto& [each, most] : terms_)
      bytes += (each == of ? std::max(most, count) : most) * plait::size_of(each);
    if (bytes > most_shared) return false;
    known = std::max(known, count);
    return true;
  }
  DType dtype_of(const Row& row) const { return program_.memories[std::size_t(row.memory)].dtype; }
  std::int64_t room_of(const Row& row) const {
    return sizes_ == Sizes::given ? (row.size + 63) / 64 * 64 : row.size;
  }
  std::string shared() const {
    std::string text;
    for (const auto& [memory, row] : rows_)
      if (!is_kept(memory))
        text += "  SHARED(" + type_text(dtype_of(*row)) + ", row_m" + number(memory) + ", " +
                number(room_of(*row)) + ");\n";
    if (sorting_bytes_ > 0)
      text += "  SHARED(unsigned long, sorting, " + number(sorting_bytes_ / 8) + ");\n";
    for (const auto& [dtype, count] : terms_)
      if (count > 0)
        text += "  SHARED(" + type_text(dtype) + ", terms_" + type_text(dtype) + ", " +
                number(count) + ");\n";
    for (const auto& [dtype, count] : totals_)
      text += "  SHARED(" + type_text(dtype) + ", total_" + type_text(dtype) + ", " +
              number(std::int64_t(count)) + ");\n";
    return text;
  }

  const LoopProgram& program_;
  const std::int64_t wide_;
  const std::int64_t kernel_;  // the number of it, from 1 on
  std::vector<const Statement*>& checks_;
  const std::int64_t shared_of_block_;  // bytes
  Team team_ = Team::thread;
  const Sizes sizes_;
  KernelText result_;
  std::unordered_map<Value, Literal> literals_;
  std::unordered_map<const Statement*, std::int64_t> homes_;  // by loop that exchanges memories
  std::set<int> changing_;                                    // memories that are read and written
  std::optional<Fours> fours_;
  std::unordered_map<const Place*, std::string> offsets_;  // where two loops have them
  std::map<int, const Row*> rows_;                         // of a block, by memory
  RegisterRows register_rows_;
  bool has_fours_ = false;             // whether strips may be in fours
  std::set<int> aligned_;              // memories that must begin as fours do, for that
  std::vector<std::int64_t> divided_;  // and sizes that must be multiples of four
  bool has_met_ = false;             // threads of a block, in the combination that was written last
  std::vector<Kept> kept_;           // rows of a block for a whole step
  std::set<Value> grid_, counters_;  // counters of the grid, and of loops in its steps
  std::int64_t sorting_bytes_ = 0;   // of shared memory
  std::map<DType, std::int64_t> terms_;  // in shared memory: the most that any combination has
  std::map<DType, std::size_t> totals_;  // the same, of the results of one
  std::string indent_;
  bool is_short_ = true;    // steps of the grid have 32 bits
  std::int64_t depth_ = 0;  // of counters that have no value
  const Enclosing* leave_ = nullptr;
  std::string order_ = "0";  // of this step's failures among those of the kernel
};

}  // namespace

ProgramText text_of(const Staged& staged, std::string_view name, Sizes sizes,
                    std::int64_t shared_of_block) {
  ProgramText text;
  bool has_failed = false;  // an earlier kernel may have
  for (const Stage& stage : staged.stages) {
    const std::string own = std::string(name) + "_" + std::to_string(text.kernels.size());
    text.kernels.push_back(KernelWriter(staged, stage, own, std::int64_t(text.kernels.size()) + 1,
                                        text.checks, has_failed, sizes, shared_of_block)
                               .take());
    has_failed |= text.kernels.back().may_fail;
  }
  return text;
}

std::string source_of(std::span<const ProgramText* const> programs) {
  std::string kernels;
  for (const ProgramText* program : programs)
    for (const KernelText& kernel : program->kernels) kernels += "\n" + kernel.text;
  const auto has_any = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return kernels.find(word) != kernels.npos; });
  };
  const bool has_complex = has_any({"complex"}),
             has_special = has_any({"lax::igamma", "lax::random_gamma_grad(", "lax::betainc(",
                                    "lax::zeta(", "lax::polygamma(", "lax::bessel_", "lax::erfcx(",
                                    "lax::ndtri(", "lax::expi(", "lax::expn(", "lax::spence(",
                                    "lax::dawsn(", "lax::fresnel_", "lax::sine_integral(",
                                    "lax::cosine_integral(", "lax::owens_t(", "lax::hyp"}),
             calls = has_complex || has_special ||
                     has_any({"lax::sin(", "lax::cos(", "lax::tan(", "lax::pow(", "lax::lgamma(",
                              "lax::digamma("});
  // What is read takes long to compile: as much again as most kernels. What is called, and not
  // inline, is beside functions of complex numbers.
  std::string source = "#include <plait/kernel.h>\n";
  if (!calls) source = "#define PLAIT_NO_COMPLEX\n" + source;
  if (has_any({"lax::", "float16", "complex"})) source += "#include <plait/functions.h>\n";
  if (has_any({"octet()", "_lane(", "_after(", "swap(", "Lanes<", "_of_warp(", "InFours"}))
    source += "#include <plait/lanes.h>\n";
  if (has_any({"sort_short_rows<", "sort_long_rows<"})) source += "#include <plait/sort.h>\n";
  if (calls) source += "#include <base/math.cpp>\n";
  if (has_special)
    for (const char* name : {"", "_beta", "_gamma", "_hypergeometric", "_integrals"})
      source += std::string("#include <base/math_special") + name + ".cpp>\n";
  return source + kernels;
}

}  // namespace plait::cuda
