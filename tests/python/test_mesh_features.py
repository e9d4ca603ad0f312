"""What programs over a mesh may contain has on ranks the bits of one process, at once and under jit, and so have saved programs.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import sys

import mesh_features
import numpy as np
import plait
import pytest
from mesh_features import BOTH, FEATURES, digests, saved_digests
from mpi_jobs import launcher, run  # noqa: F401

SHAPES = {2: (2, 1), 4: (2, 2)}


@pytest.mark.parametrize("name", FEATURES)
def test_features_have_the_same_values_under_jit(name):
    mesh = plait.mesh((2, 2), BOTH)
    now, later = FEATURES[name](mesh), plait.jit(lambda: FEATURES[name](mesh))()
    for one, other in zip(plait.tree.leaves(now), plait.tree.leaves(later)):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", SHAPES)
def test_features_have_the_bits_of_one_process_on_ranks(launcher, size, tmp_path):  # noqa: F811
    mesh = plait.mesh(SHAPES[size], BOTH)
    saved = mesh_features.save(mesh, tmp_path)
    wanted = digests(mesh) + saved_digests(saved)
    shape = "x".join(map(str, SHAPES[size]))
    script = pathlib.Path(mesh_features.__file__)
    code, out, err = run(
        launcher, size, sys.executable, script, shape, tmp_path, PLAIT_DEADLINE="100"
    )
    assert code == 0, out + err
    for rank in range(size):
        assert [line for line in out.splitlines() if line.startswith(f"rank {rank}:")] == [
            f"rank {rank}: {each}" for each in wanted
        ]
