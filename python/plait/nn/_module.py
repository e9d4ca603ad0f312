"""Module: a dataclass that is a tree of arrays, as layers and the models that are made of them are.

What a module holds is arrays, other modules, containers of these, and static values that belong to its structure. So
jit, grad, vmap, optimisers and plait.save take modules as they take any tree.

SPDX-License-Identifier: Apache-2.0
"""

import abc
import collections.abc
import dataclasses
import enum
import inspect
import sys
import types
import typing

import numpy as np

from plait import _names, _plait, tree
from plait._functions import text_of

# Fields of these types are part of the structure.
_STATIC = (
    int,
    float,
    complex,
    str,
    bytes,
    np.dtype,
    np.generic,
    type,
    enum.Enum,
    types.FunctionType,
)
_CONTAINERS = (tuple, list, dict, collections.abc.Sequence, collections.abc.Mapping)


def _is_static(kind, namespace):
    """Whether a field annotated as kind holds values of Python alone, which are not arrays."""
    if isinstance(kind, str):  # from __future__ import annotations
        try:
            kind = eval(kind, namespace)
        except Exception:
            return False
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType) or origin in _CONTAINERS:
        parts = [part for part in parts if part not in (types.NoneType, Ellipsis)]
        return bool(parts) and all(_is_static(part, namespace) for part in parts)
    kind = origin or kind
    return kind in (typing.Literal, collections.abc.Callable) or (
        isinstance(kind, type) and issubclass(kind, _STATIC)
    )


class _ModuleType(abc.ABCMeta):
    """The class of module classes: instances can be assigned to while __init__ runs, and are checked after it."""

    def __call__(cls, *args, **kwargs):
        module = cls.__new__(cls)
        module.__dict__["__init__ runs"] = True
        module.__init__(*args, **kwargs)
        del module.__dict__["__init__ runs"]
        _check(module)
        return module


def _check(module):
    cls = type(module).__name__
    for name, field in module.__dataclass_fields__.items():
        if name not in module.__dict__ and not hasattr(module, name):
            _plait.fail(
                "TreeError",
                f"{cls}: __init__ has not set the field {name!r}",
                f"assign self.{name}, None where there is none",
            )
        leaves = tree.leaves_with_path(getattr(module, name))
        if field.metadata.get("static", False):
            arrays = [leaf for _, leaf in leaves if isinstance(leaf, (_plait.Array, np.ndarray))]
            if arrays:
                _plait.fail(
                    "TreeError",
                    f"{cls}: the field {name!r} is static, and holds the array {_text(arrays[0])}",
                    f"annotate it as a plait.Array, or make it a number of Python: {name}=0.5",
                )
            continue
        for path, leaf in leaves:
            if not _plait.is_array_like(leaf):
                _plait.fail(
                    "TreeError",
                    f"{cls}: {name}{tree.keystr(path)} is {text_of(leaf)} of type {type(leaf).__name__}, no array",
                    f"declare the field {name} = plait.tree.static(), or wrap a function in plait.nn.Lambda",
                )


@typing.dataclass_transform(field_specifiers=(tree.static, dataclasses.field))
class Module(metaclass=_ModuleType):
    """A layer or model: an immutable dataclass, and a tree of the arrays in its fields.

    class Affine(Module):
        weight: plait.Array
        bias: plait.Array
        scale: float = 1.0

        def __call__(self, x):
            return self.scale * (x @ self.weight) + self.bias

    A subclass is a dataclass without the decorator, whose __init__ may be written by hand and then assigns every field.
    Fields are arrays, modules, and containers of these. Fields annotated as numbers, strings, dtypes or functions of
    Python, or declared plait.tree.static(), are part of the structure: jit compiles for their values. TreeError for
    other values, for fields that are not set, and for assignments after __init__.
    """

    __plait_tree__ = True  # a tree also where dataclasses are not, see plait.compat.jax

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        namespace = {**vars(typing), **vars(sys.modules.get(cls.__module__, typing))}
        for name, kind in inspect.get_annotations(cls).items():
            if not _is_static(kind, namespace):
                continue
            field = cls.__dict__.get(name, dataclasses.MISSING)
            if not isinstance(field, dataclasses.Field):
                setattr(cls, name, tree.static(default=field))
            elif "static" not in field.metadata:
                field.metadata = types.MappingProxyType({**field.metadata, "static": True})
        owner = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
        is_written = owner is not object and not getattr(owner.__init__, "__is_generated__", False)
        dataclasses.dataclass(cls, init=not is_written, repr=False, eq=False)
        if not is_written:
            cls.__init__.__is_generated__ = True

    def __setattr__(self, name, value):
        cls = type(self).__name__
        if "__init__ runs" not in self.__dict__:
            _plait.fail(
                "TreeError",
                f"{cls} is immutable, and {name!r} was assigned",
                f"make a copy: module.replace({name}=...), or plait.nn.tree_at for what is deeper inside",
            )
        if name not in self.__dataclass_fields__:
            _plait.fail(
                "TreeError",
                f"{cls} has no field {name!r}{_names.suggestion(name, self.__dataclass_fields__)}",
                f"declare it in the class: {name}: {type(value).__name__}",
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        _plait.fail(
            "TreeError", f"{type(self).__name__} is immutable, and {name!r} was deleted", "leave it"
        )

    def replace(self, **fields):
        """A copy with other values of some fields. TreeError for names that are no fields."""
        for name in fields:
            if name not in self.__dataclass_fields__:
                _plait.fail(
                    "TreeError",
                    f"{type(self).__name__} has no field {name!r}{_names.suggestion(name, self.__dataclass_fields__)}",
                    f"its fields are {', '.join(self.__dataclass_fields__)}",
                )
        copy = object.__new__(type(self))
        copy.__dict__.update({**self.__dict__, **fields})
        _check(copy)
        return copy

    def __repr__(self):
        return _text(self)


def _text(value):
    """A tree as text, with types in place of arrays."""
    if isinstance(value, (_plait.Array, np.ndarray, _plait.ShapeDtypeStruct)):
        return str(_plait.aval_of(value, "repr"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.repr]
        parts = [f"{name}={_text(getattr(value, name, '?'))}" for name in fields]
        return _joined(f"{type(value).__name__}(", parts, ")")
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [f"{name}={_text(part)}" for name, part in zip(value._fields, value)]
        return _joined(f"{type(value).__name__}(", parts, ")")
    if type(value) is tuple:
        return _joined("(", [_text(part) for part in value], ",)" if len(value) == 1 else ")")
    if type(value) is list:
        return _joined("[", [_text(part) for part in value], "]")
    if type(value) is dict:
        return _joined("{", [f"{key!r}: {_text(part)}" for key, part in value.items()], "}")
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value)


def _joined(start, parts, end):
    line = start + ", ".join(parts) + end
    if len(line) <= 80 and "\n" not in line:
        return line
    return start + "".join(("\n" + part).replace("\n", "\n  ") + "," for part in parts) + "\n" + end
