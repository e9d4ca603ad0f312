"""What the tests of several folders share: an installation of the build, as a stranger would see it."""

# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

import pytest

from processes import run, tool

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """An installation of the build folder: the library's folder, the .pc file, the staged root."""
    stage = tmp_path_factory.mktemp("stage")
    build = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
    run(tool("meson"), "install", "-C", build, "--no-rebuild", "--destdir", stage)
    library = next(stage.rglob("libplait.so"))
    return library.parent, next(stage.rglob("plait.pc")), stage


@pytest.fixture(scope="session")
def with_installed(installed):
    """The environment in which compilers and programs find the installation."""
    libdir, pc, stage = installed
    return dict(
        os.environ,
        PKG_CONFIG_PATH=str(pc.parent),
        PKG_CONFIG_SYSROOT_DIR=str(stage),
        LD_LIBRARY_PATH=str(libdir),
        PATH=os.pathsep.join([str(next(stage.rglob("bin/plait")).parent), os.environ["PATH"]]),
    )
