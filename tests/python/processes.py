"""Other programs, as tests run them.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import shutil
import subprocess
import sys


def run(*command, **kwargs):
    """What a command prints; it has to succeed."""
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kwargs)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def tool(name):
    """The path of a program, that of the virtual environment where it has one."""
    beside = pathlib.Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)
