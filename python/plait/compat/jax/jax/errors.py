"""jax.errors: JAX's names for what goes wrong, which are plait's errors here.

SPDX-License-Identifier: Apache-2.0
"""

import plait

from jax._doors import lacking

# One error of plait says in its text which of these it is.
JAXTypeError = JAXIndexError = ConcretizationTypeError = plait.TracerError
TracerArrayConversionError = TracerBoolConversionError = TracerIntegerConversionError = (
    plait.TracerError
)
NonConcreteBooleanIndexError = UnexpectedTracerError = plait.TracerError
InconclusiveDimensionOperation = plait.ShapeError
JaxRuntimeError = JAXRuntimeError = plait.HostError
JaxprTypeError = TypePromotionError = plait.DtypeError


class KeyReuseError(RuntimeError):
    """A key used twice; never raised here."""


__getattr__ = lacking(__name__)
__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError",
]  # fmt: skip
