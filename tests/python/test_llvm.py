"""Generated loops in processes of their own: which library, when it is loaded, what is kept on disk, and faults."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, resource, sys, threading, time
import numpy
import plait
import plait.numpy as jnp

def has_libllvm():
    return "libLLVM" in open("/proc/self/maps").read()

def same(a, b):
    return numpy.asarray(a).tobytes() == numpy.asarray(b).tobytes()

x = jnp.asarray(numpy.linspace(-4, 4, 1003, dtype=numpy.float32))
f = lambda x: jnp.tanh(x * x) - jnp.sin(x) / (1 + jnp.exp(-x))
assert not has_libllvm()
"""
WAIT = """
g = plait.jit(f, wait=True)
assert same(g(x), f(x))
print(g.explain(x))
print("libLLVM", has_libllvm())
"""


def run(program, **settings):
    """What a process prints; PLAIT_LLVM and the like by name, None for unset."""
    env = {**os.environ, "PLAIT_CACHE_DIR": "", "PLAIT_LLVM": None, "PLAIT_WAIT": None, **settings}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        env={name: str(value) for name, value in env.items() if value is not None},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def has_library():
    return "libLLVM True" in run(WAIT)


@pytest.fixture(scope="module", autouse=True)
def needs_library():
    """Nothing here where libLLVM is not installed, unless it must be."""
    if not has_library():
        assert not os.environ.get("PLAIT_REQUIRE_LLVM")
        pytest.skip("libLLVM is not installed")


def test_jit_waits_for_loops_of_the_same_bits():
    text = run(WAIT)
    assert "one loop program" in text and "tier: first" not in text


def test_it_can_be_turned_off():
    text = run(WAIT, PLAIT_LLVM="0")
    assert "llvm" not in text and "libLLVM False" in text


def test_calls_run_at_once_and_get_faster():
    text = run("""
g = plait.jit(f)
assert same(g(x), f(x)) and not has_libllvm()
print(g.explain(x))
for _ in range(4000):
    assert same(g(x), f(x))
    if "tier: last" in g.explain(x):
        break
    time.sleep(0.002)
print(g.explain(x))
""")
    assert "tier: first" in text and "tier: last" in text and "one loop program" in text


@pytest.mark.parametrize(
    "library, reason",
    [("/nowhere/libLLVM.so", "cannot be read"), ("libm.so.6", "has no LLVMContextCreate")],
)
def test_without_a_library_that_fits_programs_run_and_say_why(library, reason):
    text = run(WAIT + "print(plait.jit(lambda x: x + x).explain(x))", PLAIT_LLVM=library)
    assert f"backend llvm is not used: {library} {reason}" in text
    assert "one loop program" not in text


def test_a_second_process_needs_no_library(tmp_path):
    folder = tmp_path / "a" / "b"
    assert "libLLVM True" in run(WAIT, PLAIT_CACHE_DIR=folder)
    assert list(folder.glob("*.o"))
    text = run(WAIT, PLAIT_CACHE_DIR=folder)
    assert "libLLVM False" in text and "one loop program" in text


def test_the_folder_is_found_as_others_find_theirs(tmp_path):
    run(WAIT, PLAIT_CACHE_DIR=None, XDG_CACHE_HOME=tmp_path / "x")
    assert list((tmp_path / "x" / "plait").glob("*.o"))
    run(WAIT, PLAIT_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=tmp_path / "h")
    assert list((tmp_path / "h" / ".cache" / "plait").glob("*.o"))
    run(WAIT, PLAIT_CACHE_DIR="0", HOME=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "garbage"])
def test_a_damaged_file_is_written_anew(tmp_path, damage):
    run(WAIT, PLAIT_CACHE_DIR=tmp_path)
    for path in tmp_path.glob("*.o"):
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(
            {
                "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
                "cut": whole[:middle],
                "empty": b"",
                "garbage": b"\xff" * len(whole),
            }[damage]
        )
    assert "libLLVM True" in run(WAIT, PLAIT_CACHE_DIR=tmp_path)
    assert "libLLVM False" in run(WAIT, PLAIT_CACHE_DIR=tmp_path)


def test_a_file_that_others_could_have_written_is_not_run(tmp_path):
    run(WAIT, PLAIT_CACHE_DIR=tmp_path)
    for path in tmp_path.glob("*.o"):
        path.chmod(0o666)
    assert "libLLVM True" in run(WAIT, PLAIT_CACHE_DIR=tmp_path)


def test_a_folder_that_cannot_be_made_is_done_without_and_named_once(tmp_path):
    (tmp_path / "file").write_text("")
    more = "plait.jit(lambda x: jnp.exp(x) * 3 + x, wait=True)(x)"
    text = run(WAIT + more, PLAIT_CACHE_DIR=tmp_path / "file" / "folder", PLAIT_LOG=1)
    assert text.count("kernels are not kept") == 1 and "one loop program" in text


def test_a_full_disk_is_done_without_and_named_once(tmp_path):
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    more = "plait.jit(lambda x: jnp.exp(x) * 3 + x, wait=True)(x)"
    text = run(full + WAIT + more, PLAIT_CACHE_DIR=tmp_path, PLAIT_LOG=1)
    assert text.count("kernels are not kept") == 1 and "one loop program" in text
    assert not list(tmp_path.iterdir())


def test_processes_write_to_one_folder_at_once(tmp_path):
    env = {**os.environ, "PLAIT_CACHE_DIR": str(tmp_path), "PLAIT_LLVM": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM + WAIT], env=env, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert all("one loop program" in output for output in outputs)
    assert all(path.suffix == ".o" for path in tmp_path.iterdir())
    assert "libLLVM False" in run(WAIT, PLAIT_CACHE_DIR=tmp_path)


def test_forked_children_compute_what_their_parent_does():
    run("""
g, ready = plait.jit(f), plait.jit(lambda x: f(x) + 1, wait=True)
expected, also = numpy.asarray(f(x)), numpy.asarray(ready(x))
for _ in range(8):
    for _ in range(300):
        g(x)
    child = os.fork()
    if child == 0:
        fresh = plait.jit(lambda x: f(x) * 2, wait=True)
        right = same(g(x), expected) and same(ready(x), also) and same(fresh(x), expected * 2)
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
""")


def test_threads_see_one_function_change_tiers():
    run("""
g, expected, wrong = plait.jit(f), numpy.asarray(f(x)), []
def work():
    for _ in range(1500):
        if not same(g(x), expected):
            wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong
""")


def test_thousands_of_shapes_give_their_memory_back():
    run("""
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
g, waited = plait.jit(f), plait.jit(lambda x: x * x + 1, wait=True)
def sweep(sizes):
    for n in sizes:
        g(jnp.ones(n))
    for n in sizes[:400]:
        waited(jnp.ones(n))
sweep(range(1, 1200))
before = resident()
sweep(range(1200, 3600))
assert resident() - before < 40 << 20, resident() - before
""")


def test_what_repeats_along_short_rows():
    text = run("""
def clipped(h, d, least):
    g = h * d
    norm = jnp.sqrt((g * g).sum((1, 2)) + least)
    return g / jnp.maximum(norm, 1.0)[:, None, None], g.max((1, 2))

def scaled(h, d, by):
    return h * d * by[:, None, None]

random = numpy.random.default_rng(0)
for count, tall, wide in ((64, 1152, 6), (1, 300, 10), (33, 100, 6), (5, 7, 3), (3, 50, 31)):
    h = jnp.array(random.standard_normal((count, tall, 1)).astype(numpy.float32))
    d = jnp.array(random.standard_normal((count, 1, wide)).astype(numpy.float32))
    by = jnp.array(random.uniform(0, 1, count).astype(numpy.float32))
    for f in (clipped, scaled):
        g = plait.jit(f, wait=True)
        for a, b in zip(plait.tree.leaves(g(h, d, by)), plait.tree.leaves(f(h, d, by))):
            assert same(a, b), (f, count)
    # One of them is the same for all rows.
    g = plait.jit(clipped, wait=True)
    h = jnp.broadcast_to(h[:1], (count, tall, 1))
    for a, b in zip(g(h, d, by), clipped(h, d, by)):
        assert same(a, b)
""")
    assert text == ""
