"""plait: composable function transforms — grad, vmap, mask, jit, and yours — over arrays.

>>> import plait, plait.numpy as pnp
>>> plait.grad(lambda x: pnp.sum(x**2))(pnp.arange(3.0))
Array([0., 2., 4.], dtype=float32)

SPDX-License-Identifier: Apache-2.0
"""

# The names are for users; imports are in the order of their dependencies.
# ruff: noqa: E402, F401

import os as _os
import sys as _sys

if not (3, 11) <= _sys.version_info[:2] <= (3, 14):
    raise ImportError(f"plait supports Python 3.11 to 3.14, not {_sys.version.split()[0]}")


def _refuse_other_machines():
    """An instruction that the processor lacks may be the library's first one."""
    import platform

    found = f"{_sys.platform} on {platform.machine()}"
    if found != "linux on x86_64":
        raise ImportError(f"plait supports Linux on x86-64 with AVX2, not {found}")
    try:
        with open("/proc/cpuinfo") as file:
            start = file.read(4096)
    except OSError:
        return
    flags = start.partition("\nflags")[2].partition("\n")[0].split()
    if flags and not {"avx2", "fma"} <= set(flags):
        raise ImportError("plait needs a processor with AVX2 and FMA, which this one has not")


_refuse_other_machines()

from typing import TYPE_CHECKING as _TYPE_CHECKING

import numpy as _np

from plait import _display, _names, _plait, _scalars

# Lines of the package are not user lines.
_plait.set_package_folders(
    [_os.path.dirname(path(__file__)) + "/" for path in (_os.path.abspath, _os.path.realpath)]
)

from plait._autocast import AutocastPolicy, autocast
from plait._checks import check, first_nan, grad_check
from plait._custom import (
    CustomVJPPrimal,
    SymbolicZero,
    checkpoint,
    checkpoint_policies,
    custom_jvp,
    custom_vjp,
)
from plait._derivatives import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)
from plait._devices import Device, block_until_ready, default_device, device_put, devices
from plait._extend import Primitive, Transform
from plait._from_jax import from_jax
from plait._host import host_call, no_host_calls
from plait._info import info
from plait._inspect import (
    bind,
    code,
    conformance,
    diff,
    literal,
    parse_jaxpr,
    size,
    staged,
    summary,
)
from plait._plait import (
    Array,
    BackendError,
    BufferError,
    DtypeError,
    Error,
    FileError,
    HostError,
    IndexError,
    InternalError,
    Jaxpr,
    JitFunction,
    JobError,
    MemoryError,
    MissingRuleError,
    ShapeDtypeStruct,
    ShapeError,
    Size,
    TracerError,
    TreeDef,
    TreeError,
    UserError,
    ValueError,
    Var,
    clear_memory,
    from_dlpack,
    memory_stats,
    set_cache_limit,
)
from plait._profile import Profile, draw, profile
from plait._progress import set_progress
from plait._rewrite import (
    Builder,
    Match,
    Pass,
    PassStatistics,
    Rule,
    Uses,
    apply_pass,
    pipeline,
    rebuild,
    rewrite,
    walk,
)
from plait._rules import rules
from plait._scopes import default_dtypes, disable_jit, named_scope
from plait._script import script, unscripted
from plait._programs import Program, load, save
from plait._sizes import Ragged, instantiate, mask, ragged
from plait._tape import no_grad, variable
from plait._mesh import (
    Mesh,
    P,
    PartitionSpec,
    mesh,
    process_count,
    process_index,
    set_mesh,
    shard_map,
)
from plait._transforms import eval_shape, explain, jit, make_jaxpr, vmap

__version__ = _plait.__version__

# The modules that are generated from the catalogue of C++ functions.
from plait import (
    debug,
    dtypes,
    flatten_util,
    image,
    lax,
    nn,
    numpy,
    ops,
    optim,
    random,
    scipy,
    sparse,
    tree,
    tree_util,
)

_display.set_up()

asarray = numpy.asarray
remat = checkpoint
jacobian = jacrev

globals().update({name: getattr(numpy, name) for name in _scalars.NAMES})


def device_get(x):
    """x, a tree of arrays, converted to NumPy arrays."""
    leaves, structure = _plait.flatten(x)
    return _plait.unflatten(structure, [_np.asarray(leaf) for leaf in leaves])


if _TYPE_CHECKING:
    from plait._checkpoint import Checkpoint, load_checkpoint, save_checkpoint
# Imported where they are used: they need much of the standard library.
_LATE = ("Checkpoint", "load_checkpoint", "save_checkpoint")
_missing = _names.missing(__name__, globals(), [*_scalars.ON_DEMAND, *_LATE])


def __getattr__(name):
    if name in _LATE:
        from plait import _checkpoint

        return getattr(_checkpoint, name)
    if name in _scalars.ON_DEMAND:
        return _scalars.on_demand(name)
    if name in vars(numpy):
        raise AttributeError(
            f"module 'plait' has no attribute {name!r}; plait.numpy.{name} is there"
        )
    _missing(name)


def __dir__():
    return sorted({*globals(), *_LATE})


# The builtin exceptions keep their names in programs that use `import *`.
__all__ = sorted(
    name
    for name in __dir__()
    if not name.startswith("_")
    and name not in ("BufferError", "IndexError", "MemoryError", "ValueError")
)
