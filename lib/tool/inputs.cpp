// See inputs.h.
// SPDX-License-Identifier: Apache-2.0
#include "tool/inputs.h"

#include <plait/base/argument_names.h>
#include <plait/base/pool.h>
#include <plait/functions/lax.h>

#include <algorithm>
#include <charconv>

#include "tool/arrays.h"
#include "tool/deploy.h"

namespace plait::tool {
namespace {

// "weights.w.0" from "weights['w'][0]": two spellings of the name of a leaf.
std::string plain(const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '[')
      text += '.';
    else if (c != ']' && c != '\'')
      text += c;
  }
  return text;
}

std::optional<double> to_double(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A number in code notation: "3", "1e-3", "true", "2j".
Array number_of(const std::string& text) {
  if (text == "true" || text == "false") return Array(text == "true");
  std::int64_t integer = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, integer);
  if (error == std::errc() && stop == end) return Array(integer);
  if (const auto real = to_double(text)) return Array(*real);
  if (text.ends_with('j'))
    if (const auto imaginary = to_double(std::string_view(text).substr(0, text.size() - 1)))
      return Array(complex128(0, *imaginary));
  throw Usage("--set needs a number, true or false, not `" + text + "`");
}

// A number takes the dtype of its argument if the kind allows it: 3 may be a float32.
Array as_wanted(const Array& number, DType wanted) {
  const bool fits = promote_weak({wanted, false}, {number.dtype(), true}).dtype == wanted;
  return fits ? lax::convert_element_type(number, wanted) : number;
}

class Given {
 public:
  Given(const Entry& entry, const Arguments& arguments)
      : entry_(entry), arrays_(entry.inputs().size()), casts_(arguments.has("--cast")) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) names_.push_back(input_name(entry, int(i)));
    for (const std::string& word : arguments.values("--inputs")) add_file(word);
    for (const std::string& word : arguments.values("--set")) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) throw Usage("--set needs name=number, not `" + word + "`");
      const std::size_t i = known(word.substr(0, equals));
      set(i, as_wanted(number_of(word.substr(equals + 1)), entry.inputs()[i].dtype));
    }
  }

  Arrays leaves() const {
    Arrays leaves;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (!arrays_[i])
        throw ValueError(
            "argument " + names_[i] + " of " + entry_.name() + ", " +
                entry_.inputs()[i].to_string() + ", is not given",
            "give it in a file, --inputs " + plain(names_[i]) + "=FILE.npy, or all in one .npz");
      leaves.push_back(*arrays_[i]);
    }
    return leaves;
  }

 private:
  std::optional<std::size_t> find(const std::string& name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (name == names_[i] || plain(name) == plain(names_[i])) return i;
    return std::nullopt;
  }
  std::size_t known(const std::string& name) const {
    if (const auto found = find(name)) return *found;
    std::string all;
    for (const std::string& each : names_) all += (all.empty() ? "" : ", ") + each;
    throw ValueError(entry_.name() + " has no argument `" + name + "`",
                     all.empty() ? "give none: it has no arguments" : "its arguments are " + all);
  }
  void set(std::size_t i, Array array) {
    if (arrays_[i]) throw Usage("argument " + names_[i] + " is given twice");
    const DType wanted = entry_.inputs()[i].dtype;
    if (casts_ && array.dtype() != wanted) array = lax::convert_element_type(array, wanted);
    arrays_[i] = std::move(array);
  }
  // "x.npz", "x.npy" for the next argument, "weights.w=w.npy".
  void add_file(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      if (const auto i = find(word.substr(0, equals))) {
        const std::vector<NamedArray> arrays = read_arrays(word.substr(equals + 1));
        if (arrays.size() != 1)
          throw Usage("`" + word + "` holds " + counted(std::int64_t(arrays.size()), "array") +
                      ", and argument " + names_[*i] + " is one");
        return set(*i, Array(arrays[0].array));
      }
    for (const NamedArray& named : read_arrays(word))
      set(place_of(named.name, word), Array(named.array));
  }
  // By name, by the position that NumPy gives to unnamed arrays, or the next one.
  std::size_t place_of(const std::string& name, const std::string& path) const {
    if (const auto found = find(name)) return *found;
    std::size_t place = 0;
    if (name.empty()) {
      while (place < arrays_.size() && arrays_[place]) ++place;
    } else {
      const char* const end = name.data() + name.size();
      if (!name.starts_with("arr_")) return known(name);
      const auto [stop, error] = std::from_chars(name.data() + 4, end, place);
      if (error != std::errc() || stop != end) return known(name);
    }
    if (place < arrays_.size()) return place;
    throw ValueError(path + " has one array more than " + entry_.name() + " has arguments, " +
                         std::to_string(arrays_.size()),
                     "plait info lists them");
  }

  const Entry& entry_;
  std::vector<std::string> names_;
  std::vector<std::optional<Array>> arrays_;
  const bool casts_;
};

bool has_size(const Entry& entry, const std::string& name) {
  return std::any_of(entry.jaxpr()->sizes.begin(), entry.jaxpr()->sizes.end(),
                     [&](Dim size) { return size.to_string() == name; });
}

std::map<std::string, std::int64_t> numbers_of(const Arguments& arguments) {
  SizeChoices choices(arguments.values("--size"));
  if (!choices.bounds.empty()) throw Usage("--size needs n=32 here, not a bound");
  return std::move(choices.fixed);
}

}  // namespace

std::span<const Option> input_options() {
  static const Option options[] = {
      {"--inputs", "FILE", "arrays by the names of arguments, or NAME=FILE.npy; again for more"},
      {"--set", "NAME=NUMBER", "an argument that is a number: --set rate=1e-3"},
      {"--cast", nullptr, "convert what is given to the dtypes that the entry takes"},
      {"--constants", "FILE", "constants by name, in place of the file's or those it left out"},
      {"--threads", "N", "how many threads; else PLAIT_THREADS, or one for each core"}};
  return options;
}

Program program_of(const Arguments& arguments) {
  LoadOptions options;
  for (const std::string& path : arguments.values("--constants"))
    for (const NamedArray& named : read_arrays(path))
      options.constants.insert_or_assign(named.name, Array(named.array));
  return load(arguments[0], options);
}

const Entry& entry_of(const Program& program, const Arguments& arguments) {
  return arguments.size() > 1 ? program[arguments[1]] : program.only();
}

Inputs inputs_of(const Entry& entry, const Arguments& arguments) {
  const bool is_given = arguments.has("--inputs") || arguments.has("--set");
  const bool is_example = !is_given && !entry.function().example.empty();
  const Arrays leaves = is_example ? entry.function().example : Given(entry, arguments).leaves();
  const ArgumentNames names([&](std::size_t i) { return "argument " + input_name(entry, int(i)); });
  Arrays operands;
  try {
    operands = entry.operands(leaves);
  } catch (const DtypeError& error) {
    throw DtypeError(error.problem(), "give that dtype, or add --cast to convert what is given");
  }
  Jaxpr jaxpr = instantiate_for(entry.jaxpr(), avals_of(operands));
  return {std::move(operands), std::move(jaxpr), is_example};
}

void check_sizes(std::span<const Entry> entries, const Arguments& arguments) {
  for (const auto& [name, number] : numbers_of(arguments)) {
    const std::string& wanted = name;
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return has_size(entry, wanted); }))
      throw ValueError("no entry has a size named " + name, "plait info lists the sizes");
  }
}

Jaxpr sized(const Entry& entry, const Arguments& arguments) {
  std::map<std::string, Dim> numbers;
  for (const auto& [name, number] : numbers_of(arguments))
    if (has_size(entry, name)) numbers.emplace(name, Dim(number));
  return numbers.empty() ? entry.jaxpr() : instantiate(entry.jaxpr(), numbers);
}

Jaxpr sized_whole(const Entry& entry, const Arguments& arguments) {
  Jaxpr jaxpr = sized(entry, arguments);
  if (jaxpr->sizes.empty()) return jaxpr;
  const std::string name = jaxpr->sizes[0].to_string();
  throw ValueError("the size " + name + " of entry " + entry.name() + " has no number",
                   "add --size " + name + "=32");
}

void choose_threads(const Arguments& arguments) {
  if (arguments.has("--threads")) set_num_threads(int(arguments.number("--threads", 1)));
}

}  // namespace plait::tool
