// The four parts of an error: what happened, where in user code, under which transforms, the fix;
// and the sources that fill the second.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/error.h>
#include <plait/base/source.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace plait;

namespace {

// A file of user code that exists while the test runs.
struct UserFile {
  explicit UserFile(const std::string& text)
      : path("/tmp/plait_error_test_" + std::to_string(getpid()) + ".py") {
    std::ofstream(path) << text;
  }
  ~UserFile() { std::remove(path.c_str()); }
  std::string name() const { return path.substr(path.find_last_of('/') + 1); }
  std::string path;
};

// Tests run in one thread, whose remembered line must not reach the next test.
struct ForgetLine {
  ~ForgetLine() { Source::forget_line(); }
};

Source provided() { return Source("cell.py", 3, "provided"); }

}  // namespace

TEST_CASE("an error prints what, where, transforms and fix") {
  const UserFile file("import plait\n\n  y = x @ w   \n");
  const SourceScope source(Source(file.path, 3, "loss"));
  const TransformScope grad("grad", "");
  const TransformScope vmap("vmap", "loss");
  const ShapeError error("vmap: argument 0 has 8, argument 1 has 4", "map only argument 0");
  CHECK(std::string(error.what()) ==
        "vmap: argument 0 has 8, argument 1 has 4\n"
        "  " +
            file.name() +
            ":3 in loss:  y = x @ w\n"
            "  while applying grad(vmap(loss))\n"
            "  fix: map only argument 0");
  CHECK(error.problem() == "vmap: argument 0 has 8, argument 1 has 4");
  CHECK(error.fix() == "map only argument 0");
  CHECK(error.source() == Source(file.path, 3, "loss"));
}

TEST_CASE("parts of an error that are not known are left out") {
  CHECK(std::string(ValueError("bad value 3", "").what()) == "bad value 3");
  CHECK(std::string(ValueError("bad value 3", "use 4").what()) == "bad value 3\n  fix: use 4");
}

TEST_CASE("an error can be moved to the line where a value was born") {
  TracerError error("a tracer left its trace", "return it");
  error.at(Source("model.py", 7, "f"));
  CHECK(std::string(error.what()) ==
        "a tracer left its trace\n  model.py:7 in f\n  fix: return it");
}

TEST_CASE("the names of the innermost function and of every transform are printed") {
  CHECK(TransformScope::current().empty());
  {
    const TransformScope grad("grad", "f");
    CHECK(TransformScope::current() == "grad(f)");
    {
      const TransformScope vmap("vmap", "loss");
      CHECK(TransformScope::current() == "grad(vmap(loss))");
      const TransformScope jit("jit", "");
      CHECK(TransformScope::current() == "grad(vmap(jit(loss)))");
    }
    CHECK(TransformScope::current() == "grad(f)");
  }
  const TransformScope mask("mask", "");
  CHECK(TransformScope::current() == "mask(f)");
  std::thread([] { CHECK(TransformScope::current().empty()); }).join();
}

TEST_CASE("an internal error says that it is ours") {
  const std::string text = InternalError("var b is used before it is bound").what();
  CHECK(text.starts_with("internal error: var b is used before it is bound"));
  CHECK(text.find("bug in plait") != std::string::npos);
  CHECK(text.find("report") != std::string::npos);
}

TEST_CASE("errors are caught by the type that says who must act") {
  CHECK_THROWS_AS(throw ShapeError("a", "b"), UserError);
  CHECK_THROWS_AS(throw MissingRuleError("a", "b"), UserError);
  CHECK_THROWS_AS(throw BackendError("a", "b"), Error);
  bool is_user_error = true;
  try {
    throw InternalError("a");
  } catch (const UserError&) {
  } catch (const Error&) {
    is_user_error = false;
  }
  CHECK(!is_user_error);
}

TEST_CASE("equal lines are the same source, from every thread") {
  std::vector<Source> sources(8);
  std::vector<std::thread> threads;
  for (Source& source : sources)
    threads.emplace_back([&] {
      for (int line = 1; line < 500; ++line) source = Source("threads.py", line, "f");
    });
  for (std::thread& thread : threads) thread.join();
  for (const Source& source : sources) CHECK(source == sources[0]);
  CHECK(Source("a.py", 1) != Source("a.py", 2));
  CHECK(Source("a.py", 1, "f") != Source("a.py", 1, "g"));
  CHECK(!Source());
  CHECK(Source().to_string().empty());
}

TEST_CASE("a source prints the last component of its path and the text of the line") {
  const UserFile file("a = 1\n\tb = 2\n\n");
  CHECK(Source(file.path, 2).to_string() == file.name() + ":2:  b = 2");
  CHECK(Source(file.path, 2, "f").to_string() == file.name() + ":2 in f:  b = 2");
  CHECK(Source(file.path, 3, "f").to_string() == file.name() + ":3 in f");  // an empty line
  CHECK(Source(file.path, 99, "f").to_string() == file.name() + ":99 in f");
  CHECK(Source("/no/such/train.py", 42, "loss").to_string() == "train.py:42 in loss");
  CHECK(Source("<stdin>", 1).to_string() == "<stdin>:1");
  CHECK(Source("/tmp", 1).to_string() == "tmp:1");
}

TEST_CASE("a long line is cut between characters") {
  const std::string long_text = std::string(159, 'x') + "\xc3\xa9" + std::string(100, 'y');
  const UserFile file(long_text + "\n");
  CHECK(Source(file.path, 1).to_string() == file.name() + ":1:  " + std::string(159, 'x') + "...");
}

TEST_CASE("the current source is the scope's, else the remembered line, else the provider's") {
  const ForgetLine forget;
  CHECK(!Source::current());
  Source::remember("main.cpp", 10);
  CHECK(Source::current() == Source("main.cpp", 10));
  Source::remember(nullptr, 0);
  CHECK(Source::current() == Source("main.cpp", 10));
  Source::remember("main.cpp", 11);
  CHECK(Source::current() == Source("main.cpp", 11));
  {
    const SourceScope outer(Source("rule.py", 1));
    Source::remember("main.cpp", 12);
    CHECK(Source::current() == Source("rule.py", 1));
    {
      const SourceScope inner(Source("rule.py", 2));
      CHECK(Source::current() == Source("rule.py", 2));
      const SourceScope unknown{Source()};
      CHECK(Source::current() == Source("rule.py", 2));
    }
    CHECK(Source::current() == Source("rule.py", 1));
  }
  CHECK(Source::current() == Source("main.cpp", 12));
  std::thread([] { CHECK(!Source::current()); }).join();
  Source::set_provider(provided);
  CHECK(Source::current() == Source("main.cpp", 12));
  Source::forget_line();
  CHECK(Source::current() == provided());
  Source::set_provider(nullptr);
  CHECK(!Source::current());
}

TEST_CASE("equations remember named scopes and the transforms that rewrote them") {
  const Source line("train.py", 3, "loss");
  Source::set_provider([] { return Source("train.py", 3, "loss"); });
  Source::forget_line();
  {
    const NamedScope encoder("encoder");
    CHECK(Source::current()->scope == "encoder");
    {
      const NamedScope attention("attention");
      CHECK(Source::current()->scope == "encoder/attention");
      CHECK(Source::current()->line == 3);
      const SourceScope other(line);
      CHECK(Source::current() == line);  // an equation that is rewritten keeps its own
    }
    CHECK(Source::current() == line.in_scope("encoder"));
    std::thread([] { CHECK(Source::current()->scope.empty()); }).join();
  }
  CHECK(Source::current() == line);
  Source::set_provider(nullptr);
  CHECK(line.under("jvp").under("transpose")->transforms == "transpose(jvp)");
  CHECK(line.in_scope("b").in_scope("a")->scope == "a/b");
  CHECK(line.under("jvp").to_string() == line.to_string());
  {
    const SourceScope call(line.in_scope("encoder"));
    {
      const SourceScope equation(line.in_scope("gate"));  // of the function that is called
      CHECK(Source::current() == line.in_scope("encoder/gate"));
      const SourceScope same(line.in_scope("encoder/gate"));
      CHECK(Source::current() == line.in_scope("encoder/gate"));
    }
    CHECK(Source::current() == line.in_scope("encoder"));
  }
  CHECK(!Source().under("jvp"));
  Source many = line;
  for (int i = 0; i < 1000; ++i) many = many.under("vmap");
  CHECK(many->transforms.size() < 1000);
  CHECK_THROWS_AS(NamedScope(""), ValueError);
  CHECK(Source(Source::Line{"gone.py", "f", 7, "", "", "y = x @ w"}).to_string() ==
        "gone.py:7 in f:  y = x @ w");
}
