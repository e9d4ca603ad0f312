"""Checkpoints: all dtypes, all errors, whole files; ranks that write parts of one, and jobs that go on from it."""

# SPDX-License-Identifier: Apache-2.0
import errno
import os
import random
import subprocess
import sys
import zipfile

import command_line
import ml_dtypes
import numpy as np
import pytest
from mpi_jobs import launcher, run  # noqa: F401

import plait
import plait.numpy as pnp
from plait import _checkpoint
from plait.random import fold_in, key, key_data, split

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 "
    "bfloat16 float8_e4m3fn float8_e5m2 int4 uint4"
).split()


def tree():
    values = {
        name: pnp.asarray(np.arange(-3, 4).astype(getattr(ml_dtypes, name, name)))
        for name in DTYPES
    }
    return values | {
        "keys": split(key(3), 5),
        "key": fold_in(key(9), 1),
        "numpy": np.arange(6.0).reshape(2, 3),
        "numbers": (3, -0.5, 2**80, True, 1 - 2j, None, float("inf")),
        "empty": pnp.zeros((0, 3)),
        "weak": pnp.asarray(2.0),
        "transposed": pnp.arange(12.0).reshape(3, 4).T,
        "long": pnp.arange(100_003) * 0.5,
    }


def same(a, b):
    """Whether two leaves are of one kind, with the same bits."""
    if type(a) is not type(b):
        return False
    if not hasattr(a, "dtype"):
        return a == b
    if isinstance(a, plait.Array) and "key" in str(a.dtype):
        return str(a.dtype) == str(b.dtype) and same(key_data(a), key_data(b))
    weak = isinstance(a, plait.Array) and a.weak_type != b.weak_type
    x, y = np.asarray(a), np.asarray(b)
    return not weak and (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def are_same(a, b):
    assert plait.tree.structure(a) == plait.tree.structure(b)
    assert all(map(same, plait.tree.leaves(a), plait.tree.leaves(b)))


def test_every_dtype_comes_back_with_its_bits(tmp_path):
    path, saved = tmp_path / "all.plait", tree()
    handle = plait.save_checkpoint(path, saved)
    saved["numpy"] += 1  # the file has what was given
    handle.wait()
    assert handle.done() and "written" in repr(handle) and os.listdir(tmp_path) == ["all.plait"]
    are_same(plait.load_checkpoint(path, saved), tree())
    shapes = plait.eval_shape(lambda: {"w": pnp.ones((2, 3)), "k": split(key(0))})
    plait.save_checkpoint(path, {"w": pnp.ones((2, 3)), "k": split(key(0))}).wait()
    are_same(plait.load_checkpoint(path, shapes), {"w": pnp.ones((2, 3)), "k": split(key(0))})


def test_other_trees_are_refused(tmp_path):
    path = tmp_path / "c.plait"
    plait.save_checkpoint(path, {"w": pnp.ones((2, 3)), "n": 1}).wait()
    for like, error, problem in (
        ({"w": pnp.ones((2, 3))}, plait.TreeError, "the file has ['n']"),
        ([pnp.ones((2, 3)), 1], plait.TreeError, "`like` has [0]"),
        ({"w": pnp.ones((3, 2)), "n": 1}, plait.ShapeError, "['w'] is float32[2,3], and in `like` it is float32[3,2]"),
        ({"w": pnp.ones((2, 3), int), "n": 1}, plait.DtypeError, "and in `like` it is int32[2,3]"),
        ({"w": pnp.ones((2, 3)), "n": 1.0}, plait.DtypeError, "is a Python int, and in `like` it is a Python float"),
    ):  # fmt: skip
        with pytest.raises(error) as raised:
            plait.load_checkpoint(path, like)
        assert problem in str(raised.value)
    with pytest.raises(plait.TreeError, match="at \\['s'\\] is 'text' of type str"):
        plait.save_checkpoint(path, {"s": "text"})


def test_files_that_are_no_checkpoint_say_so(tmp_path):
    path, like = tmp_path / "c.plait", {"w": pnp.arange(1000.0)}
    plait.save_checkpoint(path, like).wait()
    good = path.read_bytes()
    middle = good.index(np.arange(1000, dtype=np.float32)[5:50].tobytes())
    damaged = [
        good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        good[: len(good) // 2],
        good.replace(b"[1000]", b"[1001]"),
        b"",
        b"other",
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(plait.ValueError, match="is damaged, or is no checkpoint"):
            plait.load_checkpoint(path, like)
    with pytest.raises(plait.FileError, match="No such file"):
        plait.load_checkpoint(tmp_path / "absent", like)
    with pytest.raises(OSError, match="No such file"):
        plait.save_checkpoint(tmp_path / "absent" / "c.plait", like)
    with pytest.raises(plait.FileError, match="Is a directory"):
        plait.save_checkpoint(tmp_path, like)
    plait.save(path, lambda x: x + 1, 1.0)
    with pytest.raises(plait.ValueError, match="is a saved program, no checkpoint"):
        plait.load_checkpoint(path, like)
    path.write_bytes(good)
    with pytest.raises(plait.ValueError, match="it is a checkpoint, which holds values"):
        plait.load(path)
    code, _, err = command_line.run("info", path)
    assert code != 0 and "it is a checkpoint" in err


def test_a_failure_is_told_once_and_the_next_save_is_a_new_one(tmp_path, monkeypatch):
    path = tmp_path / "c.plait"
    plait.save_checkpoint(path, {"w": pnp.ones(3)}).wait()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for is_waited_for in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(_checkpoint, "_write_at", full)
            handle = plait.save_checkpoint(path, {"w": pnp.zeros(3)})
            with pytest.raises(OSError, match="cannot write .*c.plait: No space left on device"):
                if is_waited_for:
                    handle.wait()
                else:
                    plait.save_checkpoint(path, {"w": pnp.zeros(3)})
        assert handle.done() and "not written" in repr(handle)
        are_same(plait.load_checkpoint(path, {"w": pnp.ones(3)}), {"w": pnp.ones(3)})
        (folder,) = tmp_path.glob("*.saving")
        assert "data" not in os.listdir(folder)  # whose room the next one needs
        plait.save_checkpoint(path, {"w": pnp.ones(3)}).wait()
        assert os.listdir(tmp_path) == ["c.plait"]


def test_a_writer_that_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "c.plait"
    plait.save_checkpoint(path, {"w": pnp.ones(3)}).wait()
    script = f"""
import os, plait, plait.numpy as pnp
from plait import _checkpoint

def dying(*arguments, left=list(range(5)), write=_checkpoint._write_at):
    left.pop() if left else os.kill(os.getpid(), 9)
    return write(*arguments)

_checkpoint._write_at = dying
plait.save_checkpoint({str(path)!r}, {{"w": pnp.zeros(10_000_000)}}).wait()
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    are_same(plait.load_checkpoint(path, {"w": pnp.ones(3)}), {"w": pnp.ones(3)})
    assert len(os.listdir(tmp_path)) == 2
    plait.save_checkpoint(path, {"w": pnp.zeros(3)}).wait()
    assert os.listdir(tmp_path) == ["c.plait"]


# --- Jobs -----------------------------------------------------------------------------------------

PARTS = """
import sys
import plait
sys.path.insert(0, {folder!r})
import test_checkpoint as t
plait.save_checkpoint({path!r}, t.tree()).wait()
t.are_same(plait.load_checkpoint({path!r}, t.tree()), t.tree())
t.are_same(plait.load_checkpoint({alone!r}, t.tree()), t.tree())
try:
    plait.save_checkpoint({path!r}, {{"w": plait.numpy.zeros(plait.process_index() + 1)}})
except plait.ValueError as error:
    print("refused" if "ranks 0 and 1 of 3 write different trees" in str(error) else error)
try:
    plait.save_checkpoint("/absent/c", 1.0)
except OSError as error:
    print("no folder" if "No such file" in str(error) else error)
"""


def test_ranks_write_a_part_each_and_read_all(launcher, tmp_path):  # noqa: F811
    path, alone, script = (str(tmp_path / name) for name in ("ranks.plait", "alone.plait", "s.py"))
    plait.save_checkpoint(alone, tree()).wait()
    with open(script, "w") as file:
        file.write(PARTS.format(path=path, alone=alone, folder=os.path.dirname(__file__)))
    code, out, err = run(launcher, 3, script, PLAIT_PYTHON=sys.executable)
    assert code == 0, out + err
    # The ranks' lines may lie inside each other.
    assert out.count("no folder") == out.count("refused") == 3 and len(out.split()) <= 9, out
    are_same(plait.load_checkpoint(path, tree()), tree())
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        sizes = [archive.getinfo(f"values/{rank}").file_size for rank in range(3)]
    assert max(sizes) - min(sizes) <= 1 and len(os.listdir(tmp_path)) == 3


FULL = """
import errno, os, sys
import plait, plait.numpy as pnp
from plait import _checkpoint

path, rank = sys.argv[1], plait.process_index()
plait.save_checkpoint(path, {"w": pnp.ones(1000)}).wait()
write = _checkpoint._write_at
if rank == 1:
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    _checkpoint._write_at = full
try:
    plait.save_checkpoint(path, {"w": pnp.zeros(1000)}).wait()
except OSError as error:
    print("full;" if "No space left on device" in str(error) else error)
_checkpoint._write_at = write
assert pnp.all(plait.load_checkpoint(path, {"w": pnp.ones(1000)})["w"] == 1)
plait.save_checkpoint(path, {"w": pnp.full(1000, 2.0)}).wait()
assert pnp.all(plait.load_checkpoint(path, {"w": pnp.ones(1000)})["w"] == 2)
"""


def test_all_ranks_learn_that_one_could_not_write(launcher, tmp_path):  # noqa: F811
    script = tmp_path / "full.py"
    script.write_text(FULL)
    (tmp_path / "c").mkdir()
    code, out, err = run(
        launcher, 3, script, tmp_path / "c" / "c.plait", PLAIT_PYTHON=sys.executable
    )
    assert code == 0, out + err
    assert out.count("full;") == 3 and os.listdir(tmp_path / "c") == ["c.plait"]


TRAINING = """
import os, sys
import plait, plait.numpy as pnp
from plait import P, lax, optim, random

path, last = sys.argv[1], int(sys.argv[2])  # the step at which rank 1 is killed
mesh = plait.mesh((4,), ("data",))

def loss(weights, x):
    return lax.pmean(pnp.mean(pnp.square(pnp.tanh(x @ weights["w"]) @ weights["v"] - x[:, 0])), "data")

loss = plait.shard_map(loss, mesh, (P(), P("data")), P())

@plait.jit
def step(weights, state, key):
    key, now = random.split(key)
    gradients = plait.grad(loss)(weights, random.normal(now, (16, 6)))
    updates, state = optim.adam(gradients, state, learning_rate=0.01)
    return optim.apply_updates(weights, updates), state, key

keys = random.split(random.key(0), 3)
weights = {"w": random.normal(keys[0], (6, 5)), "v": random.normal(keys[1], (5,))}
start = (0, weights, optim.adam_init(weights), keys[2])
done, *rest = plait.load_checkpoint(path, start) if os.path.exists(path) else start
for now in range(done, 20):
    if now == last and plait.process_index() == 1:
        os.kill(os.getpid(), 9)
    rest = step(*rest)
    if now % 3 == 2:
        plait.save_checkpoint(path, (now + 1, *rest))
weights, *_ = rest
if plait.process_index() == 0:
    print(done > 0, "".join(weights[name].__array__().tobytes().hex() for name in weights))
"""


def test_a_job_of_which_a_rank_was_killed_goes_on_with_the_same_bits(launcher, tmp_path):  # noqa: F811
    script, path = tmp_path / "train.py", tmp_path / "c.plait"
    script.write_text(TRAINING)
    alone = [sys.executable, script, tmp_path / "alone.plait", "-1"]
    result = subprocess.run(alone, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    last = random.randrange(6, 20)
    words = dict(PLAIT_PYTHON=sys.executable)
    code, out, err = run(launcher, 4, script, path, last, **words)
    assert code != 0 and "rank 1 of 4" in err, out + err
    code, out, err = run(launcher, 4, script, path, -1, **words)
    assert code == 0, f"killed at {last}: {out}{err}"
    assert out.split() == ["True", result.stdout.split()[1]], f"killed at {last}"
