// Sizes: random expressions against a naive evaluator.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/error.h>

#include <algorithm>
#include <memory>
#include <random>

#include "dim_values.h"

using namespace plait;

namespace {

const std::vector<std::string> names = {"n", "m", "d"};

Values random_values(std::mt19937& random) {
  Values values;
  for (const std::string& name : names)
    values[name] = random() % 3 == 0 ? random() % 4 : random() % 40;
  return values;
}

// An expression as a tree, whose value is computed node by node: what Dim is tested against.
struct Tree;
using TreePtr = std::shared_ptr<const Tree>;
struct Tree {
  char operation;  // '#' constant, 'n' name, + - * / % min '<' max '>'
  std::int64_t value = 0;
  std::string name;
  TreePtr left, right;
};

TreePtr random_tree(std::mt19937& random, int depth) {
  const auto tree = std::make_shared<Tree>();
  if (depth == 0 || random() % 6 == 0) {
    if (random() % 3 == 0) {
      tree->operation = '#';
      tree->value = static_cast<std::int64_t>(random() % 19) - 6;
    } else {
      tree->operation = 'n';
      tree->name = names[random() % names.size()];
    }
    return tree;
  }
  tree->operation = "++--**//%<>"[random() % 11];
  tree->left = random_tree(random, depth - 1);
  tree->right = random_tree(random, depth - 1);
  if (tree->operation == '*' && random() % 2 == 0) tree->right = random_tree(random, 0);
  if ((tree->operation == '/' || tree->operation == '%') && random() % 4 != 0) {
    const auto divisor = std::make_shared<Tree>();
    divisor->operation = '#';
    divisor->value = 1 + static_cast<std::int64_t>(random() % 12);
    if (random() % 8 == 0) divisor->value = -divisor->value;
    tree->right = divisor;
  }
  return tree;
}

// None where a division by zero makes the value undefined.
std::optional<std::int64_t> value_of(const Tree& tree, const Values& values) {
  if (tree.operation == '#') return tree.value;
  if (tree.operation == 'n') return values.at(tree.name);
  const auto a = value_of(*tree.left, values), b = value_of(*tree.right, values);
  if (!a || !b) return std::nullopt;
  if ((tree.operation == '/' || tree.operation == '%') && *b == 0) return std::nullopt;
  // Python's rounding, by definition: the remainder has the sign of the divisor.
  std::int64_t remainder = 0;
  if (tree.operation == '/' || tree.operation == '%') remainder = ((*a % *b) + *b) % *b;
  switch (tree.operation) {
    case '+':
      return *a + *b;
    case '-':
      return *a - *b;
    case '*':
      return *a * *b;
    case '/':
      return (*a - remainder) / *b;
    case '%':
      return remainder;
    case '<':
      return std::min(*a, *b);
    default:
      return std::max(*a, *b);
  }
}

Dim dim_of(const Tree& tree) {
  if (tree.operation == '#') return tree.value;
  if (tree.operation == 'n') return Dim::size(tree.name);
  const Dim a = dim_of(*tree.left), b = dim_of(*tree.right);
  switch (tree.operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return floor_divide(a, b);
    case '%':
      return modulo(a, b);
    case '<':
      return minimum(a, b);
    default:
      return maximum(a, b);
  }
}

std::string text_of(const Tree& tree) {
  if (tree.operation == '#') return std::to_string(tree.value);
  if (tree.operation == 'n') return tree.name;
  const std::string a = text_of(*tree.left), b = text_of(*tree.right);
  switch (tree.operation) {
    case '/':
      return "(" + a + ") // (" + b + ")";
    case '<':
      return "min(" + a + "," + b + ")";
    case '>':
      return "max( " + a + ", " + b + " )";
    default:
      return "(" + a + ")" + tree.operation + "(" + b + ")";
  }
}

// Rebuilds a size from operation() and operands(), as an interpreter would; counts the steps, so
// that a decomposition that does not end is noticed.
Dim rebuilt(Dim dim, int& steps) {
  REQUIRE(++steps < 100000);
  using Operation = Dim::Operation;
  const Operation operation = dim.operation();
  if (operation == Operation::constant) return dim.constant();
  if (operation == Operation::size) return Dim::size(dim.name());
  const auto [left, right] = dim.operands();
  const Dim a = rebuilt(left, steps), b = rebuilt(right, steps);
  switch (operation) {
    case Operation::add:
      return a + b;
    case Operation::multiply:
      return a * b;
    case Operation::floor_divide:
      return floor_divide(a, b);
    case Operation::modulo:
      return modulo(a, b);
    case Operation::minimum:
      return minimum(a, b);
    default:
      return maximum(a, b);
  }
}

std::optional<Dim> dim_if_defined(const Tree& tree) {
  try {
    return dim_of(tree);
  } catch (const ShapeError&) {
    return std::nullopt;  // it divides by zero whatever the sizes are
  }
}

}  // namespace

TEST_CASE("random expressions have the value of a naive evaluator") {
  std::mt19937 random(1);
  int num_defined = 0;
  for (int i = 0; i < 4000; ++i) {
    const TreePtr tree = random_tree(random, 1 + static_cast<int>(random() % 4));
    const auto dim = dim_if_defined(*tree);
    const std::string text = text_of(*tree);
    CAPTURE(text);
    if (!dim) {  // undefined whatever the sizes are
      for (int j = 0; j < 12; ++j) REQUIRE(!value_of(*tree, random_values(random)));
      continue;
    }
    CAPTURE(*dim);
    REQUIRE(Dim::parse(text) == *dim);
    for (int j = 0; j < 12; ++j) {
      const Values values = random_values(random);
      const auto expected = value_of(*tree, values);
      if (!expected) continue;
      ++num_defined;
      REQUIRE(evaluate(*dim, values) == *expected);
      const auto lower = dim->lower_bound(), upper = dim->upper_bound();
      REQUIRE((!lower || *lower <= *expected));
      REQUIRE((!upper || *upper >= *expected));
    }
  }
  CHECK(num_defined > 20000);
}

TEST_CASE("random expressions survive text, decomposition and substitution") {
  std::mt19937 random(2);
  int num_defined = 0;
  for (int i = 0; i < 4000; ++i) {
    const TreePtr tree = random_tree(random, 1 + static_cast<int>(random() % 4));
    const auto dim = dim_if_defined(*tree);
    if (!dim) continue;
    CAPTURE(*dim);
    REQUIRE(Dim::parse(dim->to_string()) == *dim);
    // Equal in value: with many operands under a minimum, forms may differ.
    int steps = 0;
    const Dim again = rebuilt(*dim, steps);
    REQUIRE(equal(again, *dim) != false);
    const Values values = random_values(random);
    std::vector<std::pair<Dim, Dim>> numbers;
    for (const auto& [name, value] : values) numbers.emplace_back(Dim::size(name), value);
    const auto expected = value_of(*tree, values);
    if (!expected) continue;  // divides by zero at these values
    ++num_defined;
    REQUIRE(dim->substitute(numbers) == Dim(*expected));
    REQUIRE(evaluate(*dim, values) == *expected);
    REQUIRE(evaluate(again, values) == *expected);
  }
  CHECK(num_defined > 2000);
}

TEST_CASE("random orders that are decided hold") {
  std::mt19937 random(3);
  int num_decided = 0;
  for (int i = 0; i < 3000; ++i) {
    const TreePtr trees[] = {random_tree(random, 2), random_tree(random, 2)};
    const auto a = dim_if_defined(*trees[0]), b = dim_if_defined(*trees[1]);
    if (!a || !b) continue;
    const auto order = less_equal(*a, *b);
    const auto same = equal(*a, *b);
    num_decided += order.has_value();
    CAPTURE(*a);
    CAPTURE(*b);
    for (int j = 0; j < 10; ++j) {
      const Values values = random_values(random);
      const auto x = value_of(*trees[0], values), y = value_of(*trees[1], values);
      if (!x || !y) continue;
      if (order) REQUIRE((*x <= *y) == *order);
      if (same) REQUIRE((*x == *y) == *same);
    }
  }
  CHECK(num_decided > 500);
}

TEST_CASE("random polynomials that are equal are the same size, in any order of building") {
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    std::vector<Dim> terms;
    for (int j = 0; j < 4; ++j) {
      const auto term = dim_if_defined(*random_tree(random, 2));
      if (term) terms.push_back(*term);
    }
    if (terms.size() < 2) continue;
    const Dim a = terms[0], b = terms[1], c = terms.back();
    CAPTURE(a);
    CAPTURE(b);
    CAPTURE(c);
    REQUIRE((a + b) * c == c * b + a * c);
    REQUIRE(a - (b - c) == a + c - b);
    REQUIRE(minimum(a, b) == minimum(b, a));
    REQUIRE(maximum(a, b) == -minimum(-a, -b));
    REQUIRE(equal(minimum(a, b) + maximum(a, b), a + b) != false);
    REQUIRE(floor_divide(a, 5) * 5 + modulo(a, 5) == a);
    if (c != 0) REQUIRE(floor_divide(a, c) * c + modulo(a, c) == a);
    REQUIRE(floor_divide(a * 6 + 5, 6) == a);
    if (c != 0) REQUIRE(floor_divide(a * c, c) == a);
  }
}
