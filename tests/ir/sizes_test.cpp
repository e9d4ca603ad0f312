// Named sizes of programs: specs, values found from shapes, tracing, instantiation, ragged values.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>

#include <string>

#include "../problem.h"

using namespace plait;

namespace {

std::string resolved(std::string_view text, std::optional<Aval> actual = {}) {
  return Spec(text).resolve(actual).to_string();
}
Traced traced(const Function& f, const std::vector<Spec>& specs) {
  return trace_with_specs(f, specs, {});
}

}  // namespace

TEST_CASE("a spec says sizes, and a dtype when it is not float32 or the call's") {
  CHECK(resolved("n d") == "f32[n,d]");
  CHECK(resolved("n, d") == "f32[n,d]");
  CHECK(resolved("") == "f32[]");
  CHECK(resolved("i32[]") == "i32[]");
  CHECK(resolved("i32[n d]") == "i32[n,d]");
  CHECK(resolved("float64[n]") == "f64[n]");
  CHECK(resolved("4*n+4 d") == "f32[4*n+4,d]");
  CHECK(resolved("min(n, 512) 3") == "f32[min(n, 512),3]");
  CHECK(resolved("n+m 2*n") == "f32[m+n,2*n]");
  CHECK(resolved("n _", Aval{{5, 7}, DType::float64}) == "f64[n,7]");
  CHECK(Spec(std::nullopt).resolve(Aval{{5}, DType::int8}).to_string() == "i8[5]");
  for (const char* text : {"n d", "i32[n 2*d]", "_ n", ""})
    CHECK(Spec(Spec(text).to_string()).to_string() == Spec(text).to_string());
}

TEST_CASE("a wrong spec is told with its position") {
  CHECK(problem([] { Spec("n q[d"); }) == "the spec \"n q[d\": \"n q\" is no dtype, at position 0");
  CHECK(problem([] { Spec("i32[n d"); }) ==
        "the spec \"i32[n d\": \"]\" is expected at position 7");
  CHECK(problem([] { Spec("i32"); }) ==
        "the spec \"i32\": a dtype alone; a scalar of it is \"i32[]\"");
  CHECK(problem([] { Spec("n -1"); }) == "the spec \"n -1\": the size at position 2 is negative");
  CHECK(problem([] { Spec("n,"); }) == "the spec \"n,\": a size is expected at position 2");
  CHECK(problem([] { Spec("n 2*"); }).find("at position 2, ") != std::string::npos);
  CHECK(problem([] { resolved("_ n"); }) ==
        "the spec \"_ n\" takes axis 0 from the call, and there is no value here");
  CHECK(problem([] { resolved("n", Aval{{2, 3}, DType::float32}); }) ==
        "the spec \"n\" has 1 dimensions, and the value has shape (2,3)");
}

TEST_CASE("sizes are solved from shapes") {
  auto solve = [](const std::vector<std::string>& formal, const std::vector<Shape>& actual) {
    std::vector<Dim> sizes;
    std::vector<Aval> avals, values;
    for (const std::string& text : formal) {
      avals.push_back(Spec(text).resolve());
      Spec(text).collect_sizes(sizes);
    }
    for (const Shape& shape : actual) values.push_back({shape});
    std::string text;
    for (const auto& [size, value] : solve_sizes(sizes, avals, values, "f"))
      text += size.to_string() + "=" + value.to_string() + " ";
    return text;
  };
  CHECK(solve({"n d", "d"}, {{3, 4}, {4}}) == "n=3 d=4 ");
  CHECK(solve({"2*n+1"}, {{7}}) == "n=3 ");
  CHECK(solve({"n+m", "m"}, {{7}, {2}}) == "m=2 n=5 ");
  CHECK(solve({"n*m", "m"}, {{6}, {2}}) == "m=2 n=3 ");
  CHECK(solve({"n+m"}, {{7}}) == "");
  CHECK(solve({"n"}, {{Dim::size("b") + 1}}) == "n=b+1 ");
  CHECK(problem([&] { solve({"n", "n"}, {{3}, {4}}); }) ==
        "f: argument 1, axis 0 has size 4, where n = 3 is needed: n is 3 in argument 0, axis 0");
  CHECK(problem([&] { solve({"n", "2*n 5"}, {{3}, {7, 5}}); }) ==
        "f: argument 1, axis 0 has size 7, where 2*n = 6 is needed: n is 3 in argument 0, axis 0");
  CHECK(problem([&] { solve({"2*n"}, {{7}}); }) ==
        "f: argument 0, axis 0 has size 7, where 2*n, a multiple of 2, is needed");
  CHECK(problem([&] { solve({"n+4"}, {{3}}); }) ==
        "f: argument 0, axis 0 has size 3, and no n makes n+4 that");
  CHECK(problem([&] { solve({"n"}, {{3, 2}}); }) ==
        "f: argument 0 has shape (3,2) where (n) is needed");
}

TEST_CASE("the largest value of a size holds for all sizes within their bounds") {
  const std::vector<std::pair<Dim, Dim>> bounds{{Dim::size("n"), 7}, {Dim::size("m"), 5}};
  for (const char* text : {"n", "n+m", "2*n+1", "n*m", "n-m", "n-n//2", "n//2", "(n+3)//4", "n%3",
                           "min(n,m)", "max(n,m)", "max(n-m,1)*m", "n*m-n", "(n-3)//2+1", "n*n-m*m",
                           "min(n,4)-min(m,2)", "max(n,1)//max(m,1)", "(n*m)%4+n"}) {
    CAPTURE(text);
    const Dim dim = Dim::parse(text), bound = largest(dim, bounds);
    std::int64_t most = 0;
    for (std::int64_t n = 0; n <= 7; ++n)
      for (std::int64_t m = 0; m <= 5; ++m)
        most = std::max(most, dim.evaluate([&](std::string_view name) {
          return std::optional(name == "n" ? n : m);
        }));
    CHECK(bound.constant() >= most);
    CHECK(bound.constant() <= 5 * most);
  }
  CHECK(largest(Dim::parse("n-n//2"), bounds) == Dim(4));
  CHECK(largest(Dim::parse("n-m"), bounds) == Dim(7));
  CHECK(largest(Dim::parse("n+b"), bounds) ==
        Dim::parse("b+7"));  // b belongs to the enclosing program
}

TEST_CASE("a function is traced with named sizes, and runs at any") {
  const Function f = [](std::span<const Array> in) -> Arrays {
    return {lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}})};
  };
  const Jaxpr jaxpr = traced(f, {"n d", "d k"}).jaxpr;
  CHECK(print(jaxpr).substr(0, 44) == "{ lambda n d k ; a:f32[n,d] b:f32[d,k] . let");
  const Array x = lax::full({2, 3}, 2.0, DType::float32),
              w = lax::full({3, 4}, 0.5, DType::float32);
  const Arrays out = eval_jaxpr(jaxpr, Arrays{x, w});
  CHECK(out[0].aval().to_string() == "f32[2,4]");
  CHECK(problem([&] { eval_jaxpr(jaxpr, Arrays{x, x}); }) ==
        "the program: argument 1, axis 0 has size 2, where d = 3 is needed: d is 3 in argument 0, "
        "axis 1");
  // The same program inside one of other sizes.
  const Jaxpr outer =
      traced([&](std::span<const Array> in) { return eval_jaxpr(jaxpr, Arrays{in[0], in[0]}); },
             {"2*n 2*n"})
          .jaxpr;
  CHECK(outer->output_avals()[0].to_string() == "f32[2*n,2*n]");
}

TEST_CASE("a size that no argument tells is an error") {
  const Jaxpr jaxpr =
      make_jaxpr(
          [](std::span<const Array> in) -> Arrays {
            return {lax::exp(lax::reshape(in[0], {Dim::size("n"), Dim::size("m")}))};
          },
          std::vector<Aval>{{{Dim::size("n") * Dim::size("m")}, DType::float32}})
          .jaxpr;
  CHECK(problem([&] { eval_jaxpr(jaxpr, Arrays{lax::full({6}, 1, DType::float32)}); }) ==
        "no argument tells the size m of the program");
}

TEST_CASE("constraints are checked at each call") {
  const Function f = [](std::span<const Array> in) -> Arrays {
    return {lax::slice_in_dim(in[0], Dim(0), in[1].shape(0))};
  };
  const Jaxpr jaxpr = traced(f, {"n", "m"}).jaxpr;
  CHECK(jaxpr->constraints.size() == 1);
  auto ones = [](std::int64_t n) { return lax::full({n}, 1, DType::float32); };
  CHECK(eval_jaxpr(jaxpr, Arrays{ones(4), ones(3)})[0].shape() == Shape{3});
  CHECK(problem([&] { eval_jaxpr(jaxpr, Arrays{ones(2), ones(3)}); }) ==
        "the program: m <= n is needed, where n is 2 in argument 0, axis 0, and m is 3 in "
        "argument 1, axis 0");
}

TEST_CASE("a name that an enclosing trace binds is another size inside") {
  std::string inner, outer;
  const Function f = [&](std::span<const Array> in) -> Arrays {
    const Traced nested =
        traced([&](std::span<const Array> own) -> Arrays { return {lax::exp(own[0])}; }, {"n d"});
    inner = nested.jaxpr.to_string();
    return {in[0]};
  };
  traced(f, {"n"});
  CHECK(inner.substr(0, 28) == "{ lambda n' d ; a:f32[n',d] ");
  CHECK(sizes_in_scope().empty());
}

TEST_CASE("a masked function keeps its names, whatever sizes surround it") {
  const Function body = [](std::span<const Array> in) -> Arrays { return {lax::exp(in[0])}; };
  const Function f = [&](std::span<const Array> in) -> Arrays {
    return flat::mask(body, in.first(1), {{"n d"}, {}, {{"n", in[1]}}});
  };
  const Jaxpr named = traced(f, {"n d", "i32[]"}).jaxpr;
  const std::vector<Aval> avals{{{4, 3}, DType::float32}, {{}, DType::int32}};
  const std::vector<std::pair<Dim, Dim>> sizes{{Dim::size("n"), 4}, {Dim::size("d"), 3}};
  CHECK(print(instantiate(named, sizes)) == print(make_jaxpr(f, avals).jaxpr));
  check(named);
}

TEST_CASE("ragged arrays are padded with zeros, and come back") {
  auto ramp = [](std::int64_t n) { return lax::iota(DType::float32, {n, 2}, 0); };
  const Ragged rows = ragged(Arrays{ramp(2), ramp(0), ramp(3)});
  CHECK(rows.data.aval().to_string() == "f32[3,3,2]");
  CHECK(rows.lengths.aval().to_string() == "i32[3]");
  const Arrays back = rows.arrays();
  REQUIRE(back.size() == 3);
  CHECK(back[0].shape() == Shape{2, 2});
  CHECK(back[1].shape() == Shape{0, 2});
  CHECK(lax::reduce_sum(back[2], std::vector<int>{0, 1}).item<float>() == 6);
  CHECK(lax::reduce_sum(rows.data, std::vector<int>{0, 1, 2}).item<float>() == 8);
  CHECK(ragged(Arrays{ramp(2)}, Dim(5)).data.shape() == Shape{1, 5, 2});
  CHECK(problem([&] { ragged(Arrays{ramp(4)}, Dim(3)); }) ==
        "ragged: array 0 has length 4, and the padded length is 3");
  CHECK(problem([&] { ragged(Arrays{ramp(4), lax::full({2}, 0, DType::float32)}); }) ==
        "ragged: array 0 has shape (4,2) and array 1 shape (2)");
  CHECK(problem([] { ragged(Arrays{}); }) == "ragged: there are no arrays");
}

TEST_CASE("a program with constraints is valid, reads back, and takes some of its sizes") {
  const Function f = [](std::span<const Array> in) -> Arrays {
    return {lax::slice_in_dim(in[0], Dim(2), in[1].shape(0))};
  };
  const Jaxpr jaxpr = traced(f, {"n", "m"}).jaxpr;
  CHECK(print(jaxpr).substr(0, 53) == "{ lambda n m ; a:f32[n] b:f32[m] where 2<=m, m<=n . l");
  check(jaxpr);
  CHECK(parse(print(jaxpr)) == jaxpr);

  auto put = [&](const char* name, std::int64_t value) {
    return instantiate(jaxpr, std::vector<std::pair<Dim, Dim>>{{Dim::size(name), value}});
  };
  CHECK(print(put("n", 5)) == print(traced(f, {"5", "m"}).jaxpr));
  check(put("n", 5));
  CHECK(print(put("m", 3)) == print(traced(f, {"n", "3"}).jaxpr));
  CHECK(problem([&] { put("m", 1); }) == "the program needs 2 <= m, and here that is 2 <= 1");

  // Without its constraints it is no program.
  std::string text = print(jaxpr);
  text.erase(text.find(" where"), std::string(" where 2<=m, m<=n").size());
  CHECK_THROWS_AS(parse(text), ValueError);
}

TEST_CASE("the constraints of a called function are its caller's") {
  const Function f = [](std::span<const Array> in) -> Arrays {
    return {lax::slice_in_dim(in[0], Dim(2), in[0].shape(0))};
  };
  const Jaxpr jaxpr =
      traced([&](std::span<const Array> in) { return flat::Jit(f, "f")(in); }, {"n"}).jaxpr;
  CHECK(jaxpr->equations.size() == 1);
  CHECK(jaxpr->constraints == std::vector<Constraint>{{2, Dim::size("n")}});
  check(jaxpr);
  CHECK(parse(print(jaxpr)) == jaxpr);
}
