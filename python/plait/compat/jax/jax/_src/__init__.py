"""Those private modules of JAX that public libraries import.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking

__getattr__ = lacking(
    __name__,
    (
        "ad_util callback checkify compiler core custom_derivatives dispatch dtypes effects flatten_util state "
        "traceback_util tree_util util xla_bridge"
    ).split(),
)
