// Programs: entries as functions. See program.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/progress.h>
#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>
#include <plait/program/program.h>
#include <plait/rules/interpret.h>

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// "argument x['w']"
std::string place_of(const Entry& entry, int leaf) {
  int first = 0;
  const std::vector<TreeDef>& arguments = entry.arguments().children();
  for (std::size_t i = 0; i < arguments.size(); first += arguments[i++].num_leaves())
    if (leaf < first + arguments[i].num_leaves()) {
      const auto& names = entry.argument_names();
      return "argument " + (i < names.size() ? names[i] : std::to_string(i)) +
             arguments[i].path(leaf - first);
    }
  return "argument " + std::to_string(leaf);
}

// The array with the type that the program needs: number literals take its dtype.
Array fitted(const Entry& entry, int leaf, const Array& array, const Aval& wanted) {
  const Aval& given = array.aval();
  if (given.shape.rank() != wanted.shape.rank())
    throw ShapeError(entry.name() + ": " + place_of(entry, leaf) + " is " + given.to_string() +
                         ", and the program takes " + wanted.to_string(),
                     "give an array of that shape");
  for (int axis = 0; axis < wanted.rank(); ++axis)
    if (wanted.shape[axis].is_constant() && !(wanted.shape[axis] == given.shape[axis]))
      throw ShapeError(entry.name() + ": " + place_of(entry, leaf) + " is " + given.to_string() +
                           ", and the program takes " + wanted.to_string(),
                       "give an array of that shape, or save the program for named sizes");
  if (given.dtype == wanted.dtype && given.weak == wanted.weak) return array;
  const auto yields = [&] {
    return given.weak && !is_stored(wanted.dtype) &&
           promote_weak({given.dtype, true}, {wanted.dtype, wanted.weak}).dtype == wanted.dtype;
  };
  if (given.dtype != wanted.dtype && !yields())
    throw DtypeError(entry.name() + ": " + place_of(entry, leaf) + " is " + given.to_string() +
                         ", and the program takes " + wanted.to_string(),
                     "convert it with astype");
  return yielded(array, wanted.dtype, wanted.weak, entry.name() + ": " + place_of(entry, leaf));
}

bool is_sequence(const TreeDef& tree) {
  return tree.kind() == TreeDef::Kind::tuple || tree.kind() == TreeDef::Kind::list;
}

// Whether the structures have the same containers with the same keys. A record (a class of C++ or
// Python) stands for a dict or another record by names, and by position where the stored one has
// none: a sequence, or the numbered fields of earlier files.
bool same_shape(const TreeDef& stored, const TreeDef& given) {
  using Kind = TreeDef::Kind;
  if (stored.children().size() != given.children().size()) return false;
  const bool is_record = stored.kind() == Kind::record || given.kind() == Kind::record;
  const bool is_leaf = stored.kind() == Kind::leaf || given.kind() == Kind::leaf ||
                       stored.kind() == Kind::none || given.kind() == Kind::none;
  const bool is_alike = stored.kind() == given.kind() ||
                        (is_sequence(stored) && is_sequence(given)) || (is_record && !is_leaf);
  if (!is_alike || given.is_constant()) return false;
  // A plain tuple has no names to contradict, and stands for a record by position; a dict does not.
  if (stored.has_names() && !is_sequence(given) && !given.has_names()) return false;
  if (stored.kind() == Kind::dict && is_sequence(given)) return false;
  if (given.kind() == Kind::dict && !stored.has_names()) return false;
  const bool by_name = stored.has_names() && given.has_names();
  for (std::size_t i = 0; i < stored.children().size(); ++i) {
    std::size_t place = i;
    if (by_name) {
      const auto& names = given.keys();
      place = std::size_t(std::find(names.begin(), names.end(), stored.keys()[i]) - names.begin());
      if (place == names.size()) return false;
    }
    if (!same_shape(stored.children()[i], given.children()[place])) return false;
  }
  return true;
}

// The leaves of `given`, from index first on, in the order of the stored structure.
void arrange(const TreeDef& stored, const TreeDef& given, int first, std::span<const Array> leaves,
             Arrays& arranged) {
  if (stored.kind() == TreeDef::Kind::leaf) {
    arranged.push_back(leaves[std::size_t(first)]);
    return;
  }
  const bool by_name = stored.has_names() && given.has_names();
  for (std::size_t i = 0; i < stored.children().size(); ++i) {
    std::size_t place = i;
    if (by_name)
      place = std::size_t(std::find(given.keys().begin(), given.keys().end(), stored.keys()[i]) -
                          given.keys().begin());
    int before = 0;
    for (std::size_t k = 0; k < place; ++k) before += given.children()[k].num_leaves();
    arrange(stored.children()[i], given.children()[place], first + before, leaves, arranged);
  }
}

bool lacks_names(const TreeDef& stored, const TreeDef& given) {
  if (stored.has_names() && given.kind() == TreeDef::Kind::record && !given.has_names())
    return true;
  const std::size_t count = std::min(stored.children().size(), given.children().size());
  for (std::size_t i = 0; i < count; ++i)
    if (lacks_names(stored.children()[i], given.children()[i])) return true;
  return false;
}

double tolerance_for(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return 3e-2;
    case DType::float32:
    case DType::complex64:
      return 1e-4;
    default:
      return 1e-9;
  }
}

}  // namespace

Entry::Entry(std::string name, TracedFunction function) {
  const std::size_t num_constants = function.constants.size();
  if (function.jaxpr->num_binders != function.arguments.num_leaves() + int(num_constants))
    throw InternalError("entry " + name + ": the jaxpr has " +
                        std::to_string(function.jaxpr->num_binders) + " inputs, and there are " +
                        std::to_string(function.arguments.num_leaves()) + " leaves and " +
                        std::to_string(num_constants) + " constants");
  if (function.constant_names.size() != num_constants) {
    function.constant_names.clear();
    for (std::size_t i = 0; i < num_constants; ++i)
      function.constant_names.push_back("c" + std::to_string(i));
  }
  auto sized = function.jaxpr->sizes.empty()
                   ? nullptr
                   : std::make_shared<SizedProgram>(function.jaxpr, SizeOptions(), name, name);
  data_ = std::make_shared<const Data>(
      Data{std::move(name), std::move(function), {}, std::move(sized)});
}

std::span<const Aval> Entry::inputs() const {
  return jaxpr()->input_avals().first(std::size_t(arguments().num_leaves()));
}

Arrays Entry::operands(std::span<const Array> leaves) const {
  const std::span<const Aval> wanted = inputs();
  if (leaves.size() != wanted.size())
    throw TreeError(name() + " takes " + std::to_string(wanted.size()) + " arrays, and " +
                        std::to_string(leaves.size()) + " were given",
                    "its arguments are " + arguments().to_string());
  Arrays operands;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    operands.push_back(fitted(*this, int(i), leaves[i], wanted[i]));
  operands.insert(operands.end(), constants().begin(), constants().end());
  return operands;
}

Arrays Entry::operator()(std::span<const Array> leaves) const {
  const Arrays operands = this->operands(leaves);
  const ArgumentNames names([this](std::size_t leaf) { return place_of(*this, int(leaf)); });
  if (data_->sized) return (*data_->sized)(operands);
  return flat::call(jaxpr(), operands, name());
}

Entry Entry::at_sizes(SizeOptions options) const {
  if (!data_->sized)
    throw ValueError(name() + " has no named sizes",
                     "save it for arguments such as \"b 784\", or call it as it is");
  if (!options.constraints.empty())
    throw ValueError(name() + ": constraints are given for a loaded function",
                     "give them to save: the file holds them");
  auto changed = std::make_shared<Data>(*data_);
  changed->sized = std::make_shared<SizedProgram>(jaxpr(), std::move(options), name(), name());
  Entry entry = *this;
  entry.data_ = std::move(changed);
  return entry;
}

std::string Entry::explain(std::span<const Aval> leaves) const {
  std::vector<Aval> avals(leaves.begin(), leaves.end());
  for (const Array& constant : constants()) avals.push_back(constant.aval());
  return data_->sized ? data_->sized->explain(avals) : compile(jaxpr())->explain();
}

void Entry::check_arguments(const TreeDef& given) const {
  if (same_shape(arguments(), given)) return;
  throw TreeError(
      name() + " takes " + arguments().to_string() + ", and " + given.to_string() + " was given",
      lacks_names(arguments(), given)
          ? "name the fields of the struct: static constexpr auto plait_fields = "
            "plait::fields(\"name\", &Struct::name, ...)"
          : "give arguments of that structure");
}

Arrays Entry::arranged(const TreeDef& given, std::span<const Array> leaves) const {
  check_arguments(given);
  Arrays result;
  arrange(arguments(), given, 0, leaves, result);
  return result;
}

void check_savable(const TreeDef& structure) {
  if (structure.is_constant())
    throw TreeError("save: " + structure.to_string() +
                        " is no array, and a file holds arrays and their structure alone",
                    "let the function capture it, or make it an Array");
  for (const TreeDef& child : structure.children()) check_savable(child);
}

Entry Entry::with_constants(const std::map<std::string, Array>& replacements) const {
  auto changed = std::make_shared<Data>(*data_);
  TracedFunction& function = changed->function;
  for (const auto& [name, array] : replacements) {
    bool is_known = false;
    for (std::size_t i = 0; i < function.constant_names.size(); ++i) {
      if (function.constant_names[i] != name) continue;
      is_known = true;
      Aval aval = function.constants[i].aval(), given = array.aval();
      if (!(aval.shape == given.shape) || aval.dtype != given.dtype)
        throw ShapeError("the constant " + name + " of " + this->name() + " is " +
                             aval.to_string() + ", and " + given.to_string() + " was given for it",
                         "give an array of that shape and dtype");
      function.constants[i] =
          bind(cast_p, Arrays{array}, {{"dtype", aval.dtype}, {"weak", aval.weak}})[0];
    }
    if (!is_known)
      throw ValueError("there is no constant '" + name + "' in " + this->name(),
                       "its constants are " + list_of(function.constant_names));
  }
  changed->expected.clear();
  Entry entry = *this;
  entry.data_ = std::move(changed);
  return entry;
}

Entry Entry::with_jaxpr(const Jaxpr& jaxpr) const {
  const std::span<const Aval> wanted = this->jaxpr()->input_avals(), given = jaxpr->input_avals();
  if (!std::equal(wanted.begin(), wanted.end(), given.begin(), given.end()) ||
      this->jaxpr()->output_avals() != jaxpr->output_avals())
    throw ShapeError(name() + ": a program with other inputs or outputs was given in place of its",
                     "keep their number, order, shapes and dtypes");
  auto changed = std::make_shared<Data>(*data_);
  changed->function.jaxpr = jaxpr;
  if (changed->sized) changed->sized = changed->sized->with_program(jaxpr);
  Entry entry = *this;
  entry.data_ = std::move(changed);
  return entry;
}

void Entry::verify() const {
  if (data_->expected.empty()) return;
  const Arrays results = (*this)(data_->function.example);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto as_numbers = [](const Array& array) {
      return lax::convert_element_type(is_stored(array.dtype()) ? Array(array.numbers()) : array,
                                       DType::complex128);
    };
    const Array got = as_numbers(results[i]), wanted = as_numbers(data_->expected[i]);
    const Buffer a = got.host_buffer().dense(), b = wanted.host_buffer().dense();
    const double tolerance = tolerance_for(results[i].dtype());
    double scale = 0, worst = 0;
    for (std::int64_t e = 0; e < num_elements(a.shape()); ++e) {
      const complex128 x = static_cast<const complex128*>(a.data())[e],
                       y = static_cast<const complex128*>(b.data())[e];
      if (x == y || (std::isnan(std::abs(x)) && std::isnan(std::abs(y)))) continue;
      if (std::isfinite(std::abs(y))) scale = std::max(scale, std::abs(y));
      worst = std::isfinite(std::abs(x - y)) ? std::max(worst, std::abs(x - y)) : INFINITY;
    }
    if (worst > tolerance * std::max(1.0, scale))
      throw ValueError("verify: output " + std::to_string(i) + " of " + name() + " differs by " +
                           std::to_string(worst) + " from the one in the file",
                       "the file is damaged, or this machine computes otherwise");
  }
}

Program::Program(std::vector<Entry> entries, std::map<std::string, std::string> meta,
                 std::string licence)
    : entries_(std::move(entries)), meta_(std::move(meta)), licence_(std::move(licence)) {}

const Entry& Program::operator[](std::string_view name) const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.name() == name) return entry;
    names.push_back(entry.name());
  }
  throw ValueError("the program has no entry '" + std::string(name) + "'",
                   "its entries are " + list_of(names));
}

const Entry& Program::only() const {
  if (entries_.size() == 1) return entries_[0];
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name());
  throw ValueError("the program has " + std::to_string(entries_.size()) + " entries",
                   "name one of them: " + list_of(names));
}

void Program::verify() const {
  ProgressScope progress("verifying, entry", std::int64_t(entries_.size()));
  for (const Entry& entry : entries_) {
    entry.verify();
    progress.step();
  }
}

}  // namespace plait
