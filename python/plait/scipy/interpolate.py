"""Functions between the points of a grid, under SciPy's names.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names, _plait
from plait import numpy as _numpy
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("scipy.interpolate"))
__all__ = ["RegularGridInterpolator", *sorted(_catalogue("scipy.interpolate"))]


class RegularGridInterpolator:
    """The function whose values at the points of a grid are given: interpn as an object.

    points has the rising places of the grid along each axis, and values is an array over the grid. A call takes places
    whose last axis has a number for each axis of the grid, or a tuple of arrays for the axes.
    """

    def __init__(
        self, points, values, method="linear", bounds_error=False, fill_value=float("nan")
    ):
        self.grid = tuple(_numpy.asarray(each) for each in points)
        self.values = _numpy.asarray(values)
        sizes = tuple(each.shape for each in self.grid)
        if sizes != tuple((size,) for size in self.values.shape[: len(self.grid)]):
            _plait.fail(
                "ShapeError",
                f"RegularGridInterpolator: points of shapes {sizes} for values of shape {self.values.shape}",
                "give values with an axis for each axis of the grid, and a point for each value",
            )
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value

    def __call__(self, xi, method=None):
        """The values at xi, by a method of its own where one is given."""
        if isinstance(xi, tuple):
            xi = _numpy.stack(_numpy.broadcast_arrays(*xi), -1)
        method = self.method if method is None else method
        return interpn(self.grid, self.values, xi, method, self.bounds_error, self.fill_value)  # noqa: F821


__getattr__ = _names.missing(__name__, globals())
