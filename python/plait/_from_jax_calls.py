"""What JAX's primitives that are no functions of arrays are in plait: random numbers, control flow, rules, calls to the host.

The second half of from_jax's table, whose first is _from_jax_rules.py.

SPDX-License-Identifier: Apache-2.0
"""

import importlib

import numpy as np

from plait import _plait, debug, lax, random
from plait._control import scan, switch, while_loop
from plait._custom import SymbolicZero, checkpoint, checkpoint_policies, custom_jvp, custom_vjp
from plait._from_jax import dtype_of, is_key, trace
from plait._from_jax_rules import plain, rule
from plait._host import host_call
from plait._implicit import custom_linear_solve
from plait._transforms import vmap

# --- Random numbers ------------------------------------------------------------------------------


def _over_keys(function, keys, *others):
    """function(key, ...) for each of an array of keys, with the rows of further arrays of these leading axes."""
    for _ in range(keys.ndim):
        function = vmap(function)
    return function(keys, *others)


def _check_threefry(step, aval):
    if str(aval.dtype) != "key<fry>":
        step.refuse(f"plait's random numbers are threefry's, and the keys are {aval.dtype}")


@rule("random_seed")
def _random_seed(step, seeds):
    _check_threefry(step, step.out_avals[0])
    return _over_keys(random.key, seeds)


@rule("random_wrap")
def _random_wrap(step, data):
    _check_threefry(step, step.out_avals[0])
    return random.wrap_key_data(data)


@rule("random_unwrap")
def _random_unwrap(step, keys):
    return random.key_data(keys)


@rule("random_clone")
def _random_clone(step, keys):
    return keys


@rule("random_split")
def _random_split(step, keys):
    shape = plain(step.params["shape"])
    return _over_keys(lambda key: random.split(key, shape), keys)


@rule("random_fold_in")
def _random_fold_in(step, keys, data):
    shape = step.shape()
    keys = keys if keys.shape == shape else lax.broadcast_in_dim(keys, shape, range(keys.ndim))
    data = data if data.shape == shape else lax.broadcast_in_dim(data, shape, range(data.ndim))
    return _over_keys(random.fold_in, keys, data)


@rule("random_bits")
def _random_bits(step, keys):
    shape, dtype = plain(step.params["shape"]), f"uint{step.params['bit_width']}"
    return _over_keys(lambda key: random.bits(key, shape, dtype), keys)


@rule("random_gamma")
def _random_gamma(step, keys, a):
    draw = random.loggamma if step.params["log_space"] else random.gamma
    return _over_keys(lambda key, a: draw(key, a), keys, a)


@rule("threefry2x32")
def _threefry2x32(step, key_0, key_1, x_0, x_1):
    """Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3."""
    shape = step.shape()

    def word(value):
        return lax.full(shape, value, "uint32")

    def whole(x):
        return lax.broadcast(x, shape) if x.ndim == 0 else x

    keys = [whole(key_0), whole(key_1)]
    keys.append(lax.bitwise_xor(lax.bitwise_xor(*keys), word(0x1BD11BDA)))
    x = [lax.add(whole(x_0), keys[0]), lax.add(whole(x_1), keys[1])]
    for block in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
            x[0] = lax.add(*x)
            left = lax.shift_left(x[1], word(turn))
            right = lax.shift_right_logical(x[1], word(32 - turn))
            x[1] = lax.bitwise_xor(lax.bitwise_or(left, right), x[0])
        x[0] = lax.add(x[0], keys[(block + 1) % 3])
        x[1] = lax.add(lax.add(x[1], keys[(block + 2) % 3]), word(block + 1))
    return x


# --- Control flow and functions ------------------------------------------------------------------


@rule("jit pjit closed_call core_call call core_closed_call custom_lin")
def _call(step, *values):
    name = next((name for name in ("jaxpr", "call_jaxpr") if name in step.params), None)
    if name is None:
        step.refuse("a linear function outside of its derivative")
    return step.program(name)(*values)


@rule("platform_index")
def _platform_index(step):
    for index, platforms in enumerate(step.params["platforms"]):
        if platforms is None or "cpu" in platforms:
            return index
    return step.refuse("there is no branch for CPUs")


@rule("cond")
def _cond(step, index, *operands):
    if isinstance(index, int):  # a branch of a platform: those of others are not run
        return step.program("branches", index)(*operands)
    branches = [
        lambda *operands, program=step.program("branches", i): tuple(program(*operands))
        for i in range(len(step.params["branches"]))
    ]
    return switch(index, branches, *operands)


@rule("while")
def _while(step, *values):
    p = step.params
    split = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    of_cond, of_body, carry = values[: split[0]], values[split[0] : split[1]], values[split[1] :]
    condition, body = step.program("cond_jaxpr"), step.program("body_jaxpr")
    lanes = p["cond_jaxpr"].out_avals[0].shape

    def goes_on(carry):
        (pred,) = condition(*of_cond, *carry)
        return lax.reduce_or(pred, range(len(lanes))) if lanes else pred

    def step_of(carry):
        found = body(*of_body, *carry)
        if not lanes:
            return tuple(found)
        # JAX's vmap of a loop goes on while one example does; the others keep what they have.
        (pred,) = condition(*of_cond, *carry)
        return tuple(
            lax.select(lax.broadcast_in_dim(pred, new.shape, range(pred.ndim)), new, old)
            for new, old in zip(found, carry)
        )

    return while_loop(goes_on, step_of, tuple(carry))


@rule("scan")
def _scan(step, *values):
    p = step.params
    split = p["num_consts"], p["num_consts"] + p["num_carry"]
    consts, carry, xs = values[: split[0]], values[split[0] : split[1]], values[split[1] :]
    body = step.program("jaxpr")

    def f(carry, x):
        results = body(*consts, *carry, *x)
        return tuple(results[: p["num_carry"]]), tuple(results[p["num_carry"] :])

    carry, ys = scan(f, tuple(carry), tuple(xs), p["length"], p["reverse"], p["unroll"])
    return (*carry, *ys)


def _policy(step):
    """The policy of plait that is JAX's; what is stored is no part of a result, and others store nothing."""
    policy = step.params.get("policy")
    theirs = step.jax.checkpoint_policies
    for name in "everything_saveable nothing_saveable dots_saveable checkpoint_dots".split():
        if policy is not None and policy is getattr(theirs, name, None):
            return getattr(checkpoint_policies, name)
    return None


@rule("remat2 remat checkpoint")
def _remat(step, *values):
    program = step.program("jaxpr")
    return checkpoint(lambda *values: tuple(program(*values)), policy=_policy(step))(*values)


@rule("custom_linear_solve")
def _custom_linear_solve(step, *values):
    counts, rest = step.params["const_lengths"], list(values)
    jaxprs = step.params["jaxprs"]
    functions = {}
    for name in ("matvec", "vecmat", "solve", "transpose_solve"):
        count = getattr(counts, name)
        consts, rest = rest[:count], rest[count:]
        if getattr(jaxprs, name) is not None:
            program = step.program("jaxprs", jaxprs._fields.index(name))
            functions[name] = lambda b, program=program, consts=consts: program(*consts, *b)
    transposed = functions.get("transpose_solve")
    return custom_linear_solve(
        functions["matvec"],
        rest,
        lambda matvec, b: functions["solve"](b),
        None if transposed is None else lambda vecmat, b: transposed(b),
    )


# --- Custom derivatives --------------------------------------------------------------------------


class _Derivative:
    """JAX's derivative of an equation with a rule of its own, as programs for operands that can vary."""

    def __init__(self, step):
        self.jax, self.step = step.jax, step
        core = importlib.import_module("jax.extend.core")
        equation = step.equation
        inputs = list(dict.fromkeys(atom for atom in equation.invars if not hasattr(atom, "val")))
        atoms = [None if hasattr(atom, "val") else inputs.index(atom) for atom in equation.invars]
        self.operands = [atoms.index(i) for i in range(len(inputs))]
        jaxpr = core.Jaxpr((), inputs, equation.outvars, [equation])
        self.function = core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, ()))
        self.types = [self.type_of(var.aval) for var in inputs]
        self.varying = [i for i, var in enumerate(inputs) if self.varies(var.aval)]
        self.out_varying = [i for i, aval in enumerate(step.out_avals) if self.varies(aval)]

    def type_of(self, aval):
        return self.jax.ShapeDtypeStruct(aval.shape, aval.dtype)

    def varies(self, aval):
        return not is_key(aval) and self.jax.dtypes.issubdtype(aval.dtype, np.inexact)

    def of_varying(self, values):
        """The function of the operands that vary."""

        def function(*varying):
            every = list(values)
            for place, value in zip(self.varying, varying):
                every[place] = value
            return self.function(*every)

        return function

    def traced(self, function, types):
        with self.jax.enable_x64(self.step.sizes.x64):
            return trace(self.jax, function, types, self.step.sizes)

    def tangents(self):
        def function(values, tangents):
            varying = [values[i] for i in self.varying]
            results, tangents = self.jax.jvp(self.of_varying(values), varying, tangents)
            return results, [tangents[i] for i in self.out_varying]

        return self.traced(function, (self.types, [self.types[i] for i in self.varying]))[0]

    def pullback(self):
        """The programs of fwd and bwd."""

        def fwd(values):
            return self.jax.vjp(self.of_varying(values), *(values[i] for i in self.varying))

        with self.jax.enable_x64(self.step.sizes.x64):
            _, shapes = self.jax.make_jaxpr(fwd, return_shape=True)(self.types)
        residuals, structure = self.jax.tree_util.tree_flatten(shapes[1])

        def bwd(residuals, cotangents):
            given = iter(cotangents)
            every = [
                next(given)
                if i in self.out_varying
                else np.zeros(aval.shape, self.jax.dtypes.float0)
                for i, aval in enumerate(self.step.out_avals)
            ]
            return self.jax.tree_util.tree_unflatten(structure, residuals)(every)

        forward, _ = self.traced(fwd, (self.types,))
        out_types = [self.type_of(self.step.out_avals[i]) for i in self.out_varying]
        backward, _ = self.traced(bwd, (residuals, out_types))
        return forward, backward


# With symbolic zeros, rules are traced where somebody differentiates, as in JAX: they may apply their own function.


def _whole(tangent):
    """A tangent, known to be zero or not, as an array."""
    if isinstance(tangent, SymbolicZero):
        return lax.full(tangent.shape, 0, str(tangent.dtype))
    return tangent


def _own_function(step):
    """The function that has the rule, with its name."""
    program = step.program("call_jaxpr")

    def function(*values):
        return tuple(program(*values))

    debug_info = getattr(step.params["call_jaxpr"].jaxpr, "debug_info", None)
    function.__name__ = getattr(debug_info, "func_name", "f") or "f"
    return function


def _derivative(step):
    return step.once("derivative", lambda: _Derivative(step))


@rule("custom_jvp_call")
def _custom_jvp_call(step, *values):
    f = custom_jvp(_own_function(step))

    def rule(primals, tangents):
        derivative = _derivative(step)
        run = step.once("tangents", derivative.tangents)
        operands = [primals[i] for i in derivative.operands]
        given = [_whole(tangents[derivative.operands[i]]) for i in derivative.varying]
        results = run(*operands, *given)
        count = len(step.out_avals)
        found = list(results[:count])  # of what does not vary, anything
        for place, tangent in zip(derivative.out_varying, results[count:]):
            found[place] = tangent
        return tuple(results[:count]), tuple(found)

    f.defjvp(rule, symbolic_zeros=True)
    return f(*values)


@rule("custom_vjp_call")
def _custom_vjp_call(step, *values):
    f = custom_vjp(_own_function(step))
    count = len(step.out_avals)

    def fwd(*values):
        derivative = _derivative(step)
        forward, _ = step.once("pullback", derivative.pullback)
        results = forward(*[values[i].value for i in derivative.operands])
        return tuple(results[:count]), results[count:]

    def bwd(residuals, cotangents):
        derivative = _derivative(step)
        _, backward = step.once("pullback", derivative.pullback)
        found = backward(*residuals, *[cotangents[i] for i in derivative.out_varying])
        every = [None] * len(values)
        for place, cotangent in zip(derivative.varying, found):
            every[derivative.operands[place]] = cotangent
        return tuple(every)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f(*values)


# --- Calls to the host ---------------------------------------------------------------------------


@rule("pure_callback io_callback")
def _callback(step, *values):
    p = step.params
    call = p["callback"]
    types = tuple(
        _plait.ShapeDtypeStruct(step.shape(i), dtype_of(aval))
        for i, aval in enumerate(step.out_avals)
    )

    def run(*values):
        return tuple(np.asarray(result) for result in call(*values))

    if step.name == "io_callback":
        return host_call(run, types, *values, ordered=True)
    batched = p["vmap_method"] in ("expand_dims", "broadcast_all")
    return host_call(run, types, *values, batched=batched)


def _host_arguments(step, values):
    """(args, kwargs) of a call that JAX took apart."""
    rest, static = iter(values), dict(step.params["static_args"])
    count = len(values) + len(static)
    every = [static[i] if i in static else next(rest) for i in range(count)]
    return step.jax.tree_util.tree_unflatten(step.params["in_tree"], every)


@rule("debug_print")
def _debug_print(step, *values):
    args, kwargs = _host_arguments(step, values)
    debug.print(step.params["fmt"], *args, **kwargs)
    return ()


@rule("debug_callback")
def _debug_callback(step, *values):
    debug.callback(step.params["callback"], *values)
    return ()
