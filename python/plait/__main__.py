"""The command line: `python -m plait` is the program `plait`, which is built and installed with the package.

SPDX-License-Identifier: Apache-2.0
"""

import os
import shutil
import sys


def main():
    """Replaces this process with the program; exits with 127 where it is not installed."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "plait")
    if not os.path.exists(program):
        program = shutil.which("plait")
        if not program or os.path.samefile(program, sys.argv[0]):
            print("plait: the program `plait` is not installed beside the package", file=sys.stderr)
            return 127
    os.environ.setdefault("PLAIT_PYTHON", sys.executable)  # of scripts that `plait run` runs
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
