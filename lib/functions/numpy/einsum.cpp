// plait.numpy.einsum: Einstein's summation, "ij,jk->ik".
//
// Every operand becomes a term, an array with one label per axis: repeated labels take their
// diagonal, and labels that occur nowhere else are summed. Then dot_general contracts the pair of
// terms whose product is cheapest, until one term is left (the greedy path of opt_einsum: Smith and
// Gray, 2018).
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_analysis.h>

#include <cmath>
#include <map>
#include <set>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// Labels are letters; the axes of an ellipsis are numbered from its end, -1, -2, ...
using Label = int;
using Labels = std::vector<Label>;

struct Term {
  Array array;
  Labels labels;
};

bool has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

[[noreturn]] void refuse(const std::string& subscripts, const std::string& problem,
                         const std::string& fix) {
  throw ValueError("einsum: in \"" + subscripts + "\", " + problem, fix);
}

struct Subscripts {
  std::vector<Labels> operands;
  Labels output;
};

// Labels of one side of the arrow; an ellipsis stands for `ellipsis` axes.
Labels read_labels(const std::string& subscripts, std::string_view text, int ellipsis) {
  Labels labels;
  bool seen = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "...") {
      if (seen) refuse(subscripts, "an operand has two ellipses", "write '...' once an operand");
      seen = true;
      for (int axis = ellipsis; axis > 0; --axis) labels.push_back(-axis);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else {
      refuse(subscripts, std::string("'") + c + "' is no label",
             "use letters, ',', '...' and '->'");
    }
  }
  return labels;
}

Subscripts parse_subscripts(const std::string& subscripts, const Arrays& operands) {
  const std::size_t arrow = subscripts.find("->");
  std::vector<std::string_view> texts;
  std::string_view inputs = std::string_view(subscripts).substr(0, arrow);
  for (std::size_t start = 0, end = 0; end != std::string_view::npos; start = end + 1) {
    end = inputs.find(',', start);
    texts.push_back(inputs.substr(start, end - start));
  }
  if (texts.size() != operands.size())
    refuse(subscripts,
           "there are " + std::to_string(texts.size()) + " operands, and " +
               std::to_string(operands.size()) + " arrays are given",
           "write labels for each array, separated by ','");
  Subscripts result;
  int widest = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const int named = int(read_labels(subscripts, texts[i], 0).size()), rank = operands[i].ndim();
    const bool has_ellipsis = texts[i].find("...") != std::string_view::npos;
    if (has_ellipsis ? named > rank : named != rank)
      refuse(subscripts,
             "operand " + std::to_string(i) + " has " + std::to_string(named) +
                 " labels, and its array has shape (" + operands[i].shape().to_string() + ")",
             "write one label for each axis");
    result.operands.push_back(read_labels(subscripts, texts[i], has_ellipsis ? rank - named : 0));
    widest = std::max(widest, has_ellipsis ? rank - named : 0);
  }
  if (arrow != std::string::npos) {
    result.output = read_labels(subscripts, std::string_view(subscripts).substr(arrow + 2), widest);
    for (Label label : result.output) {
      if (std::count(result.output.begin(), result.output.end(), label) > 1)
        refuse(subscripts, "the result names a label twice", "name each label of the result once");
      bool found = false;
      for (const Labels& labels : result.operands) found |= has(labels, label);
      if (!found && label > 0)
        refuse(subscripts, std::string("the result's label '") + char(label) + "' is in no operand",
               "name labels of operands");
    }
    return result;
  }
  // Without an arrow: the ellipsis, then labels that occur once, in alphabetic order.
  for (int axis = widest; axis > 0; --axis) result.output.push_back(-axis);
  std::map<Label, int> counts;
  for (const Labels& labels : result.operands)
    for (Label label : labels) ++counts[label];
  for (auto [label, count] : counts)
    if (label > 0 && count == 1) result.output.push_back(label);
  return result;
}

class Contraction {
 public:
  Contraction(const std::string& text, const Arrays& operands, std::optional<DType> dtype)
      : text_(text), dtype_(dtype) {
    Subscripts subscripts = parse_subscripts(text, operands);
    output_ = std::move(subscripts.output);
    for (std::size_t i = 0; i < operands.size(); ++i)
      terms_.push_back({operands[i], std::move(subscripts.operands[i])});
    for (Term& term : terms_) find_sizes(term);
    for (Term& term : terms_) take_diagonals(term);
  }

  // The pairs that are contracted in turn, as numbers among the operands that are left: those of a
  // pair leave, and their product comes last.
  using Path = std::vector<std::pair<std::size_t, std::size_t>>;

  Array run(Path* path = nullptr) {
    if (terms_.size() == 1) sum_unused(terms_[0], {});
    while (terms_.size() > 1) {
      const auto [i, j] = cheapest_pair();
      const Term product = contract(i, j);
      if (path) path->push_back({i, j});
      terms_.erase(terms_.begin() + j);
      terms_.erase(terms_.begin() + i);
      terms_.push_back(product);
    }
    const Term& term = terms_[0];
    std::vector<int> order;
    Shape shape;
    std::vector<int> dims;
    for (std::size_t i = 0; i < output_.size(); ++i) {
      const auto at = std::find(term.labels.begin(), term.labels.end(), output_[i]);
      shape.push_back(sizes_.count(output_[i]) ? sizes_[output_[i]] : Dim(1));
      if (at == term.labels.end()) continue;  // dropped, because it has size 1 everywhere
      order.push_back(int(at - term.labels.begin()));
      dims.push_back(int(i));
    }
    return lax::broadcast_in_dim(lax::transpose(term.array, order), shape, dims);
  }

 private:
  // The size of a label; 1 broadcasts, as in NumPy.
  void find_sizes(const Term& term) {
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      const Dim size = term.array.shape(int(i));
      auto [entry, added] = sizes_.try_emplace(term.labels[i], size);
      if (added || entry->second == size || size == Dim(1)) continue;
      if (!(entry->second == Dim(1)))
        throw ShapeError("einsum: in \"" + text_ + "\", the label " +
                             name_of_label(term.labels[i]) + " has sizes " +
                             entry->second.to_string() + " and " + size.to_string(),
                         "give arrays whose axes of one label have one size");
      entry->second = size;
    }
  }
  static std::string name_of_label(Label label) {
    return label > 0 ? "'" + std::string(1, char(label)) + "'" : "of an ellipsis";
  }

  // Drops axes of size 1 where the label has another size; repeated labels take their diagonal.
  void take_diagonals(Term& term) {
    Shape shape;
    Labels labels;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      const Dim size = term.array.shape(int(i));
      if (size == Dim(1) && !(sizes_[term.labels[i]] == Dim(1))) continue;
      shape.push_back(size);
      labels.push_back(term.labels[i]);
    }
    if (shape.size() != term.labels.size()) term = {lax::reshape(term.array, shape), labels};
    for (std::size_t i = 0; i < term.labels.size(); ++i)
      for (std::size_t j = i + 1; j < term.labels.size(); ++j)
        if (term.labels[i] == term.labels[j]) {
          const Label label = term.labels[i];
          term.array = numpy::diagonal(term.array, 0, int(i), int(j));
          term.labels.erase(term.labels.begin() + j);
          term.labels.erase(term.labels.begin() + i);
          term.labels.push_back(label);
          return take_diagonals(term);
        }
  }

  // Sums a term over labels that neither the result nor another term has.
  void sum_unused(Term& term, const std::set<Label>& used_elsewhere) {
    std::vector<int> axes;
    Labels left;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      if (has(output_, term.labels[i]) || used_elsewhere.count(term.labels[i]))
        left.push_back(term.labels[i]);
      else
        axes.push_back(int(i));
    }
    if (axes.empty()) return;
    const DType wide = dtype_.value_or(term.array.dtype());
    term = {lax::reduce_sum(dtype_ ? astype(term.array, wide) : term.array, axes), left};
  }

  // Sizes for comparing costs; a named one counts as large.
  double size_of_labels(const std::set<Label>& labels) {
    double size = 1;
    for (Label label : labels)
      size *= sizes_[label].is_constant() ? double(sizes_[label].constant()) : 1024;
    return size;
  }

  std::set<Label> used_besides(std::size_t i, std::size_t j) const {
    std::set<Label> used(output_.begin(), output_.end());
    for (std::size_t k = 0; k < terms_.size(); ++k)
      if (k != i && k != j) used.insert(terms_[k].labels.begin(), terms_[k].labels.end());
    return used;
  }

  // The pair whose product is smallest relative to the terms that it replaces, and of those the
  // least work.
  std::pair<std::size_t, std::size_t> cheapest_pair() {
    std::pair<std::size_t, std::size_t> best{0, 1};
    std::pair<double, double> best_cost{INFINITY, INFINITY};
    for (std::size_t i = 0; i < terms_.size(); ++i)
      for (std::size_t j = i + 1; j < terms_.size(); ++j) {
        const std::set<Label> a(terms_[i].labels.begin(), terms_[i].labels.end()),
            b(terms_[j].labels.begin(), terms_[j].labels.end());
        const std::set<Label> used = used_besides(i, j);
        std::set<Label> all = a, kept;
        all.insert(b.begin(), b.end());
        for (Label label : all)
          if (used.count(label)) kept.insert(label);
        const std::pair<double, double> cost{
            size_of_labels(kept) - size_of_labels(a) - size_of_labels(b), size_of_labels(all)};
        if (cost < best_cost) best_cost = cost, best = {i, j};
      }
    return best;
  }

  Term contract(std::size_t i, std::size_t j) {
    Term a = terms_[i], b = terms_[j];
    const std::set<Label> used = used_besides(i, j);
    std::set<Label> used_with_a = used, used_with_b = used;
    used_with_a.insert(a.labels.begin(), a.labels.end());
    used_with_b.insert(b.labels.begin(), b.labels.end());
    sum_unused(a, used_with_b);
    sum_unused(b, used_with_a);
    if (dtype_ && a.array.dtype() != b.array.dtype())
      a.array = astype(a.array, *dtype_), b.array = astype(b.array, *dtype_);
    lax::DotDimensions d;
    Labels labels, a_free, b_free;
    for (std::size_t axis = 0; axis < a.labels.size(); ++axis) {
      const auto at = std::find(b.labels.begin(), b.labels.end(), a.labels[axis]);
      if (at == b.labels.end()) {
        a_free.push_back(a.labels[axis]);
        continue;
      }
      const bool is_kept = used.count(a.labels[axis]);
      (is_kept ? d.lhs_batch : d.lhs_contract).push_back(int(axis));
      (is_kept ? d.rhs_batch : d.rhs_contract).push_back(int(at - b.labels.begin()));
      if (is_kept) labels.push_back(a.labels[axis]);
    }
    for (Label label : b.labels)
      if (!has(a.labels, label)) b_free.push_back(label);
    labels.insert(labels.end(), a_free.begin(), a_free.end());
    labels.insert(labels.end(), b_free.begin(), b_free.end());
    return {lax::dot_general(a.array, b.array, d, dtype_), labels};
  }

  const std::string& text_;
  std::optional<DType> dtype_;
  Labels output_;
  std::vector<Term> terms_;
  std::map<Label, Dim> sizes_;
};

}  // namespace

Array numpy::einsum(const std::string& subscripts, Operands operands,
                    OptionalDType preferred_element_type) {
  if (operands.empty())
    throw ValueError("einsum: no operands", "give an array for each operand of the subscripts");
  Arrays arrays(operands);
  promote_dtypes(arrays, "einsum");
  return Contraction(subscripts, arrays, preferred_element_type).run();
}

std::vector<std::vector<int>> numpy::einsum_path(const std::string& subscripts, Operands operands) {
  if (operands.empty())
    throw ValueError("einsum_path: no operands", "give an array for each operand");
  std::vector<std::vector<int>> steps;
  // What the path depends on, shapes, is all that is traced here.
  make_jaxpr(
      [&](std::span<const Array> x) {
        Contraction::Path path;
        Arrays arrays(x.begin(), x.end());
        promote_dtypes(arrays, "einsum_path");
        const Array result = Contraction(subscripts, arrays, {}).run(&path);
        for (const auto& [i, j] : path) steps.push_back({int(i), int(j)});
        return Arrays{result};
      },
      avals_of(operands), "einsum_path");
  if (steps.empty()) steps.push_back({0});
  return steps;
}

namespace {

// NumPy's second form, einsum(a, [0, 1], b, [1, 2], [0, 2]): labels as numbers after each array,
// and perhaps those of the result.
struct Einsum {
  std::string subscripts;
  Arrays operands;
};
std::string letters_of(const Array& labels) {
  std::string letters;
  if (labels.ndim() != 1 ||
      (!is_integer(labels.dtype()) && !(labels.shape().num_elements() == Dim(0))))
    throw DtypeError("einsum: labels of dtype " + std::string(name_of(labels.dtype())) +
                         " and shape (" + labels.shape().to_string() + ")",
                     "give a list of integers after each array");
  for (std::int64_t label : labels.to_vector<std::int64_t>()) {
    if (label < 0 || label >= 52)
      throw ValueError("einsum: the label " + std::to_string(label), "give labels from 0 to 51");
    letters += char(label < 26 ? 'A' + label : 'a' + label - 26);
  }
  return letters;
}
Einsum einsum_arguments(const Argument& subscripts, const Arrays& operands) {
  if (const auto* text = std::get_if<std::string>(&subscripts.value)) return {*text, operands};
  const std::optional<Array> first = detail::as_array(subscripts);
  if (!first || operands.empty())
    throw DtypeError(
        "einsum: the first argument is neither subscripts nor an array",
        "call it as einsum('ij,jk->ik', a, b) or einsum(a, [0, 1], b, [1, 2], [0, 2])");
  Einsum result{letters_of(operands[0]), {*first}};
  std::size_t i = 1;
  for (; i + 1 < operands.size(); i += 2) {
    result.operands.push_back(operands[i]);
    result.subscripts += "," + letters_of(operands[i + 1]);
  }
  if (i < operands.size()) result.subscripts += "->" + letters_of(operands[i]);
  return result;
}
Array einsum_of(const Argument& subscripts, Operands operands,
                std::optional<DType> preferred_element_type) {
  const Einsum einsum = einsum_arguments(subscripts, operands);
  return numpy::einsum(einsum.subscripts, einsum.operands, preferred_element_type);
}
// (("einsum_path", (i, j), ...), text), as NumPy gives them.
Argument einsum_path_of(const Argument& subscripts, Operands operands) {
  const Einsum einsum = einsum_arguments(subscripts, operands);
  Argument::List path{std::string("einsum_path")};
  std::string text = "contracts in turn, of the operands that are left:";
  for (const std::vector<int>& step : numpy::einsum_path(einsum.subscripts, einsum.operands)) {
    path.push_back(detail::give(step));
    text += " (";
    for (std::size_t i = 0; i < step.size(); ++i) text += (i ? ", " : "") + std::to_string(step[i]);
    text += ")";
  }
  return Argument(Argument::List{Argument(std::move(path)), text});
}

[[maybe_unused]] const FunctionInfo* const einsum_functions[] = {
    function(
        "numpy",
        "einsum(subscripts, *operands, out=None!, optimize='auto'!, precision=None!, "
        "preferred_element_type=None)",
        "Sums of products by labels of axes: \"ij,jk->ik\" is matmul, \"ii->i\" a diagonal, "
        "\"...ij->...ji\" a transpose. Labels "
        "that the result lacks are summed; without '->' it has those that occur once, in "
        "alphabetic order. Several operands "
        "are contracted pairwise, the cheapest first. Or einsum(a, [0, 1], b, [1, 2], [0, 2]), "
        "with labels as numbers after each array, and at the end those of the result.",
        &einsum_of),
    function("numpy", "einsum_path(subscripts, *operands, optimize='auto'!)",
             "(path, text): in which order einsum contracts its operands. path is 'einsum_path' "
             "and then the numbers of each pair among the operands that are left, of which the "
             "product becomes the last.",
             &einsum_path_of),
};

}  // namespace
}  // namespace plait
