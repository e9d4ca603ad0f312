"""plait under the names of other libraries, on request.

The folder compat/jax holds packages `jax` and `jaxlib` over plait, under which JAX's own libraries run unchanged. It is
on no path until `python -m plait.jax` or install_as_jax puts it there.

SPDX-License-Identifier: Apache-2.0
"""

import importlib
import importlib.util
import os
import sys

from plait import _plait

__all__ = ["install_as_jax", "jax_path"]

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jax")
_PACKAGES = ("jax", "jaxlib")


def jax_path():
    """The folder that holds plait's packages `jax` and `jaxlib`."""
    return _FOLDER


def _is_ours(file):
    return file is not None and os.path.abspath(file).startswith(_FOLDER + os.sep)


def is_drop_in(module):
    """Whether a module named jax is plait's."""
    return _is_ours(getattr(module, "__file__", None))


def _other_jax():
    """Where another jax is imported from or would be found, or None."""
    for name in _PACKAGES:
        module = sys.modules.get(name)
        if module is not None:
            if not is_drop_in(module):
                return f"{name} is imported from {getattr(module, '__file__', 'elsewhere')}"
            continue
        spec = importlib.util.find_spec(name)
        if spec is not None and not _is_ours(spec.origin):
            return f"{name} is installed at {spec.origin or list(spec.submodule_search_locations)}"
    return None


def install_as_jax(replace=False):
    """Makes `import jax` import plait's drop-in for JAX, in this process.

    ValueError where another jax is imported or can be found, unless replace is true: it is then hidden, and what was
    imported of it is forgotten, so that later imports give plait's. Modules that hold JAX's objects already keep them.
    """
    other = _other_jax()
    if other is not None and not replace:
        _plait.fail(
            "ValueError",
            f"install_as_jax: {other}",
            "run with `python -m plait.jax`, use an environment without JAX, or say replace=True",
        )
    if other is not None:
        for name in list(sys.modules):
            if name.partition(".")[0] in _PACKAGES:
                del sys.modules[name]
    if not sys.path or sys.path[0] != _FOLDER:
        sys.path.insert(0, _FOLDER)
    importlib.invalidate_caches()
