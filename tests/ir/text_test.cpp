// Texts of programs: the lines of users' code in them, and texts that are no programs, each refused
// with the place in it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/primitives/primitives.h>

#include <string>

#include "../problem.h"

using namespace plait;

namespace {

Source line(const Source::Line& line) { return Source(line); }

// One equation, negation, of this line.
Jaxpr negation(Source source) {
  Builder builder;
  const Var x = builder.add_binder({{2}, DType::float32});
  const auto bound = builder.add(*find_primitive("neg"), {x}, {}, source);
  return builder.close({bound[0]});
}

std::string in_program(const std::string& equations, const std::string& result = "b") {
  return "{ lambda ; a:f32[3] . let\n" + equations + "\n  in (" + result + ",) }";
}
std::string refusal(const std::string& text) {
  return problem([&] { parse(text); });
}

}  // namespace

TEST_CASE("lines of users' code are read back from the comments of a text") {
  const Source::Line all{"/home/me/my model.py", "<lambda>",       42,
                         "encoder/attention",    "transpose(jvp)", "y = f(x): z # x"};
  for (const Source::Line& each :
       {all, Source::Line{"a.cpp", "", 1}, Source::Line{"/b/c.py", "f.<locals>.g", 7},
        Source::Line{"d.py", "", 3, "block, in short"},
        Source::Line{"d.py", "g", 3, "", "vmap", "x\n\ty"}}) {
    const Jaxpr jaxpr = negation(line(each));
    const std::string text = print(jaxpr, ShowSources::yes);
    CAPTURE(text);
    CHECK(text.find("/b") == std::string::npos);  // no folder of the writer's machine
    CHECK(text.find("/home") == std::string::npos);
    const Jaxpr again = parse(text);
    CHECK(again == jaxpr);
    CHECK(print(again, ShowSources::yes) == text);
    const Source source = again->equations[0].source;
    REQUIRE(source);
    CHECK(source->file == each.file.substr(each.file.rfind('/') + 1));
    CHECK(source->line == each.line);
    CHECK(source->function == each.function);
    CHECK(source->scope == each.scope);
    CHECK(source->transforms == each.transforms);
  }
  CHECK(parse(print(negation(line(all)), ShowSources::yes))->equations[0].source->text ==
        "y = f(x): z # x");
}

TEST_CASE("equations of bodies have lines in the text, too") {
  const Jaxpr body = negation(line({"inner.py", "body", 5}));
  Builder builder;
  const Var x = builder.add_binder({{2}, DType::float32});
  const auto bound = builder.add(*find_primitive("call"), {x}, {{"body", body}, {"name", "it's"}},
                                 line({"outer.py", "main", 9}));
  const Jaxpr jaxpr = builder.close({bound[0]});
  const std::string text = print(jaxpr, ShowSources::yes);
  CHECK(text ==
        "{ lambda ; a:f32[2] . let\n"
        "    b:f32[2] = call[body={ lambda ; a:f32[2] . let\n"
        "          b:f32[2] = neg a  # inner.py:5 in body\n"
        "        in (b,) }, name='it\\'s'] a  # outer.py:9 in main\n"
        "  in (b,) }");
  const Jaxpr again = parse(text);
  CHECK(again == jaxpr);
  CHECK(print(again, ShowSources::yes) == text);
  const auto* parsed = std::get_if<Jaxpr>(again->equations[0].params.find("body"));
  CHECK((*parsed)->equations[0].source->file == "inner.py");
}

TEST_CASE("other comments are no lines") {
  for (const char* comment : {"", " ", "# x", "note", ":3", "a.py:", "a.py:0", "a.py:-1",
                              "a.py:99999999999", "a.py:3x", "in f"}) {
    const Jaxpr jaxpr = parse(in_program(std::string("    b:f32[3] = sin a  #") + comment));
    CHECK(!jaxpr->equations[0].source);
  }
  const std::string endless = "x.py:3:  " + std::string(100000, 'x');
  CHECK(!parse(in_program("    b:f32[3] = sin a  # " + endless))->equations[0].source);
}

TEST_CASE("a name may be a word of the form, and any text may be a parameter") {
  std::string text = "{ lambda ; nan:f32[] inf:f32[] true:bool[] false:bool[] . let\n";
  text += "    lambda:f32[] = add nan inf\n    x.y:bool[] = and true true:bool\n";
  text += "  in (lambda, x.y, false, nan:f32, -inf:f32, false:bool) }";
  const Jaxpr jaxpr = parse(text);
  CHECK(parse(print(jaxpr)) == jaxpr);
  CHECK(jaxpr->equations.size() == 2);
  for (const char* name : {"", "'", "\\", "a\nb", "\\'\\n", "]}"}) {
    Builder caller;
    const Var a = caller.add_binder({{2}, DType::float32});
    const auto b = caller.add(*find_primitive("call"), {a},
                              {{"body", negation({})}, {"name", std::string(name)}}, {});
    const Jaxpr call = caller.close({b[0]});
    CHECK(parse(print(call)) == call);
  }
}

TEST_CASE("texts that are no programs are refused with the place") {
  const std::string start = "parse: line 2, column ";
  CHECK(refusal(in_program("    b:f32[3] = add a c")) ==
        start + "22: expected a var that is bound, found `c`");
  CHECK(refusal(in_program("    b:f32[3] = sin a\n    b:f32[3] = cos a")) ==
        "parse: line 3, column 5: expected a name other than b, which is bound already, found "
        "`b:f32[3] = cos a`");
  CHECK(refusal(in_program("    b:f64[3] = sin a")).find("expected output b of type f32[3]") !=
        std::string::npos);
  CHECK(refusal(in_program("    b:f32[3] = call[body=b] a")).find(start) == 0);
  CHECK(refusal(in_program("    b:f32[n] = sin a")).find("expected output b") != std::string::npos);
  CHECK(refusal(in_program("    b:f32[4*4611686018427387904] = sin a")) ==
        start +
            "11: \"4*4611686018427387904\" is no size: an integer leaves 62 bits at position 2");
  CHECK(refusal(in_program("    b:f32[2305843009213693951*2305843009213693951] = sin a"))
            .find("leaves 62 bits") != std::string::npos);
  CHECK(refusal(in_program("    b:f32[3] = add a")).find(start + "16: ") == 0);
  CHECK(refusal(in_program("    b:f32[3] = reshape[shape=(4)] a")).find(start + "16: reshape") ==
        0);
  CHECK(refusal(in_program("    b:f32[3] = neg[x=1, x=2] a"))
            .find("a parameter other than x, which is given already") != std::string::npos);
  CHECK(refusal(in_program("    b:f32[3] = neg[x='] a")).find("expected a closing quote") !=
        std::string::npos);
  CHECK(
      refusal(in_program("    b:f32[3] = host_call[f=@f#1] a")).find("a host function is known") !=
      std::string::npos);
  CHECK(
      refusal("{ lambda n n ; a:f32[n] . let in (a,) }") ==
      "parse: line 1, column 12: expected a size other than n, which is bound already, found `n ; "
      "a:f32[n] . let i`");
}

TEST_CASE("texts that were made to take long are refused soon") {
  std::string sizes = "{ lambda", deep;
  for (int i = 0; i < 100000; ++i) sizes += " n" + std::to_string(i);
  CHECK(refusal(sizes).find("expected at most 1000 sizes") != std::string::npos);
  for (int i = 0; i < 100000; ++i) deep += "{ lambda ; . let b:f32[] = call[body=";
  CHECK(refusal(deep).find("expected at most 100 nested jaxprs") != std::string::npos);
  CHECK(refusal(in_program("    b:f32[" + std::string(100000, '(') + "] = sin a")) != "");
  CHECK(refusal(in_program("    b:f32[3] = neg[x=" + std::string(100000, '(') + "] a")) != "");
  CHECK(refusal(in_program("    b:f32[3] = sin " + std::string(100000, '1') + " a")) != "");
  std::string stacks, constraints;
  for (int i = 0; i < 1000; ++i) stacks += "stack[";
  CHECK(refusal("{ lambda ; a:" + stacks) != "");
  for (int i = 0; i < 3000; ++i) constraints += "n<=" + std::to_string(i) + ", ";
  CHECK(refusal("{ lambda n ; a:f32[n] where " + constraints) != "");
}
