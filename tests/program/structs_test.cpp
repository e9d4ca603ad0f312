// C++ structs for what files name: parts go by name, never by the order in which they stand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <unistd.h>

#include <filesystem>

#include "../problem.h"

using namespace plait;

namespace {

struct Line {
  Array slope, bias;
};
// A struct whose names nobody says has numbered fields: as one of a compiler that names no fields.
TreeDef numbered() { return TreeDef::fields("struct", {}, {TreeDef(), TreeDef()}); }

// slope * x + bias, over arguments of a structure in which the bias comes first, as sorted keys do.
Program program_over(const TreeDef& parameters, const TreeDef& result) {
  const Function f = [](std::span<const Array> in) {
    return Arrays{in[0] * 10.0, in[1] * in[2] + in[0]};
  };
  const Aval number{{}, DType::float64};
  TracedFunction traced{make_jaxpr(f, std::vector<Aval>(3, number)).jaxpr,
                        {},
                        {},
                        TreeDef::tuple({parameters, TreeDef()}),
                        result,
                        {},
                        {}};
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("plait_structs_" + std::to_string(getpid()) + ".plait"))
                               .string();
  save(path, {{"f", traced}});
  Program program = load(path);
  std::filesystem::remove(path);
  return program;
}

Array number(double value) { return numpy::full({}, value, DType::float64); }

}  // namespace

TEST_CASE("a struct stands for a dict and for a named tuple by the names of its fields") {
  const TreeDef dict = TreeDef::dict({"bias", "slope"}, {TreeDef(), TreeDef()});
  const TreeDef named = TreeDef::fields("Line", std::array<std::string_view, 2>{"bias", "slope"},
                                        {TreeDef(), TreeDef()});
  if (!detail::compiler_names_fields) return;
  for (const TreeDef& stored : {dict, named}) {
    const Program program = program_over(stored, stored);
    const auto f = program.entry<Line(Line, Array)>();
    const Line got = f({number(3), number(1)}, number(5));  // bias * 10, and 3 * 5 + 1
    CHECK(got.bias.item<double>() == 10);
    CHECK(got.slope.item<double>() == 16);
    const Line slopes = grad([&](const Line& line) -> Array { return f(line, number(5)).slope; })(
        {number(3), number(1)});
    CHECK(slopes.slope.item<double>() == 5);
    CHECK(slopes.bias.item<double>() == 1);
  }
}

TEST_CASE("a struct of other fields, or of fields without names, is refused for a dict") {
  struct Other {
    Array slope, offset;
  };
  const TreeDef dict = TreeDef::dict({"bias", "slope"}, {TreeDef(), TreeDef()});
  const Program program = program_over(dict, TreeDef::tuple({TreeDef(), TreeDef()}));
  if (detail::compiler_names_fields)
    CHECK(
        problem_and_fix([&] { program.entry<Line(Other, Array)>()({1.0, 2.0}, 3.0); }) ==
        "f takes ({'bias': *, 'slope': *}, *), and (Other(slope=*, offset=*), *) was given | give "
        "arguments of that structure");
  CHECK(problem_and_fix(
            [&] { program["f"].check_arguments(TreeDef::tuple({numbered(), TreeDef()})); }) ==
        "f takes ({'bias': *, 'slope': *}, *), and (struct(0=*, 1=*), *) was given | name the "
        "fields of the struct: static constexpr auto plait_fields = plait::fields(\"name\", "
        "&Struct::name, ...)");
  CHECK(problem_and_fix([&] {
          program.entry<Line(std::pair<Array, Array>, Array)>()({1.0, 2.0}, 3.0);
        }).starts_with("f takes ({'bias': *, 'slope': *}, *), and ((*, *), *) was given"));
  // A result is refused likewise.
  const Program named = program_over(TreeDef::tuple({TreeDef(), TreeDef()}), dict);
  struct Wrong {
    Array slope, offset;
  };
  if (detail::compiler_names_fields)
    CHECK(problem_and_fix([&] {
            named.entry<Wrong(std::pair<Array, Array>, Array)>()({number(1), number(2)}, number(3));
          })
              .starts_with(
                  "a value of structure {'bias': *, 'slope': *} does not fit the C++ type: it "
                  "has no part 'offset'"));
  CHECK(
      problem_and_fix([&] {
        named.entry<std::vector<Array>(std::pair<Array, Array>, Array)>()({number(1), number(2)},
                                                                          number(3));
      })
          .starts_with("a value of structure {'bias': *, 'slope': *} does not fit the C++ type: it "
                       "is no list"));
}

TEST_CASE("tuples and structs of numbered fields are taken by place") {
  for (const TreeDef& stored : {TreeDef::tuple({TreeDef(), TreeDef()}), numbered()}) {
    const Program program = program_over(stored, TreeDef::tuple({TreeDef(), TreeDef()}));
    struct Pair {
      Array bias, slope;
    };
    const auto f = program.entry<std::pair<Array, Array>(Pair, Array)>();
    CHECK(f({number(1), number(3)}, number(5)).second.item<double>() == 16);
  }
}

TEST_CASE("values that are no arrays are refused by save, by name") {
  struct Rated {
    Array w;
    double lr;
  };
  CHECK(problem_and_fix([] {
          traced([](const Rated& r) -> Array { return r.w * r.lr; }, Rated{number(1), 0.5});
        }) ==
        "save: 0.5 is no array, and a file holds arrays and their structure alone | let the "
        "function capture it, or make it an Array");
}
