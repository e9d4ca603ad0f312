"""jax.interpreters.partial_eval: plait's tracing has other parts; what programs of JAX build on is refused by name.

SPDX-License-Identifier: Apache-2.0
"""

from jax._arrays import Tracer
from jax._doors import lacking, refused

JaxprTracer = DynamicJaxprTracer = Tracer
custom_partial_eval_rules: dict = {}
partial_eval_jaxpr_custom_rules: dict = {}
dce_rules: dict = {}
trace_to_jaxpr_dynamic = refused(
    "jax.interpreters.partial_eval.trace_to_jaxpr_dynamic", "use jax.make_jaxpr"
)
trace_to_jaxpr_nounits = refused(
    "jax.interpreters.partial_eval.trace_to_jaxpr_nounits", "use jax.make_jaxpr"
)
dce_jaxpr = refused(
    "jax.interpreters.partial_eval.dce_jaxpr", "plait drops what is not used itself"
)


class PartialVal(tuple):
    """The type of values that are known or not."""

    @classmethod
    def unknown(cls, aval):
        return cls((aval, None))


__getattr__ = lacking(__name__)
