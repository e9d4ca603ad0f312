"""Runs programs written for JAX on plait: `python -m plait.jax script.py`, or `-m module`, or `-c code`.

In the program, and in the processes that it starts, `import jax` imports plait's drop-in (plait/compat/jax).

SPDX-License-Identifier: Apache-2.0
"""

import os
import runpy
import sys

_USAGE = """usage: python -m plait.jax script.py [ARGS]
       python -m plait.jax -m module [ARGS]
       python -m plait.jax -c code [ARGS]
       python -m plait.jax --path    prints the folder that holds the packages `jax` and `jaxlib`"""


def main(arguments):
    """Runs a program with the drop-in on the path; the status of a usage error is 2."""
    from plait import compat

    if arguments == ["--path"]:
        print(compat.jax_path())
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    kind = arguments[0] if arguments[0] in ("-m", "-c") else "script"
    rest = arguments if kind == "script" else arguments[1:]
    if not rest or rest[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    compat.install_as_jax(replace=True)
    folders = [compat.jax_path(), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    program = rest[0]
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return 0
    # sys.path is [the drop-in, the current folder, ...]; Python has the script's folder in its place.
    here = "" if kind == "-c" else os.path.dirname(os.path.abspath(program))
    sys.path[1:2] = [here]
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(program, "<string>", "exec"), _main_namespace())
        return 0
    sys.argv = rest
    runpy.run_path(program, run_name="__main__")
    return 0


def _main_namespace():
    """The namespace of a fresh module __main__."""
    import types

    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    return module.__dict__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
