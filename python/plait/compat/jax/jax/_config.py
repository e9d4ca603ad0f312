"""jax.config: the options that programs set. Most say something to a compiler that is not here, and are kept.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import threading

from plait import _plait

from jax._doors import refuse

# Options, with JAX's defaults. Those marked below change what this package does.
_OPTIONS = {
    "jax_enable_x64": False,
    "jax_disable_jit": False,
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_numpy_rank_promotion": "allow",
    "jax_numpy_dtype_promotion": "standard",
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_default_device": None,
    "jax_enable_custom_prng": False,
    "jax_threefry_partitionable": True,
    "jax_platforms": "cpu",
    "jax_platform_name": "cpu",
    "jax_check_tracer_leaks": False,
    "jax_enable_checks": False,
    "jax_log_compiles": False,
    "jax_traceback_filtering": "auto",
    "jax_transfer_guard": "allow",
    "jax_compilation_cache_dir": None,
    "jax_debug_key_reuse": False,
    "jax_softmax_custom_jvp": True,
    "jax_legacy_prng_key": "allow",
    "jax_explain_cache_misses": False,
    "jax_debug_log_modules": "",
    "jax_num_cpu_devices": -1,
    "jax_use_direct_linearize": True,
    "jax_remat_opt_barrier": "auto",
    "jax_captured_constants_warn_bytes": 2 * 10**9,
    "jax_optimization_level": "UNKNOWN",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_memory_fitting_effort": 0.0,
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_random_seed_offset": 0,
    "jax_array_garbage_collection_guard": "allow",
    "jax_cpu_collectives_implementation": "gloo",
    "jax_pmap_shmap_merge": False,
}

# Values that ask for what the drop-in does not do: they are refused rather than dropped.
_ONLY = {
    "jax_debug_nans": (False, "plait.first_nan(f, *args) finds where a NaN is made"),
    "jax_debug_infs": (False, "plait.first_nan(f, *args) finds where a NaN is made"),
    "jax_default_prng_impl": ("threefry2x32", "keys are threefry's"),
}


# How many settings ask for checks of ranks, so that operators look at one number where none does.
rank_checks = [0]


def _asks_for_ranks(name, value):
    return name == "jax_numpy_rank_promotion" and value != "allow"


class Config:
    """The options of this process, and those of a thread inside context managers."""

    def __init__(self):
        object.__setattr__(self, "_values", dict(_OPTIONS))
        object.__setattr__(self, "_local", threading.local())

    def _read(self, name):
        local = getattr(self._local, "values", None)
        if local and name in local:
            return local[name]
        return self._values[name]

    def read(self, name):
        """The value of an option."""
        return self._read(name)

    def update(self, name, value):
        """Sets an option of the process. ValueError for one that there is not, or a value that is not to be had."""
        if name not in self._values:
            raise AttributeError(f"Unrecognized config option: {name}")
        _check(name, value)
        rank_checks[0] += _asks_for_ranks(name, value) - _asks_for_ranks(name, self._values[name])
        self._values[name] = value
        if name == "jax_disable_jit":
            _plait.set_jit_disabled(bool(value))
        if name == "jax_enable_x64":
            self._enter_defaults()

    def _enter_defaults(self):
        """Makes plait's default dtypes those of jax_enable_x64, in this thread."""
        if getattr(self._local, "scope", None):
            self._local.scope.__exit__()
        bits = 64 if self.x64_enabled else 32
        self._local.scope = _plait.DefaultDTypes(f"float{bits}", f"int{bits}")
        self._local.scope.__enter__()

    def __getattr__(self, name):
        if name.startswith("jax_") and name in self._values:
            return self._read(name)
        raise AttributeError(f"Unrecognized config option: {name}")

    def __setattr__(self, name, value):
        self.update(name, value)

    @property
    def x64_enabled(self):
        return bool(self._read("jax_enable_x64"))

    @property
    def values(self):
        return dict(self._values)

    def config_with_absl(self):
        """Does nothing: options are no flags of absl here."""

    def parse_flags_with_absl(self):
        """Does nothing: options are no flags of absl here."""

    @contextlib.contextmanager
    def during(self, name, value):
        """An option with this value, in a context of this thread."""
        _check(name, value)
        before = getattr(self._local, "values", None)
        self._local.values = {**(before or {}), name: value}
        is_x64 = name == "jax_enable_x64"
        if is_x64:
            self._enter_defaults()
        rank_checks[0] += _asks_for_ranks(name, value)
        try:
            yield
        finally:
            self._local.values = before
            rank_checks[0] -= _asks_for_ranks(name, value)
            if is_x64:
                self._enter_defaults()


def _check(name, value):
    only, fix = _ONLY.get(name, (None, ""))
    if fix and value != only and value is not None:
        refuse("jax.config", f"{name}={value!r} is not in plait's drop-in", fix)


config = Config()


def option(name, default):
    """A context manager of JAX for one option: enable_x64(True), numpy_dtype_promotion("strict")."""

    def within(value=default):
        return config.during(name, value)

    within.__name__ = name.removeprefix("jax_")
    within.__doc__ = f"A context in which the option {name} has this value."
    return within


enable_x64 = option("jax_enable_x64", True)
numpy_dtype_promotion = option("jax_numpy_dtype_promotion", "standard")
numpy_rank_promotion = option("jax_numpy_rank_promotion", "allow")
default_matmul_precision = option("jax_default_matmul_precision", None)
default_prng_impl = option("jax_default_prng_impl", "threefry2x32")
enable_custom_prng = option("jax_enable_custom_prng", True)
threefry_partitionable = option("jax_threefry_partitionable", True)
checking_leaks = check_tracer_leaks = option("jax_check_tracer_leaks", True)
enable_checks = option("jax_enable_checks", True)
log_compiles = option("jax_log_compiles", True)
debug_nans = option("jax_debug_nans", True)
debug_infs = option("jax_debug_infs", True)
debug_key_reuse = option("jax_debug_key_reuse", True)
legacy_prng_key = option("jax_legacy_prng_key", "allow")
softmax_custom_jvp = option("jax_softmax_custom_jvp", True)
explain_cache_misses = option("jax_explain_cache_misses", True)
transfer_guard = option("jax_transfer_guard", "allow")
transfer_guard_host_to_device = transfer_guard_device_to_host = transfer_guard
transfer_guard_device_to_device = transfer_guard
