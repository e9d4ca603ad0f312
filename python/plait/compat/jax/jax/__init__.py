"""plait's drop-in for JAX: JAX's names over plait, for libraries that are written for JAX.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

import plait as _plait_package
from plait import stop_gradient as _stop_gradient

from jax import _doors
from jax._arrays import (
    Array,
    Device,
    ShapeDtypeStruct,
    add_attributes as _add_attributes,
    block_until_ready,
    copy_to_host_async,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    host_count,
    host_id,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
    typeof,
)
from jax._config import (
    check_tracer_leaks,
    checking_leaks,
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_matmul_precision,
    default_prng_impl,
    enable_checks,
    enable_custom_prng,
    enable_x64,
    explain_cache_misses,
    legacy_prng_key,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    softmax_custom_jvp,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from jax._indexing import add_indexing as _add_indexing
from jax._narrow import add_operators as _add_operators
from jax._transforms import (
    checkpoint,
    checkpoint_policies,
    closure_convert,
    ensure_compile_time_eval,
    eval_shape,
    fwd_and_bwd,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    keep_captures as _keep_captures,
    linear_transpose,
    linearize,
    make_jaxpr,
    named_call,
    named_scope,
    narrow_cotangents as _narrow_cotangents,
    pmap,
    pure_callback,
    remat,
    value_and_grad,
    vjp,
    vmap,
)
from jax.stages import add_options as _add_options
from jax.version import __version__, __version_info__

_add_attributes()
_add_indexing()
_add_operators()
_keep_captures()
_narrow_cotangents()
_add_options()

from jax import (  # noqa: E402
    core,
    custom_derivatives,
    debug,
    dtypes,
    errors,
    lax,
    nn,
    numpy,
    random,
    sharding,
    tree,
    tree_util,
    typing,
)
from jax.custom_derivatives import custom_gradient, custom_jvp, custom_vjp  # noqa: E402
from jax.dtypes import float0  # noqa: E402
from jax._shard_map import shard_map, smap  # noqa: E402
from jax.sharding import (  # noqa: E402
    NamedSharding,
    PartitionSpec as P,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    make_mesh,
    reshard,
    set_mesh,
)

disable_jit = _plait_package.disable_jit
default_device = _plait_package.default_device

new_ref = _doors.refused("jax.new_ref", "mutable references are not in plait's drop-in")
empty_ref = _doors.refused("jax.empty_ref", "mutable references are not in plait's drop-in")
freeze = _doors.refused("jax.freeze", "mutable references are not in plait's drop-in")


class Ref:
    """The type of mutable references, of which there are none here."""


def clear_caches():
    """Does nothing: each jitted function keeps its own traces, and its clear_cache() drops them."""


def effects_barrier():
    """Does nothing: a call has had its effects when it returns."""


def live_arrays(platform=None):
    """Refused: plait keeps no list of arrays."""
    _doors.refuse(
        "jax.live_arrays", "plait keeps no list of arrays", "plait.memory_stats() says what is held"
    )


def print_environment_info(return_string=False):
    """What this process runs on."""
    text = str(_plait_package.info())
    return text if return_string else print(text)


_SUBMODULES = (
    "ad_checkpoint api_util custom_batching distributed dlpack example_libraries experimental export extend ffi "
    "flatten_util image interpreters lib monitoring ops profiler scipy stages test_util version"
).split()
__getattr__ = _doors.lacking(__name__, _SUBMODULES)
