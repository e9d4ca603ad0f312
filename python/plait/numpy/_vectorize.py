"""vectorize: a function of scalars, or of arrays of named axes, over all the other axes of its arguments.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import re

from plait import _plait
from plait._functions import check_callable

_AXES = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*\)"
_SIDE = rf"{_AXES}(?:\s*,\s*{_AXES})*"


def _parse(signature):
    """[("m", "n"), ("n",)], [("m",)] of "(m,n),(n)->(m)"."""
    if not re.fullmatch(rf"\s*{_SIDE}\s*->\s*{_SIDE}\s*", signature):
        _plait.fail(
            "ValueError",
            f"vectorize: the signature {signature!r} does not read",
            "write it as '(m,n),(n)->(m)'",
        )
    return [
        [tuple(re.findall(r"\w+", axes)) for axes in re.findall(_AXES, side)]
        for side in signature.split("->")
    ]


def vectorize(pyfunc, *, excluded=(), signature=None):
    """pyfunc over the axes of its arguments that it does not take, which broadcast: by vmap, once for each axis.

    Without a signature pyfunc takes and gives scalars. With one, as "(m,n),(n)->(m)", it takes arrays of these last
    axes, whose sizes agree where names do, and gives such; ShapeError when an argument lacks them. Arguments whose
    position or keyword is in excluded go to pyfunc as they are; other keywords are an error.
    """
    check_callable("vectorize", pyfunc)
    wanted, given = _parse(signature) if signature is not None else (None, None)
    names = {item for item in excluded if isinstance(item, str)}

    @functools.wraps(pyfunc)
    def vectorized(*args, **kwargs):
        from plait import numpy
        from plait._transforms import vmap

        stray = set(kwargs) - names
        if stray:
            _plait.fail(
                "DtypeError",
                f"vectorize: the keyword argument '{min(stray)}' is not excluded",
                "pass it by position, or name it in excluded",
            )
        numbers = [number for number in range(len(args)) if number not in excluded]
        arrays = [_plait.to_array(args[number], "vectorize") for number in numbers]
        axes = wanted or [()] * len(arrays)
        if len(axes) != len(arrays):
            _plait.fail(
                "DtypeError",
                f"vectorize: {len(arrays)} arguments for the signature {signature!r}",
                "give one for each pair of brackets",
            )
        _check_sizes(arrays, axes, signature)
        loops = [array.shape[: array.ndim - len(names)] for array, names in zip(arrays, axes)]
        shape = numpy.broadcast_shapes(*loops)

        def inner(*values):
            call = list(args)
            for number, value in zip(numbers, values):
                call[number] = value
            result = pyfunc(*call, **kwargs)
            _check_result(result, given, signature)
            return result

        # Innermost first: an argument is mapped over each loop axis that it has with more than one element.
        function = inner
        for depth in range(1, len(shape) + 1):
            in_axes = tuple(
                0 if len(loop) >= depth and (loop[-depth] != 1 or shape[-depth] == 1) else None
                for loop in loops
            )
            function = vmap(function, in_axes=in_axes)
        squeezed = [
            array.reshape(
                tuple(
                    size
                    for place, size in enumerate(loop)
                    if size != 1 or shape[len(shape) - len(loop) + place] == 1
                )
                + array.shape[len(loop) :]
            )
            for array, loop in zip(arrays, loops)
        ]
        return function(*squeezed)

    return vectorized


def _check_sizes(arrays, axes, signature):
    sizes = {}
    for number, (array, names) in enumerate(zip(arrays, axes)):
        if array.ndim < len(names):
            _plait.fail(
                "ShapeError",
                f"vectorize: argument {number} has shape {array.shape}, and the signature {signature!r} "
                f"needs {len(names)} axes",
                "give an array with these axes last",
            )
        for name, size in zip(names, array.shape[array.ndim - len(names) :]):
            if sizes.setdefault(name, size) != size:
                _plait.fail(
                    "ShapeError",
                    f"vectorize: {name} of {signature!r} is {sizes[name]} and, in argument {number}, {size}",
                    "give arrays whose sizes agree",
                )


def _check_result(result, given, signature):
    leaves = _plait.flatten(result)[0]
    for index, leaf in enumerate(leaves):
        rank = _plait.to_array(leaf, "vectorize").ndim
        wanted = 0 if given is None else len(given[index]) if index < len(given) else None
        if rank != wanted or (given is not None and len(given) != len(leaves)):
            _plait.fail(
                "ShapeError",
                f"vectorize: output {index} has {rank} axes, and "
                + (f"the signature is {signature!r}" if given else "scalars are needed"),
                "return what the signature says, or give one",
            )
