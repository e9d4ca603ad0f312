"""plait compile: objects with a C interface compute what the programs do, alone and on several threads."""

# SPDX-License-Identifier: Apache-2.0
import ctypes
import math
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from command_line import BUILD, ROOT, run
from plait import check, lax, mask, nn, value_and_grad, vmap

rng = np.random.default_rng(0)
W = rng.normal(size=(5, 3))
SCALE = rng.normal(size=3)


def step(params, x):
    def loss(params):
        return jnp.sum(jnp.tanh(x @ params["w"]) ** 2 * SCALE)

    value, slope = value_and_grad(loss)(params)
    return {"w": params["w"] - 0.1 * slope["w"]}, value


def expected_step(w, x):
    y = np.tanh(x @ w)
    return w - 0.1 * x.T @ (2 * y * SCALE * (1 - y**2)), np.sum(y**2 * SCALE)


def kinds(x):
    n = jnp.sum(x, axis=1)
    sums = lax.scan(lambda c, r: (c + r, c * 2), jnp.zeros(5, "float64"), x)[0]
    return (n > 0).astype(bool), jnp.sort(x, axis=1), sums, jnp.argmax(x, axis=1)


def guarded(x, limit):
    check(jnp.all(x < limit), "x must stay below {}", limit)
    return lax.while_loop(lambda c: c < limit, lambda c: c * 2, jnp.sum(jnp.abs(x)) + 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deploy")
    functions = {
        "step": (step, {"w": W}, "f64[n 5]"),
        "kinds": (kinds, "f64[n 5]"),
        "guarded": (guarded, np.ones(3), np.float64(8)),
    }
    plait.save(folder / "model.plait", functions)
    words = [folder / "model.plait", "-o", folder / "libmodel.so"]
    code, out, err = run("compile", *words, "--size", "n<=8")
    assert code == 0 and not err, err
    return folder


class Model:
    """A session of the shared object."""

    library = None

    def __init__(self, folder):
        Model.library = ctypes.CDLL(str(folder / "libmodel.so"))
        self.library.model_message.restype = ctypes.c_char_p
        self.session = ctypes.c_void_p()
        assert self.library.model_open(ctypes.byref(self.session)) == 0, self.message()

    def message(self):
        return self.library.model_message().decode()

    def __call__(self, name, *arguments):
        """Integers are sizes, arrays are buffers."""
        convert = [
            ctypes.c_int64(a) if isinstance(a, int) else a if a is None else a.ctypes.data_as(ctypes.c_void_p)
            for a in arguments
        ]  # fmt: skip
        return getattr(self.library, f"model_{name}")(self.session, *convert)

    def step(self, w, x):
        new, value = np.empty_like(w), np.empty(())
        assert self("step", len(x), w, x, new, value) == 0, self.message()
        return new, value

    def close(self):
        self.library.model_close(self.session)


def test_gradients_at_every_size(folder):
    model = Model(folder)
    assert model("prepare_step", 4) == 0
    for n in (4, 1, 8, 0, 4):
        x = rng.normal(size=(n, 5))
        for got, want in zip(model.step(W, x), expected_step(W, x)):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    model.close()


def test_results_of_several_dtypes_and_loops(folder):
    model = Model(folder)
    x = rng.normal(size=(6, 5))
    positive, ordered = np.empty(6, np.uint8), np.empty((6, 5))
    sums, best = np.empty(5), np.empty(6, np.int32)
    assert model("kinds", 6, x, positive, ordered, sums, best) == 0, model.message()
    assert (positive == (x.sum(1) > 0)).all() and (ordered == np.sort(x, 1)).all()
    np.testing.assert_allclose(sums, x.sum(0), rtol=1e-12)
    assert (best == np.argmax(x, 1)).all()
    model.close()


def test_threads_with_sessions_of_their_own(folder):
    batches = [rng.normal(size=(1 + i % 8, 5)) for i in range(24)]
    results = {}

    def work(first):
        model = Model(folder)
        w = W
        for x in batches[first::2] * 10:
            w, _ = model.step(w, x)
        results[first] = w
        model.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first in range(2):
        w = W
        for x in batches[first::2] * 10:
            w, _ = expected_step(w, x)
        np.testing.assert_allclose(results[first], w, rtol=1e-9)


def test_what_a_caller_does_wrong_is_a_code_and_a_message(folder):
    model = Model(folder)
    w, x, value = W.copy(), rng.normal(size=(8, 5)), np.empty(())
    new = np.empty_like(w)
    assert model("step", 9, w, x, new, value) == 1 and "the size n is 9" in model.message()
    assert model("step", 8, w, None, new, value) == 1 and "x is a null pointer" in model.message()
    assert model("step", 8, w, x, w, value) == 1 and "overlaps" in model.message()
    assert "params['w']" in model.message() and "result[0]['w']" in model.message()
    assert model("step", 8, w, x, new, new) == 1
    assert Model.library.model_step(None, ctypes.c_int64(1), *[None] * 4) == 1
    assert (w == W).all() and model("step", 8, w, x, new, value) == 0

    result = np.empty(())
    limit = np.array(8.0)
    assert model("guarded", np.ones(3), limit, result) == 0 and result == 8
    assert model("guarded", np.full(3, 9.0), limit, result) == 3
    assert "x must stay below 8" in model.message()
    assert model("guarded", np.ones(3), limit, result) == 0
    model.close()


def test_it_depends_on_nothing_of_plait_and_shows_only_its_header(folder):
    library = folder / "libmodel.so"
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*?)\]", needed)
    assert needed and all(
        re.match(r"lib(stdc\+\+|m|gcc_s|c)\.so|ld-linux", name) for name in needed
    )
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    names = {line.split()[-1].split("@")[0] for line in shown.stdout.splitlines()}
    header = (folder / "model.h").read_text()
    assert names == set(re.findall(r"(model_\w+)\(", header))
    assert "float64 [n, 5]" in header and "n, 0 to 8" in header


ALLOCATORS = """
#include <stdio.h>
#include <stdlib.h>
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static volatile long count;
void *malloc(size_t n) { return ++count, __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return ++count, __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return ++count, __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return ++count, __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { return ++count, !(*p = __libc_memalign(a, n)); }
"""

COUNT = """
#include <model.h>
int main(void) {
  static double w[15], x[40], result[15], value;
  model_session *session;
  if (model_open(&session) || model_prepare_step(session, 8)) return 1;
  const long before = count;
  for (int i = 0; i < 10; ++i)
    if (model_step(session, 8, w, x, result, &value)) return 3;
  printf("%d %ld\\n", before > 0, count - before);
  return 0;
}
"""

COUNT_ALL = """
#include <many.h>
static char *read_all(const char *path) {
  FILE *file = fopen(path, "rb");
  char *bytes = __libc_memalign(64, 1 << 22);
  if (!file || fread(bytes, 1, 1 << 22, file) == 0) exit(9);
  fclose(file);
  return bytes;
}
int main(int argc, char **argv) {
  (void)argc;
  many_session *session;
  char *bytes = read_all(argv[1]);
  if (many_open(&session)) return puts(many_message()), 1;
  for (int entry = 0; entry < ENTRIES; ++entry) {
    const void *inputs[16];
    void *outputs[16];
    for (int i = 0; i < num_inputs[entry]; ++i) inputs[i] = bytes + input_at[entry][i];
    for (int i = 0; i < num_outputs[entry]; ++i)
      outputs[i] = __libc_memalign(64, output_bytes[entry][i] + 64);
    long before = 0;
    for (int run = 0; run < 5; ++run) {
      if (run == 2) before = count;  /* the first calls may ask: kernels find their workspaces */
      if (many_call(session, entry, 0, inputs, outputs)) return puts(many_message()), 2;
    }
    printf("%ld\\n", count - before);
  }
  return 0;
}
"""


def run_counting(folder, name, text, library, *arguments):
    """What a C program prints that is linked with an object, and counts requests for memory."""
    (folder / f"{name}.c").write_text(ALLOCATORS + text)
    words = ["cc", "-fno-builtin", folder / f"{name}.c", folder / library, "-I", folder]
    words += [f"-Wl,-rpath,{folder}", "-o", folder / name]
    subprocess.run([str(w) for w in words], check=True)
    command = [str(folder / name), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_training_step_asks_for_no_memory(folder):
    assert run_counting(folder, "count", COUNT, "libmodel.so") == "1 0\n"


def several_passes(x):
    """The derivative of a loop, whose carries are kept."""
    return plait.grad(lambda x: lax.scan(lambda c, r: (jnp.tanh(c + r), c), x[0], x)[0].sum())(x)


def asking_functions():
    """Functions by name, with arguments, of the kernels that need memory of their own."""
    a, wide = rng.normal(size=(24, 24)), rng.normal(size=(6, 300))
    spd, image = a @ a.T + 24 * np.eye(24), rng.normal(size=(2, 3, 9, 9)).astype(np.float32)
    kernel, places = rng.normal(size=(4, 3, 3, 3)).astype(np.float32), np.array([5, 1, 5], np.int32)
    key = plait.random.key(3)
    linalg = jnp.linalg
    return {
        "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * 2), jnp.zeros(300, "float64"), x), wide),
        "passes": (several_passes, wide),
        "doubled": (lambda x: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 2, x), abs(wide)),
        "chosen": (lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: x - 1, x), wide),
        "each_its": (each_its_loop, rng.normal(size=7)),
        "ragged": (ragged, rng.normal(size=(5, 6)), np.array([1, 6, 3, 0, 5], np.int32)),
        "sorted": (lambda x: (jnp.sort(x, axis=1), jnp.sort(x, axis=0)), wide),
        "order": (lambda x: jnp.argsort(x, axis=0), wide),
        "best": (lambda x: lax.top_k(x, 4), wide),
        "triangle": (linalg.cholesky, spd),
        "solution": (linalg.solve, a, rng.normal(size=(24, 3))),
        "determinant": (linalg.det, a),
        "orthogonal": (linalg.qr, a),
        "singular": (linalg.svd, a),
        "eigen": (linalg.eigh, spd),
        "taken": (lambda x, i: (x[i], x.at[i].add(1.0), x.at[:, i].set(0.0)), wide, places),
        "drawn": (lambda k: (plait.random.normal(k, (50,)), plait.random.permutation(k, 20)), key),
        "sums": (lambda x: (jnp.cumsum(x, axis=1), x.sum(0), x.mean(), x.max(1)), wide),
        "pads": (lambda x: jnp.pad(x, ((1, 2), (3, 0))), wide),
        "image": (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), image, kernel),
        "pooled": (lambda x: nn.max_pool(x, (2, 2)), image),
        "halves": (lambda x: (x @ x.T).astype("float32"), wide.astype(np.float16)),
        "products": (lambda a: jnp.einsum("ij,kj,kl->il", a, a, a), a),
    }  # fmt: skip


def test_no_program_asks_for_memory_again(tmp_path):
    functions = dict(sorted(asking_functions().items()))  # as entries are in the file
    plait.save(tmp_path / "m.plait", functions, test_vectors=False)
    code, _, err = run("compile", tmp_path / "m.plait", "-o", tmp_path / "many.so")
    assert code == 0, err
    file, places, sizes = b"", [], []
    for f, *arguments in functions.values():
        places.append([])
        for argument in plait.tree.leaves(arguments):
            file += b"\0" * (-len(file) % 64)
            places[-1].append(len(file))
            is_key = plait.dtypes.issubdtype(argument.dtype, plait.dtypes.prng_key)
            words = plait.random.key_data(argument) if is_key else argument
            file += np.ascontiguousarray(np.asarray(words)).tobytes()
        sizes.append(
            [np.asarray(leaf).nbytes for leaf in plait.tree.leaves(plait.jit(f)(*arguments))]
        )
    (tmp_path / "inputs").write_bytes(file)
    text = f"enum {{ ENTRIES = {len(functions)} }};\n"
    for name, lists in (("input_at", places), ("output_bytes", sizes)):
        rows = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in lists)
        text += f"static const long {name}[][16] = {{{rows}}};\n"
    for name, lists in (("num_inputs", places), ("num_outputs", sizes)):
        text += f"static const int {name}[] = {{{', '.join(str(len(row)) for row in lists)}}};\n"
    counts = run_counting(tmp_path, "all", text + COUNT_ALL, "many.so", tmp_path / "inputs")
    assert dict(zip(functions, counts.split(), strict=True)) == dict.fromkeys(functions, "0")


def test_products_by_onednn(tmp_path):
    if not (BUILD / "libplait_run_onednn.a").exists():
        pytest.skip("plait was built without oneDNN")
    a, b = rng.normal(size=(2, 96, 96)).astype(np.float32)
    plait.save(tmp_path / "p.plait", lambda a, b: jnp.matmul(a, b), a, b)
    words = ["compile", tmp_path / "p.plait", "-o", tmp_path / "p.so", "--with", "onednn"]
    assert run(*words)[0] == 0
    library = ctypes.CDLL(str(tmp_path / "p.so"))
    session, result = ctypes.c_void_p(), np.empty((96, 96), np.float32)
    assert library.p_open(ctypes.byref(session)) == 0
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, result)]
    assert (
        getattr(library, "p_call")(
            session,
            0,
            None,
            (ctypes.c_void_p * 2)(*pointers[:2]),
            (ctypes.c_void_p * 1)(pointers[2]),
        )
        == 0
    )
    np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-4)
    needed = subprocess.run(["readelf", "-d", tmp_path / "p.so"], capture_output=True, text=True)
    assert "libdnnl" in needed.stdout


LOOPS = """
#include <loops.h>
#include <stdio.h>
int main(void) {
  double w[15], x[40], result[15], value;
  for (int i = 0; i < 40; ++i) x[i] = 0.1 * (i % 7) - 0.3;
  for (int i = 0; i < 15; ++i) w[i] = 0.2 * (i % 4) - 0.3;
  loops_session *session;
  if (loops_open(&session) || loops_step(session, w, x, result, &value)) return 1;
  for (int i = 0; i < 15; ++i) printf("%.17g ", result[i]);
  printf("%.17g", value);
  return 0;
}
"""


def test_generated_loops_go_along(folder):
    if "backend llvm is not used" in plait.explain(jnp.tanh, jnp.ones(9)):
        pytest.skip("libLLVM is not installed")
    words = [folder / "model.plait", "-o", folder / "loops.so", "--entry", "step", "--size", "n=8"]
    code, _, err = run("compile", *words, "--with", "llvm")
    assert code == 0 and not err
    (folder / "loops.c").write_text(LOOPS)
    words = ["cc", folder / "loops.c", folder / "loops.so", "-I", folder, f"-Wl,-rpath,{folder}"]
    subprocess.run([str(w) for w in [*words, "-o", folder / "loops"]], check=True)
    environment = {**os.environ, "PLAIT_LOG": "1"}
    ran = subprocess.run([str(folder / "loops")], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0 and not ran.stderr  # nothing stays on its first tier
    x = (0.1 * (np.arange(40) % 7) - 0.3).reshape(8, 5)
    w = (0.2 * (np.arange(15) % 4) - 0.3).reshape(5, 3)
    got = np.array(ran.stdout.split(), float)
    want = np.append(*(np.ravel(a) for a in expected_step(w, x)))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def angles(x):
    """Functions of libplait: far angles are reduced by it, and lgamma is its loop."""
    return jnp.sin(x) + jnp.cos(x * 1e9), plait.scipy.special.gammaln(jnp.abs(x) + 0.5), x % 0.7


def steps(y):
    """A loop whose body calls functions, one state after another."""

    def slope(y):
        return jnp.stack([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])

    def step(_, y):
        a = slope(y)
        b = slope(y + 0.05 * a)
        return y + 0.1 * b

    return lax.fori_loop(0, 200, step, y)


def test_generated_loops_call_the_mathematics_of_the_object(tmp_path):
    if "backend llvm is not used" in plait.explain(jnp.tanh, jnp.ones(9)):
        pytest.skip("libLLVM is not installed")
    x = np.array([0.3, -2.0, 7e5, 3e8, -1e15, 1e290, 4.25, -0.0, 12.5])
    functions = {"angles": (angles, x), "steps": (steps, np.array([1.0, 0.0]))}
    plait.save(tmp_path / "m.plait", functions)
    words = ["compile", tmp_path / "m.plait", "-o", tmp_path / "far.so", "--with", "llvm"]
    code, _, err = run(*words)
    assert code == 0 and not err  # nothing is left on its first tier
    script = (
        "import ctypes, sys, numpy as np\n"
        f"library, session = ctypes.CDLL({str(tmp_path / 'far.so')!r}), ctypes.c_void_p()\n"
        "assert library.far_open(ctypes.byref(session)) == 0\n"
        f"x, y = np.array({x.tolist()}), np.array([1.0, 0.0])\n"
        "got, end = [np.empty_like(x) for _ in range(3)], np.empty_like(y)\n"
        "pointer = lambda a: a.ctypes.data_as(ctypes.c_void_p)\n"
        "assert library.far_angles(session, pointer(x), *map(pointer, got)) == 0\n"
        "assert library.far_steps(session, pointer(y), pointer(end)) == 0\n"
        "np.save(sys.argv[1], np.concatenate([*got, end]))\n"
    )
    environment = {**os.environ, "PLAIT_LOG": "1"}
    command = [sys.executable, "-c", script, str(tmp_path / "got.npy")]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    got = np.load(tmp_path / "got.npy")
    np.testing.assert_allclose(got[:9], np.sin(x) + np.cos(x * 1e9), rtol=1e-13, atol=1e-13)
    want = [math.lgamma(abs(v) + 0.5) for v in x.tolist()]
    np.testing.assert_allclose(got[9:18], want, rtol=1e-12)
    np.testing.assert_allclose(got[18:27], x % 0.7, rtol=0, atol=1e-15)
    y = np.array([1.0, 0.0])
    slope = lambda y: np.array([y[1], -math.sin(y[0]) - 0.1 * y[1]])  # noqa: E731
    for _ in range(200):
        y = y + 0.1 * slope(y + 0.05 * slope(y))
    np.testing.assert_allclose(got[27:], y, rtol=1e-11)


NO_MEMORY = """
#include <model.h>
static int fails; /* from the request of this number on, until the call returns */
int refuse(void) { return fails && ++count >= fails; }
int main(void) {
  int refused = 0;
  for (int n = 1;; n += 1 + n / 8) {
    model_session *session = 0;
    count = 0;
    fails = n;
    const int code = model_open(&session);
    fails = 0;
    if (code == MODEL_OK) break;
    if (code != MODEL_OUT_OF_MEMORY) return puts(model_message()), 1;
    ++refused;
  }
  return printf("%d\\n", refused > 20), 0;
}
"""


def test_an_object_that_finds_no_memory_says_so(tmp_path):
    plait.save(tmp_path / "m.plait", {"guarded": (guarded, np.ones(3), np.float64(8))})
    assert run("compile", tmp_path / "m.plait", "-o", tmp_path / "model.so")[0] == 0
    declared = "extern int refuse(void);\n" + ALLOCATORS.replace(
        "return ++count, ", "return refuse() ? FAIL : "
    )
    text = declared.replace("static volatile long count", "static long count")
    text = re.sub(r"(int posix.*?)FAIL", r"\g<1>12", text).replace("FAIL", "0")
    assert text.count("refuse() ?") == 5
    (tmp_path / "main.c").write_text(text + NO_MEMORY)
    words = ["cc", "-fno-builtin", "main.c", "model.so", "-I", ".", "-Wl,-rpath,.", "-o", "main"]
    subprocess.run(words, check=True, cwd=tmp_path)
    ran = subprocess.run(["./main"], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stdout + ran.stderr


def each_its_loop(x):
    return vmap(lambda v: lax.while_loop(lambda c: c < 10, lambda c: c * 1.5 + 0.1, abs(v) + 1))(x)


def ragged(x, lengths):
    return vmap(mask(lambda v: jnp.sum(jnp.exp(v)) / v.shape[0], "f64[n]"))(x, n=lengths)


def solved(a, b):
    return jnp.linalg.solve(a @ a.T + 3 * jnp.eye(4, dtype=a.dtype), b)


def spread(x):
    return plait.grad(lambda a: jnp.sum(nn.softmax(a, axis=-1) ** 2))(x), jnp.cumsum(x, axis=0)


def test_loops_of_examples_ragged_batches_and_factorizations(tmp_path):
    lengths = np.array([1, 6, 3, 0, 5], np.int32)
    functions = {
        "loops": (each_its_loop, rng.normal(size=7)),
        "ragged": (ragged, rng.normal(size=(5, 6)), lengths),
        "solved": (solved, rng.normal(size=(4, 4)), rng.normal(size=4)),
        "spread": (spread, rng.normal(size=(5, 6))),
    }
    plait.save(tmp_path / "m.plait", functions)
    code, _, err = run("compile", tmp_path / "m.plait", "-o", tmp_path / "many.so")
    assert code == 0, err
    library, session = ctypes.CDLL(str(tmp_path / "many.so")), ctypes.c_void_p()
    assert library.many_open(ctypes.byref(session)) == 0
    for name, (f, *arguments) in functions.items():
        want = [np.asarray(leaf) for leaf in plait.tree.leaves(f(*arguments))]
        got = [np.empty_like(array) for array in want]
        buffers = [array.ctypes.data_as(ctypes.c_void_p) for array in [*arguments, *got]]
        assert getattr(library, f"many_{name}")(session, *buffers) == 0
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_names_that_c_cannot_have(tmp_path):
    def twice(x):
        return {"int": x * 2, "a-b": x + 1, "a b": x - 1}

    names = ["open", "for", "a-b", "a_b", "prepare_open"]
    plait.save(tmp_path / "n.plait", {name: (twice, "k") for name in names})
    assert run("compile", tmp_path / "n.plait", "-o", tmp_path / "n.a", "--size", "k<=4")[0] == 0
    declared = re.findall(r"int n_(\w+)\(", (tmp_path / "n.h").read_text())
    assert len(set(declared)) == len(declared) == 2 * len(names) + 2
    assert {"open", "open_2", "for_", "a_b", "a_b_2", "call"} <= set(declared)


MAIN = """
#include <model.h>
#include <other.h>
#include <stdio.h>
int main(void) {
  double x[3] = {1, 1, 1}, limit = 8, result = 0, again = 0;
  model_session *a;
  other_session *b;
  if (model_open(&a) || model_guarded(a, x, &limit, &result)) return 1;
  if (other_open(&b) || other_guarded(b, x, &limit, &again)) return 2;
  printf("%g %g\\n", result, again);
  model_close(a);
  other_close(b);
  return 0;
}
"""


def test_archives_of_two_programs_in_one(folder):
    for name in ("model", "other"):
        words = [folder / "model.plait", "-o", folder / f"{name}.a", "--entry", "guarded"]
        code, _, err = run("compile", *words, "--header", folder / f"{name}.h")
        assert code == 0, err
    (folder / "main.c").write_text(MAIN)
    files = [folder / "main.c", folder / "model.a", folder / "other.a"]
    command = ["cc", *files, "-I", folder, "-o", folder / "main", "-lstdc++", "-lm", "-pthread"]
    linked = subprocess.run([str(w) for w in command], capture_output=True, text=True)
    assert linked.returncode == 0, linked.stderr
    ran = subprocess.run([str(folder / "main")], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "8 8\n"), ran.stderr


@pytest.mark.parametrize(
    "words, code, says",
    [
        ([], 2, "-o is missing"),
        (["-o", "x.exe"], 2, "ends in .so or .a"),
        (["-o", "x.so"], 1, "nothing is said of the size n"),
        (["-o", "x.so", "--size", "n"], 2, "--size needs n=32 or n<=64"),
        (["-o", "x.so", "--size", "n=4", "--entry", "fit"], 1, "no entry 'fit'"),
        (["-o", "x.so", "--size", "n=4", "--name", "1"], 2, "cannot begin names in C"),
        (["-o", "/none/x.so", "--size", "n=4"], 1, "cannot write /none/x.so"),
    ],
)
def test_commands_that_cannot_be_done(folder, words, code, says):
    got, out, err = run("compile", folder / "model.plait", *words)
    assert got == code and not out and says in err


def test_the_lesson_trains_in_c_to_the_accuracy_of_python(tmp_path):
    command = [sys.executable, ROOT / "examples" / "14_deploy.py", tmp_path]
    result = subprocess.run([str(w) for w in command], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    python, c = (float(n) for n in re.findall(r"accuracy (\d+\.\d) %", result.stdout))
    assert abs(python - c) < 0.6 and c > 95
    assert "same weights: yes" in result.stdout
    assert "the size n is 100000" in result.stdout
    guesses = re.search(r"in C\+\+: +(.*)", result.stdout)[1].split()
    assert sum(int(g) == i for i, g in enumerate(guesses)) >= 8  # the images are of 0, 1, ..., 8
