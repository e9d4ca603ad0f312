"""Writes the type stubs of plait's modules that are made from the catalogue: python make_stubs.py [FOLDER].

The stubs are kept beside the package; tests/python/test_stubs.py says when they are old.

SPDX-License-Identifier: Apache-2.0
"""

import enum
import importlib
import inspect
import pathlib
import re
import sys

MODULES = (
    "numpy", "numpy.fft", "numpy.linalg", "lax", "lax.linalg", "nn", "nn.initializers", "random", "optim", "scipy.fft", "scipy.linalg",
    "scipy.special", "scipy.stats", "scipy.cluster.vq", "scipy.integrate", "scipy.interpolate", "scipy.ndimage", "scipy.signal",
    "tree", "ops", "image", "sparse",
)  # fmt: skip
MODULES += tuple(f"scipy.stats.{name}" for name in (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic "
    "multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
).split())  # fmt: skip
HEADER = '''"""Made by python/make_stubs.py from the catalogue.

SPDX-License-Identifier: Apache-2.0
"""
# fmt: off
# ruff: noqa

'''
IMPORTS = """import builtins as _builtins
import enum as _enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from typing import overload as _overload

import numpy as _np
import numpy.typing as _npt

"""
# Functions that always give the named tuple of their module; others do for some of their arguments.
NAMED_RESULTS = {
    ("numpy.linalg", "eigh"): "EighResult",
    ("numpy.linalg", "slogdet"): "SlogdetResult",
    ("scipy.stats", "mode"): "ModeResult",
    **{("sparse", name): "BCOO" for name in (
        "bcoo_fromdense bcoo_transpose bcoo_reduce_sum bcoo_sum_duplicates bcoo_multiply_dense bcoo_add eye"
    ).split()},
}  # fmt: skip
WHERE = """@_overload
def where(condition: _ArrayLike, x: Callable[..., Any], y: Any, *xs: Any) -> Any: ...
@_overload
def where(condition: _ArrayLike, x: Any, y: Callable[..., Any], *xs: Any) -> Any: ...
@_overload
def where(condition: _ArrayLike, x: _ArrayLike | None = ..., y: _ArrayLike | None = ..., *, size: int | Any | None = ..., fill_value: float | Any = ...) -> Any: ...
"""
ALIASES = """_Array = Array
_ArrayLike = Any
_DType = _npt.DTypeLike
_Ints = int | Sequence[int] | Any

"""
TYPES = {
    "array": "_ArrayLike",
    "sequence of array": "Sequence[_ArrayLike]",
    "tree": "Any",
    "int or sequence of int": "_Ints",
    "int, array of integers or sequence of these": "_Ints",
    "int": "int | Any",
    "bool": "_builtins.bool",
    "float": "float | Any",
    "function": "Callable[..., Any]",
    "str": "str",
    "dtype": "_DType",
}
RESULTS = TYPES | {
    "array": "_Array",
    "sequence of array": "tuple[_Array, ...]",
    "dtype": "_np.dtype[Any]",
    "tuple": "tuple[Any, ...]",
    "int or sequence of int": "tuple[Any, ...]",
    "int": "int",
    "float": "float",
}
CLASSES = """class Error(Exception): ...
class UserError(Error): ...
class ShapeError(UserError, _builtins.ValueError, TypeError): ...
class ValueError(UserError, _builtins.ValueError): ...
class IndexError(UserError, _builtins.IndexError): ...
class DtypeError(UserError, TypeError): ...
class TreeError(UserError, TypeError): ...
class TracerError(UserError, TypeError): ...
class MissingRuleError(UserError, NotImplementedError): ...
class HostError(UserError, RuntimeError): ...
class MemoryError(UserError, _builtins.MemoryError): ...
class JobError(UserError, RuntimeError): ...
class BackendError(Error, RuntimeError): ...
class BufferError(BackendError, _builtins.BufferError): ...
class InternalError(Error, RuntimeError): ...
"""
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()


def type_of(text, table):
    """A type of the catalogue as a Python annotation."""
    optional = text.endswith(" or None") and text not in table
    base = table.get(text.removesuffix(" or None") if optional else text, "Any")
    return f"{base} | None" if optional and base != "Any" else base


def function_stub(name, parameters, result, doc, method=False, indent=""):
    """The stub of a catalogued function."""
    parts, keyword_only = [], False
    for position, (parameter, kind, only, variadic, fallback, _) in enumerate(parameters):
        annotation = type_of(kind, TYPES)
        if method and position == 0:
            parts.append("self")
        elif variadic:
            parts.append(f"*{parameter}: Any")
            keyword_only = True
        else:
            if method and name in ("reshape", "transpose") and position == 1:
                parts.append(f"*{parameter}: Any")
                keyword_only = True
                continue
            if only and not keyword_only:
                parts.append("*")
                keyword_only = True
            parts.append(f"{parameter}: {annotation}{' = ...' if fallback else ''}")
    return f"{indent}def {name}({', '.join(parts)}) -> {type_of(result, RESULTS)}: ...\n"


def _field_type(value, field):
    kind = value.__annotations__.get(field) if hasattr(value, "__annotations__") else None
    return "_Array" if getattr(kind, "__name__", None) == "Array" else "tuple[int, ...]"


def class_stub(name, value):
    """The stub of a class of the package."""
    if issubclass(value, enum.Enum):
        members = "".join(f"    {member.name} = {member.value!r}\n" for member in value)
        return f"class {name}(str, _enum.Enum):\n{members}"
    if hasattr(value, "_fields"):
        fields = "".join(
            f"    {field}: {_field_type(value, field)}{' = ...' if field in value._field_defaults else ''}"
            + ("  # type: ignore[assignment]\n" if hasattr(tuple, field) else "\n")
            for field in value._fields
        )
        return f"class {name}(NamedTuple):\n{fields}"
    return (
        f"{name}: Any\n"
        if value.__name__ != name
        else f"class {name}:\n    def __init__(self, *args: Any) -> None: ...\n    def __getattr__(self, name: str) -> Any: ...\n"
    )


def python_stub(name, value):
    """The stub of something that is Python: a function, a class, a constant."""
    from plait._scalars import ScalarType

    if inspect.isclass(value):
        if value.__module__.startswith("numpy"):
            module = "_np.exceptions" if value.__module__ == "numpy.exceptions" else "_np"
            return f"{name} = {module}.{value.__name__}\n"
        if isinstance(value, ScalarType):  # to a type checker a dtype is NumPy's
            return f"{name} = _np.{value.dtype.type.__name__}\n"
        return class_stub(name, value)
    if inspect.isfunction(value):
        parts = []
        keyword_only = False
        for parameter in inspect.signature(value).parameters.values():
            default = "" if parameter.default is parameter.empty else " = ..."
            if parameter.kind is parameter.VAR_POSITIONAL:
                keyword_only = True
                parts.append(f"*{parameter.name}: Any")
            elif parameter.kind is parameter.VAR_KEYWORD:
                parts.append(f"**{parameter.name}: Any")
            else:
                if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
                    keyword_only = True
                    parts.append("*")
                parts.append(f"{parameter.name}: Any{default}")
        result = "_Array" if name in ("array", "asarray") else "Any"
        return f"def {name}({', '.join(parts)}) -> {result}: ...\n"
    if value is None or isinstance(value, (int, float)):
        return f"{name}: {type(value).__name__ if value is not None else 'None'}\n"
    return f"{name}: Any\n"


UFUNC = """class _Ufunc:
    def __call__(self, x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...
    def outer(self, a: _ArrayLike, b: _ArrayLike) -> _Array: ...
    def reduce(self, a: _ArrayLike, axis: _Ints | None = ..., dtype: _DType | None = ..., out: None = ..., keepdims: _builtins.bool = ..., **options: Any) -> _Array: ...
    def accumulate(self, a: _ArrayLike, axis: int = ..., dtype: _DType | None = ..., out: None = ...) -> _Array: ...
    def at(self, a: _ArrayLike, indices: Any, b: _ArrayLike, *, inplace: _builtins.bool = ...) -> _Array: ...

"""


def module_stub(name, functions):
    """The stub of one module."""
    module = importlib.import_module(f"plait.{name}")
    text = HEADER + IMPORTS + "from plait._plait import Array\n\n" + ALIASES
    if name == "numpy":
        text += UFUNC
    for member in sorted(dir(module)):
        if member.startswith("_"):
            continue
        value = getattr(module, member)
        if inspect.ismodule(value):
            if value.__name__ == f"plait.{name}.{member}":
                text += f"from plait.{name} import {member} as {member}\n"
            continue
        info = functions.get((name, member))
        if hasattr(value, "outer") and name == "numpy" and not inspect.isclass(value):
            text += f"{member}: _Ufunc\n"
        elif info and type(value).__name__ == "builtin":
            result = NAMED_RESULTS.get((name, member))
            stub = function_stub(member, info[5], info[4], info[3])
            text += stub.replace("-> tuple[Any, ...]:", f"-> {result}:") if result else stub
            if (name, member) == ("numpy", "where"):
                text = text.removesuffix(stub) + WHERE
        elif inspect.isclass(value) and re.match(r"plait\.(\w+\.)*_", value.__module__):
            text += f"from {value.__module__} import {member} as {member}\n"
        elif member == "ndarray":
            text += "ndarray = Array\n"
        else:
            text += python_stub(member, value)
    if name == "numpy":
        from plait import _scalars

        text += "".join(f"{member}: Any\n" for member in _scalars.ON_DEMAND)
    return text


def core_stub(functions):
    """The stub of plait._plait: the classes users meet."""
    from plait import numpy

    text = HEADER + IMPORTS + CLASSES + "\n"
    text += "class Array:\n"
    properties = {
        "shape": "tuple[Any, ...]", "dtype": "_np.dtype[Any]", "ndim": "int", "size": "int", "nbytes": "int",
        "itemsize": "int", "weak_type": "bool", "aval": "ShapeDtypeStruct", "T": "Array", "mT": "Array",
        "real": "Array", "imag": "Array", "device": "str", "at": "At",
        "requires_grad": "bool", "grad": "Array | None",
    }  # fmt: skip
    for name, kind in properties.items():
        text += f"    @property\n    def {name}(self) -> {kind}: ...\n"
        if name in ("real", "imag", "grad"):
            text += f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n"
    for name in OPERATORS:
        result = "tuple[Array, Array]" if name == "divmod" else "Array"
        text += f"    def __{name}__(self, other: Any) -> {result}: ...\n    def __r{name}__(self, other: Any) -> {result}: ...\n"
    for name in ("lt", "le", "gt", "ge"):
        text += f"    def __{name}__(self, other: Any) -> Array: ...\n"
    for name in ("eq", "ne"):
        text += f"    def __{name}__(self, other: Any) -> Array: ...  # type: ignore[override]\n"
    for name in ("neg", "pos", "abs", "invert"):
        text += f"    def __{name}__(self) -> Array: ...\n"
    for name, kind in {
        "bool": "bool",
        "int": "int",
        "float": "float",
        "complex": "complex",
        "index": "int",
        "len": "int",
    }.items():
        text += f"    def __{name}__(self) -> {kind}: ...\n"
    text += """    def __iter__(self) -> Any: ...
    def __getitem__(self, index: Any) -> Array: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __array__(self, dtype: Any = ..., copy: Any = ...) -> _np.ndarray[Any, Any]: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any: ...
    def __dlpack__(self, *, stream: Any = ..., max_version: Any = ..., dl_device: Any = ..., copy: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def item(self, *index: int) -> Any: ...
    def tolist(self) -> Any: ...
    def astype(self, dtype: _npt.DTypeLike, copy: bool = ...) -> Array: ...
    def copy(self) -> Array: ...
    def backward(self, cotangent: Any | None = ..., retain_graph: bool = ..., create_graph: bool = ...) -> None: ...
    def detach(self) -> Array: ...
    def register_hook(self, hook: Callable[[Array], Any]) -> HookHandle: ...
    def block_until_ready(self) -> Array: ...
"""
    for name, function in sorted(numpy._METHODS.items()):
        info = functions.get(("numpy", function))
        if info and not name.startswith("__"):
            text += (
                function_stub(name, info[5], info[4], info[3], method=True, indent="    ")
                .replace("_ArrayLike", "Any")
                .replace("_Array", "Array")
                .replace("_Ints", "Any")
                .replace("_DType", "_npt.DTypeLike")
            )
    text += """
class HookHandle:
    def remove(self) -> None: ...

class At:
    def __getitem__(self, index: Any) -> AtIndex: ...

class AtIndex:
"""
    for name in ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"):
        text += f"    def {name}(self, values: Any, *, mode: str | None = ..., unique_indices: bool = ..., indices_are_sorted: bool = ...) -> Array: ...\n"
    text += """    def get(self, *, mode: str | None = ..., fill_value: float | None = ...) -> Array: ...
    def apply(self, func: Callable[[Array], Any]) -> Array: ...

class Size:
    def __getattr__(self, name: str) -> Any: ...

class ShapeDtypeStruct:
    def __init__(self, shape: Any, dtype: _npt.DTypeLike, *, weak_type: bool = ...) -> None: ...
    shape: tuple[Any, ...]
    dtype: _np.dtype[Any]
    ndim: int
    size: int
    weak_type: bool

class TreeDef:
    num_leaves: int
    num_nodes: int
    def children(self) -> list[TreeDef]: ...
    def unflatten(self, leaves: Any) -> Any: ...
    def flatten_up_to(self, tree: Any) -> list[Any]: ...
    def path(self, index: int) -> str: ...
    def node_data(self) -> tuple[type, Any] | None: ...
    def compose(self, inner_tree: TreeDef) -> TreeDef: ...
    def walk(self, f_node: Any, f_leaf: Any, leaves: Any) -> Any: ...

class Jaxpr:
    in_avals: list[ShapeDtypeStruct]
    out_avals: list[ShapeDtypeStruct]
    eqns: list[Any]
    def __call__(self, *args: Any) -> list[Array]: ...
    def __getattr__(self, name: str) -> Any: ...

class JitFunction:
    cache: Any
    jaxpr: Jaxpr
    code: str
    __wrapped__: Callable[..., Any]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...
    def explain(self, *args: Any, **kwargs: Any) -> str: ...
    def jaxpr_for(self, *args: Any, **kwargs: Any) -> Jaxpr: ...
    def memory_for(self, *args: Any, **kwargs: Any) -> tuple[int, int, int, int]: ...
    def trace(self, *args: Any, **kwargs: Any) -> Any: ...
    def lower(self, *args: Any, **kwargs: Any) -> Any: ...
    def compile_for(self, *args: Any, **kwargs: Any) -> None: ...

def __getattr__(name: str) -> Any: ...
"""
    return text


def stubs():
    """The text of every stub, by file name."""
    from plait import _plait

    functions = {(info[0], info[1]): info for info in _plait.catalogue_info()}
    result = {"_plait.pyi": core_stub(functions)}
    for name in MODULES:
        is_package = hasattr(importlib.import_module(f"plait.{name}"), "__path__")
        path = name.replace(".", "/") + ("/__init__.pyi" if is_package else ".pyi")
        result[path] = module_stub(name, functions)
    return result


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script holds the package without its extension module
    folder = pathlib.Path(
        sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "plait"
    )
    for name, text in stubs().items():
        (folder / name).write_text(text)
