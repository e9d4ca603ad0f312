"""A law: random programs over a mesh have the values of the same mathematics on whole arrays, and on ranks the bits of one process.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import sys

import mesh_programs
import numpy as np
import plait
import plait.numpy as pnp
import pytest
from mesh_programs import COUNTS, digest, digests, on_whole_arrays, over_mesh, program, results
from mpi_jobs import launcher, run  # noqa: F401


def same(actual, expected, what):
    limit = 1e-9 * max(1.0, np.abs(np.asarray(expected)).max())
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), 1e-9, limit, err_msg=what)


@pytest.mark.parametrize("size", COUNTS)
def test_programs_have_the_values_of_whole_arrays(size):
    for number in range(COUNTS[size]):
        steps, x, weights = program(number, size)
        loss, array, by_x, by_weights = results(number, size)
        wanted = on_whole_arrays(number, size, np)(x, weights)
        same(loss, wanted[0], str(steps))
        same(array, wanted[1], str(steps))

        def reference(x, v, f=on_whole_arrays(number, size, pnp)):
            return f(x, v)[0]

        wanted = plait.grad(reference, argnums=(0, 1))(x, weights)
        same(by_x, wanted[0], str(steps))
        same(by_weights, wanted[1], str(steps))


@pytest.mark.parametrize("size", COUNTS)
def test_programs_have_the_bits_of_one_process_on_ranks(launcher, size, tmp_path):  # noqa: F811
    saved = tmp_path / "saved.plait"
    f, x, weights = over_mesh(0, size)
    plait.save(saved, f, x, weights)
    script = pathlib.Path(mesh_programs.__file__)
    code, out, err = run(launcher, size, sys.executable, script, size, saved, PLAIT_DEADLINE="60")
    assert code == 0, out + err
    wanted = [f"program {number}: {each}" for number, each in enumerate(digests(size))]
    wanted.append("saved: " + digest(plait.load(saved)(x, weights)))
    wanted.append(f"mesh: there are {size + 1} places, and {size} ranks")
    for rank in range(size):
        assert [line for line in out.splitlines() if line.startswith(f"rank {rank}:")] == [
            f"rank {rank}: {each}" for each in wanted
        ]
