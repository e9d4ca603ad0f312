"""Reductions, scans and orders of plait.numpy over every dtype and view: the table of test_numpy_table goes on.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait.numpy as pnp
import pytest
from test_numpy_table import (
    ALL,
    BOOL,
    FLOATS,
    REAL,
    SAME,
    check,
    dtype_of,
    expect,
    kind_of,
    mean_dtype,
    real_of,
    rng,
    sample,
    sum_dtype,
    views,
    wide,
)

pytestmark = pytest.mark.isa

# name: (dtypes, dtype of the result, takes where, takes initial, value for where's initial)
REDUCTIONS = {
    "sum": (ALL, sum_dtype, True, 2), "prod": (ALL, sum_dtype, True, 2), "max": (ALL[:-2], SAME, True, 1), "min": (ALL[:-2], SAME, True, 1),
    "any": (ALL, BOOL, True, None), "all": (ALL, BOOL, True, None), "mean": (ALL, mean_dtype, True, None),
    "var": (ALL, lambda name: real_of(mean_dtype(name)), True, None), "std": (ALL, lambda name: real_of(mean_dtype(name)), True, None),
    "ptp": (REAL, SAME, False, None), "count_nonzero": (ALL, lambda name: "int32", False, None),
    "median": (REAL, mean_dtype, False, None), "nansum": (ALL, sum_dtype, True, 2), "nanprod": (ALL, sum_dtype, True, 2),
    "nanmax": (REAL, SAME, True, 1), "nanmin": (REAL, SAME, True, 1), "nanmean": (REAL, mean_dtype, True, None),
    "nanvar": (REAL, mean_dtype, True, None), "nanstd": (REAL, mean_dtype, True, None), "nanmedian": (REAL, mean_dtype, False, None),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    dtypes, result, takes_where, initial = REDUCTIONS[name]
    function, numpy = getattr(pnp, name), getattr(np, name)
    for dtype in dtypes:
        for view, x, p in views(dtype, -2, 2):
            values = wide(x)
            if kind_of(dtype) in "biu" and name in ("sum", "prod", "nansum", "nanprod"):
                values = x.astype(result(dtype))
            axes = [None, *range(-x.ndim, x.ndim)] + ([(0, 1)] if x.ndim > 1 else [])
            for axis in axes:
                if (
                    x.size == 0
                    and name in ("max", "min", "ptp", "median", "nanmax", "nanmin", "nanmedian")
                    and axis in (None, 1, -1, (0, 1))
                ):
                    continue
                for keepdims in (False, True):
                    label = f"{name} {dtype} {view} axis={axis} keepdims={keepdims}"
                    expected = expect(numpy, values, axis=axis, keepdims=keepdims)
                    check(
                        function(p, axis=axis, keepdims=keepdims), expected, result(dtype), 8, label
                    )
            if takes_where and view != "scalar":
                where = rng.uniform(size=x.shape) > 0.3
                options = (
                    {"where": where} if initial is None else {"where": where, "initial": initial}
                )
                if dtype == "bool" and initial is not None:
                    options["initial"] = True
                expected = expect(numpy, values, axis=0, **options)
                check(
                    function(p, axis=0, **options),
                    expected,
                    result(dtype),
                    8,
                    f"{name} {dtype} {view} where",
                )


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "cumsum", "cumprod"])
def test_reductions_in_another_dtype(name):
    for dtype in ALL:
        for target in (
            "float32",
            "float64",
            "complex64",
            *(["int16", "int64"] if name not in ("mean", "var") else []),
        ):
            if kind_of(dtype) == "c" and target != "complex64":
                continue
            if name == "var" and target == "complex64":
                continue
            x = sample(dtype, (2, 3), -2, 2)
            values = wide(x.astype(dtype_of(target)))
            expected = expect(getattr(np, name), values, axis=1)
            check(
                getattr(pnp, name)(x, axis=1, dtype=target),
                expected,
                target,
                8,
                f"{name} {dtype} {target}",
            )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "argmax", "argmin", "nansum", "nanmax", "nanmin", "nanmean",
                                  "cumsum", "cumprod", "sort", "median", "nanmedian", "any", "all", "nanargmax", "ptp"])  # fmt: skip
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_of_special_values(name, dtype):
    rows = [
        [1, np.nan, 3],
        [np.inf, 1, 2],
        [-np.inf, np.inf, 0],
        [-np.inf, -np.inf, 5],
        [np.inf, np.nan, -np.inf],
        [0, -0.0, 0],
    ]
    x = np.array(rows).astype(dtype_of(dtype))
    expected = expect(getattr(np, name), wide(x), axis=1)
    result = "bool" if name in ("any", "all") else "int32" if "arg" in name else dtype
    check(getattr(pnp, name)(x, axis=1), expected, result, 4, f"{name} {dtype}")


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "argmax", "argmin", "sort", "argsort"])
def test_scans_and_order(name):
    dtypes = ALL if name.startswith("cum") else ALL[:-2]
    for dtype in dtypes:
        for view, x, p in views(dtype, -2, 2):
            result = (
                sum_dtype(dtype) if name.startswith("cum") else dtype if name == "sort" else "int32"
            )
            values = wide(x)
            if kind_of(dtype) in "biu" and name.startswith("cum"):
                values = x.astype(result)
            for axis in [None, *range(-x.ndim, x.ndim)]:
                if (
                    name.startswith("arg")
                    and name != "argsort"
                    and x.size == 0
                    and axis in (None, 1, -1)
                ):
                    continue
                options = {"kind": "stable"} if name == "argsort" else {}
                expected = expect(getattr(np, name), values, axis=axis, **options)
                check(
                    getattr(pnp, name)(p, axis=axis),
                    expected,
                    result,
                    4,
                    f"{name} {dtype} {view} {axis}",
                )
