"""The command line runs programs on arrays from files, compared with NumPy's own reading and with Python."""

# SPDX-License-Identifier: Apache-2.0
import io
import json
import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as jnp
from command_line import run


DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
).split()


def sample(dtype, shape=(2, 3)):
    numbers = np.random.default_rng(7).normal(0, 50, shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * np.random.default_rng(8).normal(0, 50, shape)
    if dtype.startswith("u") or dtype == "bool":
        numbers = (
            abs(numbers) - (20 if dtype == "bool" else 0) > 0 if dtype == "bool" else abs(numbers)
        )
    return np.asarray(numbers).astype(dtype)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Entries that take a tree, a named size and numbers."""
    scale = jnp.asarray([2.0, 3.0, 4.0])

    def predict(weights, x):
        return {"y": jnp.tanh(x @ weights["w"]) + weights["b"], "sum": jnp.sum(x, axis=0) * scale}

    def decay(rate, steps):
        return rate * 0.5**steps

    path = tmp_path_factory.mktemp("run") / "model.plait"
    functions = {
        "predict": (predict, {"w": "3", "b": ""}, "n 3"),
        "decay": (decay, np.float32(8), np.float32(2)),
    }
    plait.save(path, functions, meta={"task": "a test"}, licence="MIT")
    return path


@pytest.fixture(scope="module")
def same(tmp_path_factory):
    """A program that gives back what it gets, of every dtype."""
    path = tmp_path_factory.mktemp("same") / "same.plait"
    plait.save(path, lambda x: x, {dtype: sample(dtype) for dtype in DTYPES})
    return path


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# --- Arrays in and out ---------------------------------------------------------------------------


def test_results_are_those_of_python(model, tmp_path):
    w, b, x = np.float32([1, -2, 0.5]), np.float32(0.25), sample("float32", (5, 3))
    np.savez(tmp_path / "in.npz", **{"weights['w']": w, "weights.b": b, "x": x})
    wanted = plait.load(model)["predict"]({"w": w, "b": b}, x)
    words = ["run", model, "predict", "--inputs", tmp_path / "in.npz"]
    assert run(*words, "-o", tmp_path / "out.npz") == (0, "", "")
    with np.load(tmp_path / "out.npz") as results:
        assert set(results) == {"result['y']", "result['sum']"}
        np.testing.assert_array_equal(results["result['y']"], wanted["y"])
        np.testing.assert_array_equal(results["result['sum']"], wanted["sum"])
    code, out, err = run(*words)
    assert code == 0 and not err
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["result['sum']", "f32[3]"],
        ["result['y']", "f32[5]"],
    ]
    assert out.splitlines()[0].split()[2] == f"{float(wanted['sum'][0]):.6g}"


@pytest.mark.parametrize("kind", ["rows", "columns", "swapped", "compressed"])
def test_every_dtype_comes_back(same, tmp_path, kind):
    arrays = {dtype: sample(dtype) for dtype in DTYPES}
    given = dict(arrays)
    if kind == "columns":
        given = {dtype: np.asfortranarray(array) for dtype, array in arrays.items()}
    if kind == "swapped":
        given = {d: array.astype(array.dtype.newbyteorder(">")) for d, array in arrays.items()}
    write = np.savez_compressed if kind == "compressed" else np.savez
    write(tmp_path / "in.npz", **{f"x.{dtype}": array for dtype, array in given.items()})
    words = ["run", same, "--inputs", tmp_path / "in.npz", "-o", tmp_path / "out.npz"]
    assert run(*words) == (0, "", "")
    with np.load(tmp_path / "out.npz") as results:
        for dtype, array in arrays.items():
            result = results[f"result['{dtype}']"]
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 1, 2, 1, 2, 1, 2)])
def test_shapes_come_back_as_numpy_reads_them(tmp_path, shape):
    array = sample("float64", shape)
    plait.save(tmp_path / "f.plait", lambda x: x, array)
    np.save(tmp_path / "in.npy", np.array(array, order="F"))
    words = ["run", tmp_path / "f.plait", "--inputs", tmp_path / "in.npy", "-o"]
    assert run(*words, tmp_path / "out.npy")[0] == 0
    result = np.load(tmp_path / "out.npy")
    assert result.shape == shape
    np.testing.assert_array_equal(result, array)


def test_bfloat16_is_written_as_ml_dtypes_does(tmp_path):
    array = sample("float32").astype(ml_dtypes.bfloat16)
    plait.save(tmp_path / "f.plait", lambda x: x + x, array)
    np.save(tmp_path / "in.npy", array)
    words = ["run", tmp_path / "f.plait", "--inputs", tmp_path / "in.npy", "-o"]
    assert run(*words, tmp_path / "out.npy") == (0, "", "")
    result = np.load(tmp_path / "out.npy").view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(result, array + array)


def test_safetensors_in_and_out(model, tmp_path):
    w, x = np.float32([1, -2, 0.5]), sample("float32", (4, 3))
    header, data = {}, b""
    for name, array in {"weights.w": w, "weights.b": np.float32(1), "x": x}.items():
        place = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": place}
        data += array.tobytes()
    text = json.dumps(header).encode()
    (tmp_path / "in.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    words = ["run", model, "predict", "--inputs", tmp_path / "in.safetensors", "-o"]
    assert run(*words, tmp_path / "out.safetensors") == (0, "", "")
    whole = (tmp_path / "out.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    entry = json.loads(whole[8 : 8 + length])["result['y']"]
    first, last = (8 + length + offset for offset in entry["data_offsets"])
    wanted = plait.load(model)["predict"]({"w": w, "b": np.float32(1)}, x)["y"]
    np.testing.assert_array_equal(np.frombuffer(whole[first:last], "f4"), wanted)


# --- How inputs are given ------------------------------------------------------------------------


def test_by_position_one_by_one_and_as_numbers(model, tmp_path):
    w, b, x = np.float32([1, -2, 0.5]), np.float32(0), sample("float32", (2, 3))
    np.savez(tmp_path / "all.npz", b, w, x)  # leaves in order: keys of dicts are sorted
    for name, array in (("w", w), ("b", b), ("x", x)):
        np.save(tmp_path / f"{name}.npy", array)
    wanted = run("run", model, "predict", "--inputs", tmp_path / "all.npz")
    assert wanted[0] == 0 and not wanted[2]
    in_order = [word for name in "bwx" for word in ("--inputs", tmp_path / f"{name}.npy")]
    assert run("run", model, "predict", *in_order) == wanted
    by_name = [f"--inputs=weights.w={tmp_path}/w.npy", f"--inputs=x={tmp_path}/x.npy"]
    assert run("run", model, *by_name, "--set", "weights.b=0", "predict") == wanted


def test_numbers_and_the_test_vector(model):
    assert (
        run("run", model, "decay", "--set", "rate=3", "--set", "steps=1.0")[1].split()[-1] == "1.5"
    )
    code, out, err = run("run", model, "decay")
    assert code == 0 and out.split() == ["result", "f32[]", "2"] and "test vector" in err


def test_cast(model, tmp_path):
    np.savez(tmp_path / "in.npz", np.float64(1), np.ones(3), np.ones((2, 3)))
    words = ["run", model, "predict", "--inputs", tmp_path / "in.npz"]
    code, _, err = run(*words)
    assert code == 1 and "f64[]" in err and "f32[]" in err and "--cast" in err
    assert run(*words, "--cast")[0] == 0


@pytest.mark.parametrize(
    "words, code, says",
    [
        (["predict"], 1, "argument weights['b'] of predict, f32[], is not given"),
        (["decay", "--set", "steps=1"], 1, "argument rate of decay, f32[], is not given"),
        (["decay", "--set", "speed=1"], 1, "no argument `speed`"),
        (["decay", "--set", "rate=1", "--set", "rate=1"], 2, "argument rate is given twice"),
        (["decay", "--set", "rate=fast"], 2, "--set needs a number"),
        (["decay", "--set", "rate"], 2, "--set needs name=number"),
        (["decay", "-o", "out.txt"], 2, "ends in .npz, .npy or .safetensors"),
        (["predict", "-o", "out.npy"], 2, "one array, and the result has 2"),
        (["decay", "-o", "/nowhere/out.npz"], 1, "cannot write"),
        (["decay", "-o", "/nowhere/out.npy"], 1, "cannot write"),
        ([], 1, "name one of them: decay, predict"),
        (["decay", "--inputs", "in.txt"], 1, "no file of arrays by its name"),
        (["decay", "--inputs", "in.npy"], 1, "cannot read in.npy: No such file"),
        (["decay", "--inputs", "in.npz"], 1, "cannot read in.npz: No such file"),
        (["decay", "--threads", "0"], 1, "0"),
    ],
)
def test_what_cannot_be_run(model, words, code, says):
    result = run("run", model, *words)
    assert result[0] == code and not result[1] and says in result[2] and "fix:" in result[2]


# --- Hostile files -------------------------------------------------------------------------------

GOOD = npy(np.float32([8]))


def header(text, version=1):
    text = text.encode()
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + struct.pack("<H" if version == 1 else "<I", len(text))
        + text
    )


DATA = struct.pack("<f", 8)
DESCR, ORDER = "'descr': '<f4'", "'fortran_order': False"
BAD = {
    "empty": (b"", "does not begin"),
    "text": (b"1 2 3\n", "does not begin"),
    "version": (GOOD[:6] + b"\x09" + GOOD[7:], "no version"),
    "short": (GOOD[:9], "header"),
    "header_cut": (GOOD[:40], "does not fit"),
    "data_cut": (GOOD[:-1], "3 bytes of data, and its shape needs 4"),
    "more": (GOOD + b"\0", "5 bytes of data"),
    "no_dict": (header("[1, 2]") + DATA, "has no `{`"),
    "code": (header("__import__('os').system('touch owned')") + DATA, "has no `{`"),
    "call": (header(f"{{{DESCR}, {ORDER}, 'shape': range(1)}}") + DATA, "has no `(`"),
    "twice": (header(f"{{{DESCR}, {DESCR}, {ORDER}, 'shape': ()}}") + DATA, "twice"),
    "lacks": (header(f"{{{DESCR}, {ORDER}}}") + DATA, "no shape"),
    "after": (header(f"{{{DESCR}, {ORDER}, 'shape': ()}} + 1") + DATA, "goes on"),
    "negative": (header(f"{{{DESCR}, {ORDER}, 'shape': (-1,)}}") + DATA, "no shape of an array"),
    "huge": (header(f"{{{DESCR}, {ORDER}, 'shape': ({2**62}, 4)}}") + DATA, "larger than any memory"),
    "wraps": (header(f"{{{DESCR}, {ORDER}, 'shape': ({2**63},)}}") + DATA, "no shape of an array"),
    "zero": (header(f"{{{DESCR}, {ORDER}, 'shape': (0, {2**62}, 8)}}"), "larger than any memory"),
    "deep": (header(f"{{{DESCR}, {ORDER}, 'shape': ({'1,' * 65})}}") + DATA, "more than 64 axes"),
    "big_header": (header("{" + " " * 70000, version=2) + DATA, "longer than 65536"),
    "unclosed": (header("{'descr") + DATA, "without an end"),
    "objects": (header(f"{{'descr': '|O', {ORDER}, 'shape': ()}}") + b"cos\nsystem\n", "Python objects"),
    "words": (npy(np.array(["a"])), "text"),
    "days": (npy(np.array(["2020-01-01"], "M8[D]")), "dates"),
    "records": (npy(np.zeros(1, "f4,i4")), "records"),
    "wide": (header(f"{{'descr': '<f16', {ORDER}, 'shape': ()}}") + b"\0" * 16, "dtype '<f16'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays_are_errors(model, tmp_path, name):
    contents, says = BAD[name]
    (tmp_path / "in.npy").write_bytes(contents)
    code, out, err = run("run", model, "decay", "--inputs", tmp_path / "in.npy")
    assert code == 1 and not out and says in err and "in.npy" in err and "fix:" in err
    assert not (tmp_path / "owned").exists()


def test_every_cut_of_an_archive_is_an_error(model, tmp_path):
    path = tmp_path / "in.npz"
    np.savez(path, np.float32(8), np.float32(2))
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        code, out, err = run("run", model, "decay", "--inputs", path)
        assert code == 1 and not out and "in.npz" in err and "fix:" in err


def archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, contents in members:
            file.writestr(name, contents)
    return path


@pytest.mark.parametrize(
    "members, says",
    [
        ([("../../etc/rate.npy", GOOD)], "no argument `../../etc/rate`"),
        ([("/rate.npy", GOOD)], "no argument `/rate`"),
        ([("rate.txt", GOOD)], "it is no array"),
        ([("rate.npy", b"\0" * 100_000_000)], "unpack to 100000000 bytes"),
        ([("rate.npy", GOOD[:-2])], "member rate.npy"),
        ([("arr_7.npy", GOOD)], "one array more"),
        ([("arr_99999999999999999999.npy", GOOD)], "no argument"),
    ],
)
def test_bad_archives_are_errors(model, tmp_path, members, says):
    path = archive(tmp_path / "in.npz", members)
    code, out, err = run("run", model, "decay", "--inputs", path)
    assert code == 1 and not out and says in err and "fix:" in err
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_results_leave_no_folder(tmp_path):
    plait.save(tmp_path / "f.plait", lambda x: {"../../a/b": x, "..\\..\\a/b": x + 1}, jnp.ones(()))
    assert run("run", tmp_path / "f.plait", "-o", tmp_path / "out.npz")[0] == 0
    with np.load(tmp_path / "out.npz") as results:
        assert sorted(float(results[name]) for name in results) == [1, 2]
        assert not any("/" in name or "\\" in name for name in results)
