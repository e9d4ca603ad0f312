"""The program `plait` of the build, as tests call it.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "lib" / "tool" / "plait"


def run(*words):
    """Exit code, standard output, standard error."""
    result = subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr
