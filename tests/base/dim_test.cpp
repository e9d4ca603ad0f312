// Sizes: integer arithmetic and its limits, canonical forms, text and parsing, bounds.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/error.h>
#include <plait/base/size_facts.h>

#include <algorithm>
#include <sstream>
#include <thread>
#include <unordered_set>
#include <vector>

#include "dim_values.h"

using namespace plait;

namespace {

std::string canonical(std::string_view text) { return Dim::parse(text).to_string(); }

}  // namespace

TEST_CASE("integers are sizes and cost no expression") {
  const Dim five = 5, minus = -7;
  CHECK(five.is_constant());
  CHECK(five.constant() == 5);
  CHECK(minus.constant() == -7);
  CHECK(five + 3 == 8);
  CHECK(five - 8 == -3);
  CHECK(five * minus == -35);
  CHECK(-five == -5);
  CHECK(floor_divide(minus, 2) == -4);
  CHECK(floor_divide(7, -2) == -4);
  CHECK(modulo(minus, 3) == 2);
  CHECK(modulo(7, -3) == -2);
  CHECK(ceil_divide(7, 2) == 4);
  CHECK(ceil_divide(-7, 2) == -3);
  CHECK(ceil_divide(7, -2) == -3);
  CHECK(minimum(3, 4) == 3);
  CHECK(maximum(3, 4) == 4);
  CHECK(Dim() == 0);
  CHECK(five.to_string() == "5");
  CHECK(five.lower_bound() == 5);
  CHECK(five.upper_bound() == 5);
  CHECK(less_equal(3, 3) == true);
  CHECK(less_equal(4, 3) == false);
  CHECK(equal(4, 3) == false);
  CHECK(sizeof(Dim) == 8);
}

TEST_CASE("arithmetic that leaves 62 bits is a ShapeError") {
  const Dim largest = (std::int64_t{1} << 62) - 1, n = Dim::size("n");
  CHECK(largest.constant() == (std::int64_t{1} << 62) - 1);
  CHECK((-largest - 1).constant() == -(std::int64_t{1} << 62));
  CHECK_THROWS_AS(largest + 1, ShapeError);
  CHECK_THROWS_AS(-largest - 2, ShapeError);
  CHECK_THROWS_AS(largest * 2, ShapeError);
  CHECK_THROWS_AS(largest * largest, ShapeError);
  CHECK_THROWS_AS(Dim(std::int64_t{1} << 62), ShapeError);
  CHECK_THROWS_AS(Dim{std::numeric_limits<std::int64_t>::min()}, ShapeError);
  CHECK_THROWS_AS(floor_divide(-largest - 1, -1), ShapeError);
  CHECK_THROWS_AS(largest * n + n, ShapeError);
  CHECK_THROWS_AS(largest * n * 2, ShapeError);
  CHECK_THROWS_AS(evaluate(n * n, {{"n", std::int64_t{1} << 32}}), ShapeError);
  // Only the result counts: the first term alone would leave 62 bits.
  CHECK(evaluate(3 * n - 2 * n, {{"n", largest.constant()}}) == largest.constant());
  CHECK(evaluate(n * n - n * n + n, {{"n", std::int64_t{1} << 32}}) == std::int64_t{1} << 32);
  try {
    (void)(largest * 3);
  } catch (const ShapeError& error) {
    CHECK(error.problem() == "size overflows 62 bits: 4611686018427387903 * 3");
    CHECK(error.fix() == "use smaller sizes: no array has this many elements");
  }
}

TEST_CASE("division by zero is a ShapeError that shows the division") {
  const Dim n = Dim::size("n");
  CHECK_THROWS_WITH_AS(
      floor_divide(n + 1, 0),
      "a size is divided by zero: (n+1) // 0\n  fix: divide by a size of at least 1", ShapeError);
  CHECK_THROWS_AS(modulo(5, 0), ShapeError);
  CHECK_THROWS_AS(ceil_divide(5, 0), ShapeError);
}

TEST_CASE("the same name is the same size, from every thread") {
  std::vector<Dim> dims(8);
  std::vector<std::thread> threads;
  for (Dim& dim : dims)
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i)
        dim = floor_divide(Dim::size("n" + std::to_string(i)) * 4 + i, 3) +
              minimum(Dim::size("m"), i);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Dim dim : dims) CHECK(dim == dims[0]);
  CHECK(Dim::size("n") == Dim::size("n"));
  CHECK(Dim::size("n") != Dim::size("m"));
  CHECK(std::unordered_set<Dim>{Dim::size("n"), Dim::size("n"), 4, 4}.size() == 2);
}

TEST_CASE("names of sizes are identifiers, with primes") {
  CHECK(Dim::size("n").name() == "n");
  CHECK(Dim::size("batch_2'").is_size());
  CHECK(Dim::size("_").is_size());
  for (const char* name : {"", "2n", "n-1", "n m", "'n", "n\n", "größe"})
    CHECK_THROWS_AS(Dim::size(name), ValueError);
  CHECK_THROWS_AS(Dim(4).name(), InternalError);
  CHECK_THROWS_AS((Dim::size("n") + 1).name(), InternalError);
  CHECK_THROWS_AS(Dim::size("n").constant(), InternalError);
}

TEST_CASE("expressions are written in one order, shortly") {
  for (const char* text : {"n",
                           "2*n+1",
                           "m*n",
                           "n-1",
                           "n//2",
                           "n%8",
                           "min(m, n)",
                           "min(n, 512)",
                           "max(m, n)",
                           "512-n",
                           "n-m",
                           "max(n-3, 0)",
                           "(n-1)//2",
                           "(m-n)//2",
                           "(m-n)%8",
                           "n//2+1",
                           "2*(n//2)",
                           "-(n//2)",
                           "m*(n//2)",
                           "8*(n//8)",
                           "8*((n+7)//8)",
                           "n-n//2",
                           "min(n-m, 5)",
                           "min(n%8, 4)",
                           "max(min(n, 512), 3)",
                           "d*max(n-3, 0)",
                           "m+n%8",
                           "n//m",
                           "n%m",
                           "n//(m+1)",
                           "n//(2*m)",
                           "m*n//2",
                           "(n%6)//4",
                           "max(d, m, n)",
                           "n*n-n",
                           "-n",
                           "-2*n-1",
                           "min(m, n)//2"})
    CHECK(canonical(text) == text);
  CHECK(canonical("1+n*2") == "2*n+1");
  CHECK(canonical("n*m+m*m") == "m*m+m*n");
  CHECK(canonical("min(512,n)") == "min(n, 512)");
  std::ostringstream stream;
  stream << Dim::parse("n + 1");
  CHECK(stream.str() == "n+1");
}

TEST_CASE("algebraically equal expressions are the same size") {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"(n+1)*(n-1)", "n*n-1"},
      {"(n+m)*(n+m)", "n*n+2*n*m+m*m"},
      {"8*(n//8)+n%8", "n"},
      {"n-n%8", "8*(n//8)"},
      {"min(n,m)+max(n,m)", "n+m"},
      {"(6*n+4)//2", "3*n+2"},
      {"(4*n+3)//4", "n"},
      {"(2*n+1)//4", "n//2"},
      {"(n*d+m*d)//d", "n+m"},
      {"(n*d+d)//(m*d)", "(n+1)//m"},
      {"(n-3)//2+1", "(n-1)//2"},
      {"(n+5)//2-3", "(n-1)//2"},
      {"3*n//2", "n+n//2"},
      {"(m-n)//2", "(m+n)//2-n"},
      {"n//2//3", "n//6"},
      {"((n+1)//2+1)//2", "(n+3)//4"},
      {"n//-2", "(-n)//2"},
      {"n%-8", "-((-n)%8)"},
      {"(n%8)%4", "n%4"},
      {"(n+16)%8", "n%8"},
      {"(n+8*m)%8", "n%8"},
      {"(2*n+1)%4", "2*(n%2)+1"},
      {"(n%8)//8", "0"},
      {"n%1", "0"},
      {"n//1", "n"},
      {"n//n", "1"},
      {"(-1)//n", "-1"},
      {"n//(n+1)", "0"},
      {"(n*(m+1))//(m+1)", "n"},
      {"min(n,n)", "n"},
      {"min(n,n+5)", "n"},
      {"max(n,n+5)", "n+5"},
      {"max(n,0)", "n"},
      {"min(n,-1)", "-1"},
      {"min(2*n,2*m)", "2*min(n,m)"},
      {"min(n*d,m*d)", "d*min(n,m)"},
      {"min(n+d,m+d)", "min(n,m)+d"},
      {"min(n-1,m-1)", "min(n,m)-1"},
      {"max(-n,-m)", "-min(n,m)"},
      {"max(n-3,0)", "n-min(n,3)"},
      {"max(n-m,0)", "n-min(n,m)"},
      {"max(min(n,10)-min(n,3),0)", "min(n,10)-min(n,3)"},
      {"min(min(n,m),min(d,n))", "min(n,min(m,d))"},
      {"max(max(n,m),d)", "max(n,max(m,d))"},
      {"min(n%8,7)", "n%8"},
      {"min(n//2,n)", "n//2"},
      {"max(min(n,m),n)", "n"},
  };
  for (const auto& pair : pairs) {
    CAPTURE(pair.first);
    CAPTURE(pair.second);
    CHECK(Dim::parse(pair.first) == Dim::parse(pair.second));
  }
  CHECK(Dim::parse("n//2") != Dim::parse("n//3"));
  CHECK(Dim::parse("min(n,m)") != Dim::parse("max(n,m)"));
}

TEST_CASE("bounds see through the expression") {
  const auto shown = [](auto bound) { return bound ? std::to_string(*bound) : "none"; };
  const auto check = [&](const std::string& text, std::optional<int> lower,
                         std::optional<int> upper) {
    CAPTURE(text);
    CHECK(shown(Dim::parse(text).lower_bound()) == shown(lower));
    CHECK(shown(Dim::parse(text).upper_bound()) == shown(upper));
  };
  check("n", 0, {});
  check("n-1", -1, {});
  check("5-n", {}, 5);
  check("n%8", 0, 7);
  check("8*(n//8)-4*(n//4)", -7, 3);
  check("n-n//2", 0, {});
  check("n-3*(n//3)", 0, 2);
  check("n-min(n,m)", 0, {});
  check("min(n,512)", 0, 512);
  check("max(n,512)", 512, {});
  check("max(min(n,512),3)", 3, 512);
  check("min(n,10)-min(n,3)", 0, 7);
  check("n*m-m*(n//2)", 0, {});
  check("n*n", 0, {});
  check("(n-m)*(n-m)", {}, {});
  check("(n-1)//2", -1, {});
  check("(n+7)//8*8-n", 0, 7);
  check("m%(n+1)-n", {}, 0);
}

TEST_CASE("order is decided where it holds for all sizes") {
  const auto d = [](const char* text) { return Dim::parse(text); };
  CHECK(less_equal(d("n"), d("n+1")) == true);
  CHECK(less_equal(d("n+1"), d("n")) == false);
  CHECK(less_equal(d("n"), d("m")) == std::nullopt);
  CHECK(less_equal(d("n//2"), d("n")) == true);
  CHECK(less_equal(d("min(n,512)"), 512) == true);
  CHECK(less_equal(d("min(n,m)"), d("max(n,m)")) == true);
  CHECK(less_equal(d("n%8"), 7) == true);
  CHECK(less_equal(8, d("n%8")) == false);
  CHECK(less_equal(d("2*n"), d("n")) == std::nullopt);
  CHECK(less_equal(d("n"), d("2*n")) == true);
  CHECK(equal(d("n"), d("n+1")) == false);
  CHECK(equal(d("n"), d("m")) == std::nullopt);
  CHECK(equal(d("n%2"), 2) == false);
  CHECK(equal(d("n"), d("n")) == true);
}

TEST_CASE("sizes are listed by name, once") {
  const std::vector<Dim> sizes = Dim::parse("min(n//2, m)*n + zeta%d").sizes();
  REQUIRE(sizes.size() == 4);
  CHECK(sizes[0].name() == "d");
  CHECK(sizes[1].name() == "m");
  CHECK(sizes[2].name() == "n");
  CHECK(sizes[3].name() == "zeta");
  CHECK(Dim(4).sizes().empty());
}

TEST_CASE("substitution replaces all names at once") {
  const Dim n = Dim::size("n"), m = Dim::size("m");
  const std::pair<Dim, Dim> swap[] = {{n, m + 1}, {m, n}};
  CHECK(Dim::parse("n*m + min(n//2, m)").substitute(swap) ==
        Dim::parse("(m+1)*n + min((m+1)//2, n)"));
  const std::pair<Dim, Dim> number[] = {{n, 10}};
  CHECK(Dim::parse("n%8 + m").substitute(number) == m + 2);
  CHECK(Dim::parse("max(n-3, 0)").substitute(number) == 7);
  const std::pair<Dim, Dim> zero[] = {{n, 0}};
  CHECK_THROWS_AS(Dim::parse("m//n").substitute(zero), ShapeError);
}

TEST_CASE("evaluation names what is missing") {
  const Dim d = Dim::parse("n*m");
  CHECK(evaluate(d, {{"n", 3}, {"m", 4}}) == 12);
  CHECK_THROWS_WITH_AS(evaluate(d, {{"n", 3}}),
                       "the size m has no value\n  fix: give a value for m", ValueError);
  CHECK_THROWS_AS(evaluate(d, {{"n", -1}, {"m", 2}}), ValueError);
  CHECK_THROWS_WITH_AS(
      evaluate(Dim::parse("n//m"), {{"n", 3}, {"m", 0}}),
      "the size n//m divides by zero\n  fix: call with a size for which m is not 0", ValueError);
}

TEST_CASE("operations and operands follow the text") {
  using Operation = Dim::Operation;
  const auto check = [](const std::string& text, Operation operation, const std::string& left,
                        const std::string& right) {
    CAPTURE(text);
    const Dim dim = Dim::parse(text);
    CHECK(dim.operation() == operation);
    CHECK(dim.operands().first.to_string() == left);
    CHECK(dim.operands().second.to_string() == right);
  };
  check("n-1", Operation::add, "n", "-1");
  check("m+n-1", Operation::add, "m+n", "-1");
  check("n%8", Operation::modulo, "n", "8");
  check("n//8", Operation::floor_divide, "n", "8");
  check("2*n", Operation::multiply, "2", "n");
  check("2*m*n", Operation::multiply, "2*m", "n");
  check("min(n, 5)", Operation::minimum, "n", "5");
  check("max(n-3, 0)", Operation::maximum, "n-3", "0");
  check("max(d, m, n)", Operation::maximum, "max(d, m)", "n");
  check("min(d, m, n)", Operation::minimum, "min(d, m)", "n");
  check("3*(n%8)", Operation::multiply, "3", "n%8");
  CHECK(Dim(3).operation() == Operation::constant);
  CHECK(Dim::size("n").operation() == Operation::size);
  CHECK_THROWS_AS(Dim(3).operands(), InternalError);
}

TEST_CASE("text that is no size is refused with the place") {
  const auto problem = [](const std::string& text) {
    try {
      Dim::parse(text);
      return std::string("accepted");
    } catch (const ValueError& error) {
      return error.problem();
    }
  };
  CHECK(problem("n+") == "\"n+\" is no size: a number, a name or \"(\" is expected at position 2");
  CHECK(problem("") == "\"\" is no size: a number, a name or \"(\" is expected at position 0");
  CHECK(problem("(n") == "\"(n\" is no size: \")\" is expected at position 2");
  CHECK(problem("min(n") == "\"min(n\" is no size: \",\" or \")\" is expected at position 5");
  CHECK(problem("n/2") == "\"n/2\" is no size: nothing is expected at position 1");
  CHECK(problem("2n") == "\"2n\" is no size: nothing is expected at position 1");
  CHECK(problem("n//0") == "\"n//0\" is no size: it divides by zero at position 1");
  CHECK(problem("4611686018427387904").find("62 bits") != std::string::npos);
  CHECK(problem("99999999999999999999").find("62 bits") != std::string::npos);
  CHECK(problem("n*4611686018427387903*2").find("62 bits") != std::string::npos);
  for (const char* text : {"n m", "n)", "()", "min()", "min(n,)", "n**2", "+n", "n==m", "n\t", "é"})
    CHECK(problem(text) != "accepted");
  CHECK(canonical("  n  +  1 ") == "n+1");
  CHECK(canonical("min") == "min");  // a name, where no parenthesis follows
  CHECK(canonical("--n") == "n");
  CHECK(canonical("-n//2") == canonical("(-n)//2"));
  CHECK(canonical("n-m-d") == "n-d-m");
  CHECK(canonical("n//2%3") == canonical("(n//2)%3"));
}

TEST_CASE("enormous text is refused quickly") {
  const auto repeat = [](const std::string& text, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
  };
  const std::vector<std::string> texts = {
      repeat("(", 9000),
      repeat("(", 5000) + "n" + repeat(")", 4999),
      repeat("-", 9999) + "(",
      repeat("n+", 6000) + "n",
      repeat("(a+b)*", 1000) + "c",
      repeat("(a+b+c+d+e+f)*", 600) + "c",
      repeat("min(n,", 1500) + "m",
      "min(" + repeat("n,", 4000) + "n)",
  };
  for (const std::string& text : texts) CHECK_THROWS_AS(Dim::parse(text), ValueError);
  std::string long_sum = "n0";
  for (int i = 1; i < 1400; ++i) long_sum += "+n" + std::to_string(i);
  CHECK(Dim::parse(Dim::parse(long_sum).to_string()) == Dim::parse(long_sum));
  std::string nested = "n";
  for (int i = 0; i < 150; ++i) nested = "(" + nested + "+m)%" + std::to_string(101 + i);
  const Dim deep = Dim::parse(nested);
  CHECK(Dim::parse(deep.to_string()) == deep);
}

TEST_CASE("an expression whose text would be enormous is a ShapeError") {
  Dim grown = Dim::size("n");
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100; ++i)
          grown = floor_divide(grown * Dim::size("m") + 1, grown + 3) * Dim::size("d");
      }(),
      ShapeError);
  CHECK(grown.to_string().size() <= 10000);
}

TEST_CASE("minima are what declared orders make of them") {
  auto equal_where = [](const char* left, const char* right, const char* a, const char* b) {
    const std::pair<Dim, Dim> order{Dim::parse(left), Dim::parse(right)};
    const SizeFacts facts(std::span(&order, 1));
    return equal(Dim::parse(a), Dim::parse(b));
  };
  CHECK(equal_where("1", "n", "max(n-1, 0)", "n-1") == true);
  CHECK(equal_where("m", "n", "min(n, m)*2 + 1", "2*m+1") == true);
  CHECK(equal_where("2", "n", "max(n-1, 0) + max(n-2, 0)", "2*n-3") == true);
  CHECK(equal_where("0", "n", "max(n-1, 0)", "n-1") != true);
  CHECK(equal_where("n", "m", "min(n, m)", "m") != true);
  CHECK(equal(Dim::parse("max(n-1, 0)"), Dim::parse("n-1")) != true);
}
