"""plait.compat.jax: its doors, and JAX's idioms under it, in processes of their own, since it changes plait's Array.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import subprocess
import sys

import numpy as np
import plait
import pytest
from plait import compat
from processes import run

DOOR = (sys.executable, "-m", "plait.jax")
x = np.arange(6, dtype=np.float32).reshape(2, 3)

# Statements that may set y, an expression, and its value by NumPy or by hand.
IDIOMS = {
    "asarray": ("", "jnp.asarray([1.0, 2.0]) * 2", [2.0, 4.0]),
    "narrow": ("", "jnp.array(np.arange(3.0)).dtype == jnp.float32", True),
    "default_int": ("", "(jnp.arange(3).dtype == jnp.int32, jnp.zeros(2, float).dtype.name)", [True, "float32"]),
    "x64": ("jax.config.update('jax_enable_x64', True); y = jnp.zeros(2).dtype.name; jax.config.update('jax_enable_x64', False)", "y", "float64"),
    "scalar_type": ("", "jnp.float32(1.5)", 1.5),
    "is_array": ("", "isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)", True),
    "is_tracer": ("y = []; jax.jit(lambda v: y.append(isinstance(v, jax.core.Tracer) and isinstance(v, jax.Array)) or v)(x)", "y[0]", True),
    "device": ("", "[jax.devices()[0].platform, jax.default_backend(), jax.device_count()]", ["cpu", "cpu", 1]),
    "at_set": ("", "x.at[0, 1].set(9.0)", np.array([[0, 9, 2], [3, 4, 5]])),
    "at_drop": ("", "x.at[jnp.array([0, 7]), 0].add(1.0)", np.array([[1, 1, 2], [3, 4, 5]])),
    "clip_read": ("", "[x[0, jnp.array(9)], x[5, 0]]", [2.0, 3.0]),
    "iterate": ("", "[row.sum() for row in x]", [3.0, 12.0]),
    "immutable": ("try: x[0] = 1\nexcept TypeError: y = 1", "y", 1),
    "split_list": ("", "type(jnp.split(x, 3, axis=1)) is list", True),
    "take_fill": ("", "jnp.isnan(jnp.take(x[0], jnp.array([1, 5])))", [False, True]),
    "grad": ("", "jax.grad(lambda v: jnp.sum(v**2))(x)", 2 * x),
    "has_aux": ("", "jax.value_and_grad(lambda v: (v**2, v + 1), has_aux=True)(3.0)", [[9.0, 4.0], 6.0]),
    "argnums": ("", "jax.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 5.0)", [5.0, 2.0]),
    "jvp": ("", "jax.jvp(jnp.sin, (0.5,), (2.0,))", [np.sin(0.5), 2 * np.cos(0.5)]),
    "vjp": ("y = jax.vjp(lambda v: v**3, 2.0)[1]", "y(1.0)[0]", 12.0),
    "linearize": ("", "jax.linearize(lambda v: v**2, 3.0)[1](np.float64(1.0))", 6.0),
    "hessian": ("", "jax.hessian(lambda v: v[0] ** 2 * v[1])(jnp.array([2.0, 3.0]))", np.array([[6.0, 4.0], [4.0, 0.0]])),
    "jacobians": ("f = lambda v: v**2", "jax.jacfwd(f)(x[0]) + jax.jacrev(f)(x[0])", np.diag(4 * x[0])),
    "vmap_axes": ("", "jax.vmap(lambda a, b: a + b, in_axes=(1, None), out_axes=1)(x, 1.0)", x + 1),
    "vmap_list": ("", "jax.vmap(lambda a, b: a @ b, in_axes=[0, 0])(x, x)", (x * x).sum(1)),
    "static": ("f = jax.jit(lambda v, n: v * n, static_argnums=1)", "f(x, 3)", 3 * x),
    "static_name": ("f = jax.jit(lambda v, mode: v if mode == 'a' else -v, static_argnames='mode')", "f(x, mode='b')", -x),
    "lower": ("", "jax.jit(lambda v: v + 1).lower(x).compile()(x)", x + 1),
    "eval_shape": ("", "jax.eval_shape(lambda v: v @ v.T, jax.ShapeDtypeStruct((4, 2), jnp.float32)).shape", [4, 4]),
    "cond_old": ("", "jax.lax.cond(True, 1.0, lambda a: a + 1, 5.0, lambda a: a)", 2.0),
    "scan": ("", "jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, x[0])", [3.0, np.array([0.0, 0.0, 2.0])]),
    "while": ("", "jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, 1)", 16),
    "fori": ("", "jax.lax.fori_loop(0, 4, lambda i, v: v + i, 0)", 6),
    "switch": ("", "jax.lax.switch(1, [lambda v: v, lambda v: -v], 2.0)", -2.0),
    "associative": ("", "jax.lax.associative_scan(jnp.add, x[1])", np.cumsum(x[1])),
    "round": ("v = jnp.array([-2.5, -0.5, 0.49999997, 0.5, 2.5])", "[jax.lax.round(v), jax.lax.round(v, jax.lax.RoundingMethod.TO_NEAREST_EVEN)]", [[-3.0, -1.0, 0.0, 1.0, 3.0], [-2.0, 0.0, 0.0, 0.0, 2.0]]),
    "fft_type": ("", "jnp.real(jax.lax.fft(x + 0j, jax.lax.FftType.FFT, (3,)))", np.fft.fft(x).real),
    "composite": ("", "jax.lax.composite(lambda v, *, by: v * by, 'my.scale')(x, by=2.0)", 2 * x),
    "log1mexp": ("", "[jax.nn.log1mexp(jnp.array([0.1, 50.0])), jax.grad(jax.nn.log1mexp)(0.3)]", [[np.log1p(-np.exp(-0.1)), -np.exp(-50.0)], 1 / np.expm1(0.3)]),
    "filters": ("", "jax.scipy.signal.convolve(x[0], x[1], mode='same')", np.convolve(x[0], x[1], "same")),
    "warp": ("", "jax.scipy.ndimage.map_coordinates(x, [jnp.array([0.5]), jnp.array([1.5])], order=1)", [3.0]),
    "minimize": ("r = jax.scipy.optimize.minimize(lambda v, c: jnp.sum((v - c) ** 2), jnp.zeros(2), args=(3.0,), method='BFGS')", "[r.x, bool(r.success)]", [[3.0, 3.0], True]),
    "krylov": ("from jax.scipy.sparse.linalg import cg, gmres; m = jnp.array([[4.0, 1.0], [1.0, 3.0]])", "[cg(m, jnp.array([5.0, 4.0]))[0], gmres(lambda v: m @ v, jnp.array([5.0, 4.0]))[0]]", [[1.0, 1.0], [1.0, 1.0]]),
    "codes": ("from jax.scipy.cluster.vq import vq", "vq(x, x[::-1])[0]", [1, 0]),
    "custom_jvp": ("f = jax.custom_jvp(lambda v: v * v); f.defjvp(lambda p, t: (f(*p), 7.0 * t[0]))", "jax.grad(f)(2.0)", 7.0),
    "defjvps": ("f = jax.custom_jvp(lambda a, b: a * b); f.defjvps(lambda t, o, a, b: 3 * t, None)", "jax.grad(f, (0, 1))(2.0, 4.0)", [3.0, 0.0]),
    "custom_vjp": ("f = jax.custom_vjp(lambda n, v: v * n, nondiff_argnums=(0,)); f.defvjp(lambda n, v: (v * n, v), lambda n, r, g: (g * r * n,))", "jax.grad(lambda v: f(2, v))(5.0)", 10.0),
    "symbolic": ("f = jax.custom_jvp(lambda a, b: a * b); f.defjvp(lambda p, t: (f(*p), type(t[1]) is jax.custom_derivatives.SymbolicZero and 5.0 * t[0]), symbolic_zeros=True)", "jax.grad(f)(2.0, 4.0)", 5.0),
    "custom_gradient": ("f = jax.custom_gradient(lambda v: (v * v, lambda g: 3.0 * g))", "jax.grad(f)(2.0)", 3.0),
    "checkpoint": ("", "jax.grad(jax.checkpoint(lambda v: jnp.sin(v) ** 2))(0.3)", np.sin(0.6)),
    "pure_callback": ("", "jax.jit(lambda v: jax.pure_callback(lambda a: np.sort(a)[::-1].copy(), jax.ShapeDtypeStruct((3,), v.dtype), v))(x[0])", x[0][::-1]),
    "primitive": ("from jax.extend.core import Primitive; from jax.interpreters import ad, batching, mlir; p = Primitive('times'); p.def_impl(lambda v, k: v * k); p.def_abstract_eval(lambda a, k: a); ad.primitive_jvps[p] = lambda vs, ts, k: (p.bind(*vs, k=k), p.bind(*ts, k=k)); batching.primitive_batchers[p] = lambda vs, ds, k: (p.bind(*vs, k=k), ds[0])", "jax.jit(jax.vmap(jax.grad(lambda v: p.bind(v * v, k=3.0))))(x[0])", 6 * x[0]),
    "custom_vmap": ("f = jax.custom_batching.custom_vmap(lambda v: v + 1); f.def_vmap(lambda n, b, v: (v + 10, True))", "[f(1.0), jax.vmap(f)(x[0])]", [2.0, x[0] + 10]),
    "key_dtype": ("k = jax.random.key(3, dtype=jax.random.key_dtype())", "[k.dtype == jax.random.key_dtype('threefry2x32'), jax.random.key_impl(k), jax.random.key_data(k)]", [True, "threefry2x32", [0, 3]]),
    "key_path": ("match jax.tree_util.DictKey('a'):\n case jax.tree_util.DictKey(name): y = name", "y", "a"),
    "transpose_mismatch": ("s = jax.tree.structure\ntry: jax.tree.transpose(s({'a': 1, 'b': 2}), s([1, 2, 3]), {'a': [1, 2], 'b': [3, 4]})\nexcept TypeError as e: y = str(e)[:8]", "y", "Mismatch"),
    "checkify": ("from jax.experimental import checkify; f = lambda v: checkify.check(v > 0, 'is {}', v) or 1 / v; e = lambda g, *a: jax.jit(checkify.checkify(g))(*a)[0]", "[e(f, -2.0).get(), e(f, 2.0).get()]", ["is -2.0 (`check` failed)", None]),
    "checkify_scan": ("from jax.experimental import checkify; f = lambda v: checkify.check(v > 0, 'is {}', v) or 1 / v; g = checkify.checkify(lambda v: jax.lax.scan(lambda c, a: (c + f(a), c), 0.0, v)[0])", "[jax.jit(g)(jnp.array([1.0, -3.0, -4.0]))[0].get(), jax.jit(g)(jnp.array([1.0, 2.0]))[1]]", ["is -3.0 (`check` failed)", 1.5]),
    "checkify_branch": ("from jax.experimental import checkify; f = lambda v: checkify.check(v > 0, 'is {}', v) or v; g = checkify.checkify(lambda v: jax.lax.cond(v > 5, lambda a: f(a - 10), lambda a: jax.lax.while_loop(lambda b: b < 3, lambda b: f(b) + 2, a), v))", "[g(v)[0].get() for v in (1.0, -4.0, 6.0, 20.0)]", [None, *["is -4.0 (`check` failed)"] * 2, None]),
    "checkify_vmap": ("from jax.experimental import checkify; g = checkify.checkify(lambda v: checkify.check(v > 0, 'is {}', v)); v = jnp.array([1.0, -2.0])", "[jax.vmap(g)(v)[0].get(), checkify.checkify(jax.vmap(lambda a: checkify.check(a > 0, 'is {}', a)))(v)[0].get()]", ["at mapped index 1: is -2.0 (`check` failed)", "is -2.0 (`check` failed)"]),
    "checkify_again": ("from jax.experimental import checkify; f = lambda v: checkify.check(v > 0, 'is {}', v)\ndef g(v): checkify.check_error(jax.jit(checkify.checkify(f))(v)[0])\ntry: g(-1.0)\nexcept checkify.JaxRuntimeError as e: y = str(e)", "[y, checkify.checkify(g)(-1.0)[0].get()]", ["is -1.0 (`check` failed)"] * 2),
    "checkify_automatic": ("from jax.experimental import checkify as c; f = jax.jit(lambda v, i, d: v[i] / d); e = lambda k, *a: c.checkify(f, errors=k)(jnp.ones(2), *a)[0].get()", "[e(c.div_checks, 1, 0), e(c.index_checks, 9, 2)[:13], e(c.index_checks, 1, 2), e(c.nan_checks, 1, jnp.nan)]", ["division by zero", "out-of-bounds", None, "nan generated by primitive: div."]),
    "key_parts": ("k = jax.random.key(-1)", "[k._impl.name, k._impl.key_shape, k._base_array, hasattr(x, '_impl')]", ["threefry2x32", [2], [0, 2**32 - 1], False]),
    "up_to_words": ("s = jax.tree.structure\ny = []\nfor a, b in (((1, 2), (3,)), ({'a': [1]}, {'a': (1,)}), ({'a': 1}, {'b': 1}), ([(1,)], [7])):\n try: s(a).flatten_up_to(b)\n except ValueError as e: y.append(str(e).partition(';')[0])", "y", ["Tuple arity mismatch: 1 != 2", "Expected list, got (1,).", "Dict key mismatch", "Expected tuple, got 7."]),
    "tree_static": ("import dataclasses\n@jax.tree_util.register_dataclass\n@dataclasses.dataclass\nclass D:\n v: int\n n: int = jax.tree.static(default=3, metadata={'k': 1})", "jax.tree.leaves(D(2))", [2]),
    "jaxpr_narrow": ("j = jax.make_jaxpr(lambda a, b, n: a * b * n, static_argnums=2)(2.0, np.ones(2), 3).jaxpr", "[[str(v.aval.dtype) for v in j.invars], j.eqns[0].primitive.name]", [["float32", "float32"], "mul"]),
    "key_fill": ("k = jax.random.key(3)", "[jax.random.key_data(jnp.full((2,), k)), jax.random.key_data(jnp.full_like(jnp.ones(1), k))]", [[[0, 3]] * 2, [[0, 3]]]),
    "seed_offset": ("jax.config.update('jax_random_seed_offset', 4); y = jax.random.PRNGKey(3); jax.config.update('jax_random_seed_offset', 0)", "[y, jax.random.PRNGKey(3)]", [[0, 7], [0, 3]]),
    "tree": ("", "jax.tree.map(lambda a, b: a + b, {'a': 1, 'b': [2]}, {'a': 3, 'b': [4]})", {"a": 4, "b": [6]}),
    "dataclass_leaf": ("import dataclasses; D = dataclasses.make_dataclass('D', ['v'])", "len(jax.tree.leaves([D([1, 2]), 3]))", 2),
    "register": ("import dataclasses; D = jax.tree_util.register_dataclass(dataclasses.make_dataclass('D', ['v', 'n']), ['v'], ['n'])", "jax.jit(lambda d: D(d.v * d.n, d.n))(D(x, 3)).v", 3 * x),
    "partial": ("", "jax.jit(lambda f, v: f(v))(jax.tree_util.Partial(jnp.add, 1.0), x)", x + 1),
    "ravel": ("y, back = jax.flatten_util.ravel_pytree({'a': x, 'b': 1.0})", "[y, back(y * 2)['a']]", [[*range(6), 1.0], 2 * x]),
    "segment_sum": ("", "jax.ops.segment_sum(x[1], jnp.array([0, 2, -1]), 2)", [3.0, 0.0]),
    "random": ("", "jax.random.normal(jax.random.PRNGKey(0), (2,))", [1.622642, 2.0252647]),
    "one_hot": ("", "jax.nn.one_hot(jnp.array([1, 0]), 2)", np.array([[0.0, 1.0], [1.0, 0.0]])),
    "disable_jit": ("y = []\nwith jax.disable_jit(): jax.jit(lambda v: y.append(float(v)))(2.0)", "y", [2.0]),
    "named_scope": ("with jax.named_scope('a'), jax.ensure_compile_time_eval(): y = x + 1", "y", x + 1),
    "monitoring": ("y = []; jax.monitoring.register_event_listener(lambda e, **k: y.append(e)); jax.monitoring.record_event('/e')", "y", ["/e"]),
    "linear_util": ("from jax.extend import linear_util as lu; from jax.api_util import flatten_fun_nokwargs; t = jax.tree.structure((0,)); f, out = flatten_fun_nokwargs(lu.wrap_init(lambda a: {'b': a}), t)", "[f.call_wrapped(1), len(jax.tree.leaves(out().unflatten([5])))]", [[1], 1]),
    "weak_number": ("half = jnp.ones(1, jnp.bfloat16)", "[(jnp.asarray(1.5) * half).dtype.name, (half * 0.9 ** jnp.arange(1)).dtype.name, jax.jit(lambda a, v: a * v)(1.5, half).dtype.name, jnp.sqrt(2.0).dtype.name, jnp.where(True, 1.0, 2.0).weak_type]", ["bfloat16", "bfloat16", "bfloat16", "float32", True]),
    "weak_grad": ("", "[jax.grad(lambda v: v**3 * jnp.asarray(2.0))(2.0), jax.grad(jax.grad(jnp.cosh))(jnp.asarray(0.0)).dtype.name]", [24.0, "float32"]),
    "unmapped": ("", "jax.vmap(lambda a, how, n: a.reshape(n, 1) if how == 'tall' else a, (0, None, None))(x, 'tall', 3)", x[:, :, None]),
    "pmap_static": ("", "jax.pmap(lambda v, n: v * n, static_broadcasted_argnums=1)(x[:1], 3)", 3 * x[:1]),
    "pmap_of_one": ("", "jax.pmap(lambda v: v + jax.lax.psum(v, 'i'), 'i')(x[:1])", 2 * x[:1]),
    "shard_map_enters": ("from jax.sharding import PartitionSpec as P; mesh = jax.make_mesh((1,), ('i',)); f = jax.shard_map(lambda v: jax.lax.psum(v, 'i') * (v.aval.vma == {'i'}), mesh=mesh, in_specs=P('i'), out_specs=P())", "[str(f(np.ones(2)).dtype), f(np.ones(2))]", ["float32", [1.0, 1.0]]),
    "shard_map": ("from jax.sharding import PartitionSpec as P; mesh = jax.make_mesh((1, 1), ('i', 'j')); f = jax.shard_map(lambda v, w: (jax.lax.psum(v * w['a'], ('i', 'j')), jax.lax.axis_index('j') + jax.lax.all_gather(v, 'i', tiled=True)), mesh=mesh, in_specs=(P('i', 'j'), {'a': P()}), out_specs=(P(), P('i', 'j')))", "[f(x, {'a': 2.0}), jax.grad(lambda v: jnp.sum(f(v, {'a': v[0, 2]})[0]))(x)]", [[2 * x, x], [[2.0, 2.0, 17.0], [2.0, 2.0, 2.0]]]),
    "sharded_step": ("from jax.sharding import NamedSharding, PartitionSpec as P; mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ('data',)); at = NamedSharding(mesh, P('data', None)); y = jax.device_put(x, at); f = jax.jit(lambda v: jax.lax.with_sharding_constraint(v * 2, at), in_shardings=at)\nwith jax.set_mesh(mesh): z = jax.shard_map(lambda v: v + jax.lax.axis_size('data'), in_specs=P('data'), out_specs=P('data'))(x)", "[f(y), z, jax.make_array_from_callback((2, 3), at, lambda i: x[i]), at.shard_shape((2, 3)), len(y.addressable_shards), jax.sharding.get_mesh().empty]", [2 * x, x + 1, x, [2, 3], 1, True]),
    "specs": ("from jax.sharding import PartitionSpec as P; mesh = jax.make_mesh((1,), ('i',)); y = []\nfor spec in (P('k'), P(None, None, 'i')):\n  try: jax.shard_map(lambda v: v, mesh=mesh, in_specs=spec, out_specs=P())(x)\n  except ValueError as error: y.append(str(error))\ntry: jax.shard_map(lambda v: v, in_specs=P(), out_specs=P())(x)\nexcept ValueError as error: y.append(str(error))", "['refers to' in y[0], 'too long' in y[1], 'context mesh' in y[2], repr(P('i', None))]", [True, True, True, "P('i', None)"]),
    "fori_float": ("", "jax.lax.fori_loop(0.0, 2.5, lambda i, v: v + i, 1.0)", 4.0),
    "complex_order": ("y = jnp.array([1 + 2j, 3 - 1j, 3 + 1j])", "[complex(jnp.max(y)) == 3 + 1j, complex(jnp.minimum(y, 1 + 1j)[0]) == 1 + 1j]", [True, True]),
    "jaxpr": ("y = jax.make_jaxpr(lambda v: jnp.sin(v) * 2.0)(x[0])", "[y.eqns[0].primitive.name, y.jaxpr.invars[0].aval.shape, y.jaxpr.outvars[0] is y.eqns[-1].outvars[0], y.eqns[-1].invars[1].val, *jax.core.eval_jaxpr(y.jaxpr, y.consts, x[0])]", ["sin", [3], True, 2.0, 2 * np.sin(x[0])]),
    "ranks": ("try:\n  with jax.numpy_rank_promotion('raise'): x + x[0]\nexcept ValueError as error: y = 'rank_promotion' in str(error)", "[y, x[0] + x]", [True, x[0] + x]),
    "check": ("from jax.experimental import checkify\ntry: checkify.check(jnp.array(False), 'a {b} {}', 1, b=jnp.array(2))\nexcept ValueError as error: y = 'a 2 1' in str(error)", "y", True),
    "unbound": ("try: jax.lax.psum(x, 'i')\nexcept NameError as error: y = 'unbound axis name' in str(error)", "y", True),
    "host_primitive": ("from jax.extend.core import Primitive; p = Primitive('item'); p.def_impl(lambda v: np.float32(v.item() + 1)); p.def_abstract_eval(lambda a: a)", "jax.jit(lambda v: p.bind(v) * 2)(jnp.float32(3.0))", 8.0),
    "rule_constant": ("two = jnp.array(2, jnp.int32); f = jax.custom_jvp(lambda v: v * v); f.defjvp(lambda p, t: (f(*p), jnp.where(two == 2, 7.0, 0.0) * t[0]))", "jax.jit(jax.grad(f))(2.0)", 7.0),
    "polynomials": ("", "jnp.polyval(x, 2.0)", x[0] * 2 + x[1]),
    "ravel_wide": ("y, back = jax.flatten_util.ravel_pytree(np.arange(3.0))", "[y.dtype.name, back(y * 2)]", ["float32", [0.0, 2.0, 4.0]]),
    "unconstrained": ("U = jax.sharding.PartitionSpec.UNCONSTRAINED", "[isinstance(U, str), repr(jax.P('a', U))]", [False, "P('a', UNCONSTRAINED)"]),
    "triangular": ("from jax.scipy.linalg import solve_triangular", "solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([2.0, 5.0]), trans=True)", [1.0, 1.0]),
    "tolerances": ("", "jnp.isclose(x[0], x[0] + 0.5, atol=jnp.array([1.0, 0.1, 0.6]))", [True, False, True]),
    "composed": ("", "[jax.lax.atanh_p.name, jax.lax.square_p.bind(x[0])]", ["atanh", [0.0, 1.0, 4.0]]),
    "bools": ("", "[jnp.asarray(np.True_), jnp.array(True).dtype.name, jnp.asarray(np.float64(2.0)).dtype.name]", [True, "bool", "float32"]),
    "segments_of_one": ("", "jax.ops.segment_max(2.0, jnp.array([0, 2]), 3)[::2]", [2.0, 2.0]),
    "own_shapes": ("S = type('S', (), {'__len__': lambda s: 2, '__getitem__': lambda s, i: (4, 3)[i]})", "[jnp.broadcast_to(x[0], S()).shape, jnp.shape(None)]", [[4, 3], []]),
    "root": ("f = jax.jit(lambda c: jax.lax.custom_root(lambda v: v**3 - c, 1.0, lambda f, v: jnp.cbrt(c), lambda g, t: t / g(1.0)))", "[f(8.0), jax.grad(f)(8.0)]", [2.0, 1 / 12]),
    "captured": ("a, b = jnp.array(2.0), jnp.asarray(3)", "len(jax.make_jaxpr(lambda v: v * a + b)(1.0).consts)", 2),
    "stored": ("y = []; jax.jit(lambda v: y.append(v) or v)(x)", "len(y)", 1),
    "containers": ("from jax._src.tree_util import _registry; D = jax.tree_util.register_dataclass(type('D', (), {}), [], [])", "[D in _registry, dict in _registry, str in _registry]", [True, True, False]),
    "leaf_paths": ("y = jax.tree.leaves_with_path({'a': [1], 'b': [2, 3]}, is_leaf=lambda p, v: jax.tree_util.keystr(p) == \"['b']\", is_leaf_takes_path=True)", "[v for _, v in y]", [1, [2, 3]]),
    "initializer_key": ("", "jax.nn.initializers.constant(2.0)(object(), (2,))", [2.0, 2.0]),
    "version": ("import importlib.metadata as m", "[jax.__version__, m.version('jax'), m.version('jaxlib')]", ["0.10.2"] * 3),
}  # fmt: skip

# What the drop-in refuses, and a word of the error.
REFUSED = {
    "pmap": ("jax.pmap(lambda v: v)(x)", "jax.pmap"),
    "psum": ("jax.lax.psum(x, 'i')", "is unbound here"),
    "absent": ("jax.numpy.no_such", "has not got it"),
    "stablehlo": ("jax.export.export(lambda v: v)", "StableHLO"),
    "pallas": ("jax.experimental.pallas.pallas_call(1)", "Pallas"),
    "hijax": (
        "__import__('jax.experimental.hijax').experimental.hijax.HiPrimitive('new').bind(x)",
        "users' own types",
    ),
    "mlir": ("jax.interpreters.mlir.ir_constant(1)", "MLIR"),
    "mesh": (
        "jax.shard_map(lambda v: v, mesh=jax.sharding.Mesh(np.array(jax.devices() * 2), 'i'), in_specs=jax.P('i'), out_specs=jax.P('i'))(x)",
        "there twice",
    ),
    "nan_checks": ("jax.config.update('jax_debug_nans', True)", "first_nan"),
}

CHILD = """
import json, sys
import numpy as np, jax, jax.numpy as jnp
import jax.export, jax.flatten_util, jax.experimental.pallas, jax.interpreters.mlir

def plain(value):
    if isinstance(value, dict): return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)): return [plain(v) for v in value]
    return np.asarray(value).tolist() if isinstance(value, (jax.Array, np.generic)) else value

results = {}
for name, (before, expression) in json.load(sys.stdin).items():
    scope = {"jax": jax, "jnp": jnp, "np": np, "x": jnp.arange(6.0).reshape(2, 3)}
    try:
        exec(before, scope)
        results[name] = {"value": plain(eval(expression, scope))}
    except Exception as error:
        results[name] = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    script = tmp_path_factory.mktemp("jax") / "child.py"
    script.write_text(CHILD)
    asked = {name: (before, expression) for name, (before, expression, _) in IDIOMS.items()}
    asked |= {name: ("", expression) for name, (expression, _) in REFUSED.items()}
    return json.loads(run(*DOOR, script, input=json.dumps(asked)))


def check(value, expected):
    if isinstance(expected, np.ndarray):
        expected = expected.tolist()
    if isinstance(expected, dict):
        assert value.keys() == expected.keys()
        value, expected = list(value.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected):
            check(one, other)
    elif isinstance(expected, float):
        np.testing.assert_allclose(value, expected, rtol=2e-6)
    else:
        assert value == expected


@pytest.mark.parametrize("name", IDIOMS)
def test_idiom(results, name):
    assert "error" not in results[name], results[name]["error"]
    check(results[name]["value"], IDIOMS[name][2])


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_named(results, name):
    assert REFUSED[name][1] in results[name]["error"]


def test_every_module_of_the_folder_can_be_imported():
    code = (
        "import importlib, pkgutil, jax, jaxlib\n"
        "for m in pkgutil.walk_packages(jax.__path__, 'jax.'): importlib.import_module(m.name)\n"
    )
    run(*DOOR, "-c", code)


def test_script_module_and_children_see_the_folder_and_their_arguments(tmp_path):
    (tmp_path / "helper.py").write_text(
        "import jax, sys; print('helper', *sys.argv[1:], flush=True)"
    )
    text = "import helper, os, subprocess, sys\nprint(__name__, sys.argv[1:], flush=True)\n"
    text += (
        "subprocess.run([sys.executable, '-c', 'import jax; print(jax.__file__)'], check=True)\n"
    )
    (tmp_path / "program.py").write_text(text)
    lines = run(*DOOR, tmp_path / "program.py", "-a", "b").splitlines()
    assert lines[0] == "helper -a b" and lines[1] == "__main__ ['-a', 'b']"
    assert lines[2].startswith(compat.jax_path())
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            [os.path.abspath(os.path.dirname(os.path.dirname(plait.__file__))), str(tmp_path)]
        )
    }
    assert run(*DOOR, "-m", "helper", "c", env=environment, cwd=tmp_path) == "helper c\n"


def test_path_and_usage():
    assert run(*DOOR, "--path").strip() == compat.jax_path()
    assert {"jax", "jaxlib", "jax-0.10.2.dist-info"} <= set(os.listdir(compat.jax_path()))
    done = subprocess.run(DOOR, capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr


def test_the_folder_is_on_no_path_until_it_is_asked_for():
    code = (
        "import plait, sys, importlib.util as u; assert not any('compat' in p for p in sys.path)\n"
    )
    code += "plait.compat.install_as_jax(); import jax; assert jax.Array is plait.Array"
    run(sys.executable, "-c", code.replace("import plait,", "import plait, plait.compat,"))


def test_install_refuses_another_jax(tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("__version__ = 'other'")
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import plait, plait.compat as compat
for _ in range(2):
    try: compat.install_as_jax()
    except plait.UserError as error: assert "replace=True" in str(error) and {str(tmp_path)!r} in str(error)
    else: raise SystemExit("not refused")
    import jax; assert jax.__version__ == "other"
compat.install_as_jax(replace=True)
import jax; assert jax.__version__ == "0.10.2"
"""
    run(sys.executable, "-c", code)
