// The parser of loop programs: a statement a line, and blocks by indentation. See parse.h.
//
// Untrusted text is safe: its length and depth, the numbers of values, and sizes are bounded, every
// name is that of a value or a memory, and the checker accepts the result. The Interpreter tests
// the offsets of accesses.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/parse.h"

#include <algorithm>

#include "ir/terms.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr Value most_values = 1 << 22;
constexpr int most_arrays = 1 << 16;  // operands, or results
constexpr std::int64_t most_elements = std::int64_t(1) << 40;

class ProgramParser final : Terms {
 public:
  ProgramParser(std::string_view text, const KernelFor& kernel_for)
      : Terms(text), kernel_for_(kernel_for) {}

  LoopProgram whole() {
    if (text_.size() > max_length) fail("at most " + std::to_string(max_length) + " characters");
    num_named_ = num_named_values();
    program_.dtypes.assign(std::size_t(num_named_), DType::bool_);
    is_defined_.assign(std::size_t(num_named_), false);
    while (indentation() == 0 && at_word("memory")) memory();
    program_.body = block(0);
    if (indentation()) fail("a line that is indented like others of its block");
    if (const std::optional<Broken> found = broken(program_)) {
      std::size_t number = 0;
      if (found->statement) find(program_.body, found->statement, number);
      at_ = number < starts_.size() ? starts_[number] : 0;
      refuse("a statement is impossible: " + found->what);
    }
    return std::move(program_);
  }

 private:
  Jaxpr jaxpr(int) override { fail("a parameter that holds no program"); }

  // --- Lines -------------------------------------------------------------------------------------

  // Of the next line with text, to which it goes; nothing at the end.
  std::optional<std::size_t> indentation() {
    skip();
    if (at_ >= text_.size()) return {};
    const std::size_t before = at_ == 0 ? std::string_view::npos : text_.rfind('\n', at_ - 1);
    return before == std::string_view::npos ? at_ : at_ - before - 1;
  }
  bool is_at_end_of_line() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '#';
  }
  // Whether a statement goes on, in this line or in the next one.
  bool goes_on(std::size_t indent) {
    const std::size_t end = at_;
    if (!is_at_end_of_line() || indentation() > indent) return true;
    at_ = end;
    return false;
  }
  void end_line() {
    if (!is_at_end_of_line()) fail("the end of the line");
  }
  // With the comment that says why a statement is there, or whose it is.
  void end_line(Statement& s) {
    end_line();
    if (ahead(0) != "#") return;
    const std::size_t end = std::min(text_.size(), text_.find('\n', at_));
    std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
    if (!text.starts_with(reason_mark))
      s.source = comment();
    else
      s.reason = text.substr(reason_mark.size());
    at_ = end;
  }
  // The place of a statement in the program, and in the text, where blocks follow their statement.
  static bool find(const Block& block, const Statement* wanted, std::size_t& number) {
    for (const Statement& s : block) {
      if (&s == wanted) return true;
      ++number;
      for (const Block& inner : s.blocks)
        if (find(inner, wanted, number)) return true;
    }
    return false;
  }

  // --- Names and numbers -------------------------------------------------------------------------

  // One more than the largest number of a value in the text.
  Value num_named_values() const {
    Value count = 0;
    for (std::size_t i = text_.find('v'); i != std::string_view::npos; i = text_.find('v', i + 1)) {
      if (i > 0 && is_word(text_[i - 1])) continue;
      Value number = -1;
      const char* const first = text_.data() + i + 1;
      std::from_chars(first, text_.data() + text_.size(), number);
      if (number < most_values) count = std::max(count, number + 1);
    }
    return count;
  }
  // "v3", "m3", "x3".
  int numbered(char letter, int limit, const char* what) {
    const std::size_t start = (skip(), at_);
    int number = -1;
    if (at_ + 1 < text_.size() && text_[at_] == letter && is_digit(text_[at_ + 1])) {
      const auto [end, error] =
          std::from_chars(text_.data() + at_ + 1, text_.data() + text_.size(), number);
      if (error == std::errc()) at_ = std::size_t(end - text_.data());
    }
    if (number < 0 || number >= limit || (at_ < text_.size() && is_word(text_[at_])))
      fail_at(start, what);
    return number;
  }
  Value value() { return numbered('v', num_named_, "a value such as v3"); }
  int memory_name() {
    return numbered('m', int(program_.memories.size()), "a memory that there is, such as m3");
  }
  Value define(Value value, DType dtype) {
    const auto i = std::size_t(value);
    if (is_defined_[i] && program_.dtypes[i] != dtype)
      fail("the value v" + std::to_string(value) + " to have one dtype");
    is_defined_[i] = true;
    program_.dtypes[i] = dtype;
    return value;
  }
  const Primitive& primitive() {
    const std::size_t start = (skip(), at_);
    const Primitive* const known = primitive_or_none();
    if (!known) fail_at(start, "a primitive that is defined");
    return *known;
  }
  // "v3: float64"
  Value typed_value() {
    const Value defined = value();
    expect(":");
    return define(defined, dtype());
  }
  // A value, or a literal as one.
  Value number() {
    if (peek() == 'v') return value();
    const Literal read = literal();
    const auto [known, is_new] =
        literals_.try_emplace(read.to_string(), Value(program_.dtypes.size()));
    if (is_new) {
      if (known->second >= most_values) fail("at most " + std::to_string(most_values) + " values");
      program_.dtypes.push_back(read.dtype);
      program_.literals.emplace_back(known->second, read);
    }
    return known->second;
  }
  Values numbers_to_end_of_line() {
    Values numbers;
    while (!is_at_end_of_line()) numbers.push_back(number());
    return numbers;
  }
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
    const std::size_t start = (skip(), at_);
    std::int64_t integer = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), integer);
    if (error != std::errc()) fail("an integer");
    if (integer < low || integer > high)
      fail_at(start, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    at_ = std::size_t(end - text_.data());
    return integer;
  }
  // "(4,8)", of which the product is bounded.
  Sizes64 integers(std::int64_t low) {
    Sizes64 read;
    double product = 1;
    expect("(");
    if (peek() != ')') {
      do {
        read.push_back(integer(low, most_elements));
        product *= double(low < 0 ? 1 : read.back());
        if (read.size() > 64) fail("at most 64 axes");
      } while (accept(","));
    }
    expect(")");
    if (product > double(most_elements)) fail("fewer elements");
    return read;
  }
  Sizes64 shape() { return integers(0); }
  Sizes64 strides() { return integers(-most_elements); }
  bool is_at_literal() {
    const std::size_t digits = text_.find_first_not_of("-0123456789", (skip(), at_));
    return digits != std::string_view::npos && text_[digits] == ':';
  }
  // "m2[v3 * 5 + v4 + 1]"
  Place place() {
    Place place{memory_name()};
    expect("[");
    do {
      if (peek() != 'v' && !is_at_literal()) {
        place.offset = integer();
        break;
      }
      const Value index = number();
      place.terms.push_back({index, accept("*") ? integer() : 1});
    } while (accept("+"));
    expect("]");
    return place;
  }
  void soon(Statement& s) {
    if (is_at_end_of_line() || !at_word("and")) return;
    expect("and soon");
    do s.soon.push_back(place());
    while (!is_at_end_of_line() && peek() == 'm');
  }
  std::int64_t steps() {
    expect("in");
    expect("0..");
    return integer(0);
  }

  // --- Statements --------------------------------------------------------------------------------

  void memory() {
    expect("memory");
    const std::size_t start = (skip(), at_);
    const int number = numbered('m', most_values, "a memory such as m0");
    if (std::size_t(number) != program_.memories.size())
      fail_at(start, "the memory m" + std::to_string(program_.memories.size()));
    Memory memory;
    expect(":");
    memory.dtype = dtype();
    expect("[");
    memory.size = integer(0, most_elements);
    expect("]");
    num_elements_ += memory.size;
    if (num_elements_ > most_elements)
      fail("at most " + std::to_string(most_elements) + " elements of memory");
    if (accept("counts")) {
      memory.space = Memory::Space::counts;
    } else if (!accept("frame")) {
      memory.space =
          accept("operand") ? Memory::Space::operand : (expect("result"), Memory::Space::result);
      memory.index = int(integer(0, most_arrays));
    }
    end_line();
    program_.memories.push_back(memory);
  }

  Block block(std::size_t indent) {
    if (indent > 2 * max_depth) fail("at most " + std::to_string(max_depth) + " nested blocks");
    Block block;
    while (indentation() == indent && text_.substr(at_, 2) != "->")
      block.push_back(statement(indent));
    return block;
  }
  // A block behind a line that says which one it is.
  Block titled(std::size_t indent, const std::string& title) {
    if (indentation() != indent + 1 || !at_word(title)) fail("`" + title + "`");
    expect(title);
    end_line();
    return block(indent + 2);
  }

  Statement statement(std::size_t indent) {
    starts_.push_back(at_);
    Statement s;
    if (at_word("copy"))
      copy(s);
    else if (at_word("store"))
      store(s);
    else if (at_word("check"))
      check(s);
    else if (at_word("while"))
      loop(s, indent);
    else if (at_word("for") || at_word("parallel") || at_word("apart"))
      repeat(s, indent);
    else if (at_word("branch"))
      branch(s, indent);
    else if (peek() == 'm')
      call(s, indent);
    else
      definition(s, indent);
    return s;
  }

  void copy(Statement& s) {
    s.kind = Kind::copy;
    expect("copy");
    s.source_place = place();
    expect("->");
    s.place = place();
    expect("of");
    s.shape = shape();
    expect("by");
    s.source_strides = strides();
    expect("->");
    s.strides = strides();
    end_line(s);
  }
  void store(Statement& s) {
    s.kind = Kind::store;
    expect("store");
    s.place = place();
    expect("=");
    s.operands = {number()};
    end_line(s);
  }
  void check(Statement& s) {
    s.kind = Kind::check;
    expect("check");
    s.low = integer();
    expect("<=");
    s.operands = {number()};
    expect("<=");
    s.high = integer();
    s.raise = [low = s.low, high = s.high](std::int64_t index) {
      throw IndexError("index " + std::to_string(index) + " is outside of " + std::to_string(low) +
                           " to " + std::to_string(high),
                       "give indices inside");
    };
    end_line(s);
  }

  // What a loop carries, as numbers and as memories that change places.
  void carries(Statement& s) {
    while (!is_at_end_of_line()) {
      expect("(");
      if (peek() == 'm') {
        const int first = memory_name();
        expect("and");
        s.exchanged.push_back({first, memory_name()});
        expect("change places");
        if (accept("from")) {
          Statement::Region region{place(), {}, {}};
          expect("of");
          region.shape = shape();
          expect("by");
          region.strides = strides();
          s.regions.push_back(std::move(region));
        }
      } else {
        Statement::Carry carry{typed_value(), -1, -1, -1};
        expect("=");
        carry.first = number();
        expect(",");
        expect("then");
        carry.next = number();
        expect(",");
        expect("at last");
        carry.last = define(value(), program_.dtypes[std::size_t(carry.value)]);
        s.carries.push_back(std::move(carry));
      }
      expect(")");
    }
    end_line(s);
  }
  void repeat(Statement& s, std::size_t indent) {
    s.kind = Kind::repeat;
    s.is_parallel = accept("parallel");
    s.is_apart = s.is_parallel || accept("apart");
    expect("for");
    s.value = define(value(), DType::int64);
    s.steps = steps();
    if (s.steps > 0) program_.know(s.value, {0, s.steps - 1});
    if (!is_at_end_of_line() && at_word("in")) {
      expect("in shares of");
      s.grain = integer(1);
    }
    if (!is_at_end_of_line() && at_word("with")) {
      expect("with its own");
      do {
        s.own.push_back(memory_name());
      } while (!is_at_end_of_line() && peek() == 'm');
    }
    soon(s);
    carries(s);
    s.blocks.push_back(block(indent + 2));
  }
  void loop(Statement& s, std::size_t indent) {
    s.kind = Kind::loop;
    expect("while");
    s.operands = {number()};
    carries(s);
    s.blocks.push_back(titled(indent, "test"));
    s.blocks.push_back(titled(indent, "step"));
  }
  // Behind its results.
  void branch(Statement& s, std::size_t indent) {
    s.kind = Kind::branch;
    expect("branch");
    s.operands = {number()};
    end_line(s);
    while (indentation() == indent + 1)
      s.blocks.push_back(titled(indent, std::to_string(s.blocks.size())));
    if (s.blocks.empty()) fail("the alternatives of a branch");
  }

  // What begins with the values that it defines.
  void definition(Statement& s, std::size_t indent) {
    s.value = typed_value();
    if (peek() == '(') return results(s, indent);
    expect("=");
    if (at_word("load")) {
      s.kind = Kind::load;
      expect("load");
      s.place = place();
      return end_line(s);
    }
    if (at_word("combine")) return combine(s, indent);
    s.primitive = &primitive();
    s.params = params(0).params;
    s.operands = numbers_to_end_of_line();
    end_line(s);
  }
  void results(Statement& s, std::size_t indent) {
    Value result = std::exchange(s.value, -1);
    for (;;) {
      Statement::Carry carry{result, -1, -1, -1};
      expect("(");
      if (peek() != ')') {
        do carry.nexts.push_back(number());
        while (accept(","));
      }
      expect(")");
      s.carries.push_back(std::move(carry));
      if (accept("=")) return branch(s, indent);
      result = typed_value();
    }
  }
  void combine(Statement& s, std::size_t indent) {
    s.kind = Kind::combine;
    expect("combine");
    s.primitive = &primitive();
    s.params = params(0).params;
    if (at_word("in")) {
      expect("in order");
      s.is_in_order = true;
    }
    expect("from");
    s.operands = {number()};
    expect("of");
    s.counter = define(value(), DType::int64);
    s.steps = steps();
    soon(s);
    end_line(s);
    s.blocks.push_back(block(indent + 2));
    if (indentation() != indent + 2) fail("`->`, and the terms");
    expect("->");
    for (Value term : numbers_to_end_of_line()) s.operands.push_back(term);
    end_line();
  }

  // --- Calls -------------------------------------------------------------------------------------

  // "m2[0] = call sort[axis=0] x0 within 0..9 where x0: i32[32] at m1[0] by (1)"; the last part may
  // stand in a line of its own, which is indented.
  void call(Statement& s, std::size_t indent) {
    s.kind = Kind::call;
    const std::size_t start = at_;
    std::vector<Place> results;
    while (!accept("=")) results.push_back(place());
    expect("call");
    Equation equation;
    equation.primitive = &primitive();
    equation.params = params(0).params;
    while (!is_at_end_of_line() && !at_word("where") && !at_word("within"))
      equation.inputs.push_back(peek() == 'x'
                                    ? Atom(Var{numbered('x', most_arrays, "an operand such as x0")})
                                    : Atom(literal()));
    if (!is_at_end_of_line() && accept("within")) {
      s.low = integer();
      expect("..");
      s.high = integer();
      if (s.low >= s.high) fail("an integer above the first one");
    }
    std::vector<Aval> avals;
    Call call;
    if (goes_on(indent) && accept("where")) {
      do {
        const std::string name = "x" + std::to_string(avals.size());
        if (!at_word(name)) fail(name);
        expect(name);
        expect(":");
        avals.push_back(read_aval());
        expect("at");
        s.places.push_back(place());
        expect("by");
        call.strides.push_back(strides());
      } while (!is_at_end_of_line() && accept(","));
    }
    end_line(s);
    equation.source = s.source;
    call.program = program_of_call(start, equation, avals);
    if (kernel_for_) call.kernel = kernel_for_(call.program, call.strides);
    if (!call.kernel)
      fail_at(start, "a call for which there is a kernel, of `" +
                         std::string(equation.primitive->name()) + "`");
    s.places.insert(s.places.end(), results.begin(), results.end());
    s.call = std::make_shared<const Call>(std::move(call));
  }
  Jaxpr program_of_call(std::size_t start, const Equation& equation,
                        const std::vector<Aval>& avals) {
    std::vector<Aval> inputs;
    std::vector<bool> is_used(avals.size(), false);
    for (const Atom& atom : equation.inputs) {
      const auto operand = std::size_t(atom.is_var() ? atom.var().id : 0);
      if (atom.is_var() && operand >= avals.size())
        fail_at(start, "a call whose operand x" + std::to_string(operand) + " is an array");
      if (atom.is_var()) is_used[operand] = true;
      inputs.push_back(atom.is_var() ? avals[operand] : atom.literal().aval());
    }
    for (const Aval& aval : avals)
      if (aval.stack > 0 || !aval.shape.is_constant()) fail_at(start, "a call of plain arrays");
    infer_at(start, *equation.primitive, inputs, equation.params);
    if (!std::all_of(is_used.begin(), is_used.end(), [](bool used) { return used; }))
      fail_at(start, "a call that uses all its operands");
    Jaxpr program = program_of(equation, avals);
    if (program->equations.size() != 1) fail_at(start, "a call that computes something");
    return program;
  }
  // Its binders are the operands, in order, while those of lower.h are in the order of use.
  static Jaxpr program_of(const Equation& equation, const std::vector<Aval>& avals) {
    Builder builder;
    std::vector<Var> binders;
    for (const Aval& aval : avals) binders.push_back(builder.add_binder(aval));
    std::vector<Atom> atoms = equation.inputs;
    for (Atom& atom : atoms)
      if (atom.is_var()) atom = binders[std::size_t(atom.var().id)];
    const std::vector<Var> outputs =
        builder.add(*equation.primitive, std::move(atoms), equation.params, equation.source);
    return builder.close({outputs.begin(), outputs.end()});
  }

  const KernelFor& kernel_for_;
  LoopProgram program_;
  Value num_named_ = 0;  // literals have numbers from here on
  std::vector<bool> is_defined_;
  std::unordered_map<std::string, Value> literals_;  // by their text
  std::vector<std::size_t> starts_;                  // of statements
  std::int64_t num_elements_ = 0;
};

}  // namespace

LoopProgram parse(std::string_view text, const KernelFor& kernel_for) {
  return ProgramParser(text, kernel_for).whole();
}

}  // namespace plait::codegen
