"""An example of each public function, run when the pages are made: written here, or found from its parameters.

What is found is a call on the first arguments of CANDIDATES that the function takes and that give finite
numbers. So an entry never shows what does not run.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import inspect
import itertools
import linecache
import re
import textwrap

import numpy as np
import plait
import plait.numpy as jnp
from plait import (
    debug,
    dtypes,
    flatten_util,
    image,
    lax,
    nn,
    ops,
    optim,
    random,
    scipy,
    sparse,
    tree,
    tree_util,
)

NAMES = {
    "plait": plait, "jnp": jnp, "np": np, "lax": lax, "nn": nn, "ops": ops, "optim": optim, "random": random,
    "image": image, "scipy": scipy, "sparse": sparse, "tree": tree, "debug": debug, "dtypes": dtypes, "flatten_util": flatten_util,
    "tree_util": tree_util, "nan": float("nan"), "inf": float("inf"),
}  # fmt: skip
IMPORTS = """import numpy as np
import plait, plait.numpy as jnp
from plait import debug, dtypes, flatten_util, image, lax, nn, ops, optim, random, scipy, sparse
from plait import tree, tree_util
"""

WRITTEN = {
    "plait.grad": "plait.grad(lambda x: x**3)(2.0)",
    "plait.value_and_grad": "plait.value_and_grad(lambda x: x**3)(2.0)",
    "plait.jit": "plait.jit(lambda x: 2 * x + 1)(jnp.arange(3.0))",
    "plait.vmap": "plait.vmap(jnp.dot)(jnp.ones((2, 3)), jnp.ones((2, 3)))",
    "plait.mask": 'plait.vmap(plait.mask(jnp.sum, "n"))(jnp.ones((2, 3)), n=jnp.array([1, 3]))',
    "plait.jvp": "plait.jvp(jnp.sin, (0.0,), (1.0,))",
    "plait.vjp": "plait.vjp(jnp.sin, 0.0)[1](1.0)",
    "plait.linearize": "plait.linearize(jnp.square, 3.0)[1](1.0)",
    "plait.linear_transpose": "plait.linear_transpose(lambda x: 3 * x, 1.0)(2.0)",
    "plait.hessian": "plait.hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0]))",
    "plait.hvp": "plait.hvp(lambda x: jnp.sum(x**3), (jnp.array([1.0, 2.0]),), (jnp.ones(2),))",
    "plait.jacfwd": "plait.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))",
    "plait.jacrev": "plait.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))",
    "plait.jacobian": "plait.jacobian(lambda x: x**2)(jnp.array([1.0, 2.0]))",
    "plait.stop_gradient": "plait.grad(lambda x: x * plait.stop_gradient(x))(3.0)",
    "plait.make_jaxpr": 'plait.make_jaxpr(lambda x: jnp.sum(x * 2))("n")',
    "plait.eval_shape": "plait.eval_shape(jnp.dot, jnp.ones((2, 3)), jnp.ones(3))",
    "plait.checkpoint": "plait.grad(plait.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)",
    "plait.remat": "plait.grad(plait.remat(lambda x: jnp.sin(jnp.sin(x))))(0.0)",
    "plait.custom_jvp": """f = plait.custom_jvp(lambda x: jnp.abs(x))
f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))
plait.grad(f)(2.0)""",
    "plait.custom_vjp": """f = plait.custom_vjp(lambda x: jnp.abs(x))
f.defvjp(lambda x: (f(x), None), lambda residual, cotangent: (7 * cotangent,))
plait.grad(f)(2.0)""",
    "plait.autocast": "plait.autocast(lambda a, b: a @ b)(jnp.ones((2, 2)), jnp.ones((2, 2))).dtype",
    "plait.check": """try:
    plait.check(jnp.array(-1.0) > 0, "x has to be positive")
except plait.ValueError as error:
    print(str(error).splitlines()[0])""",
    "plait.first_nan": "print(str(plait.first_nan(jnp.log, -1.0)).splitlines()[0])",
    "plait.grad_check": "plait.grad_check(jnp.sin, (np.float64(0.5),))",
    "plait.device_put": 'plait.device_put(np.arange(3), "cpu:0")',
    "plait.device_get": "plait.device_get({'a': jnp.arange(3)})",
    "plait.devices": "plait.devices()[0]",
    "plait.asarray": "plait.asarray([1, 2, 3])",
    "plait.from_dlpack": "plait.from_dlpack(np.arange(3))",
    "plait.block_until_ready": "plait.block_until_ready(jnp.ones(2))",
    "plait.host_call": "plait.jit(lambda x: plait.host_call(np.sort, x, x))(jnp.array([3.0, 1.0]))",
    "plait.code": "print(plait.code(jnp.tanh, jnp.ones(3)))",
    "plait.diff": "print(plait.diff(jnp.sin, jnp.sin, jnp.ones(3)))",
    "plait.summary": "print(plait.summary(jnp.tanh, jnp.ones(3)))",
    "plait.explain": "print(plait.explain(jnp.tanh, jnp.ones(3)))",
    "plait.parse_jaxpr": 'plait.parse_jaxpr(str(plait.make_jaxpr(jnp.sin)("n")))',
    "plait.instantiate": 'plait.instantiate(plait.make_jaxpr(jnp.sin)("n"), n=3)',
    "plait.ragged": "plait.ragged([np.ones(2), np.ones(3)])",
    "plait.script": """@plait.script
def halve(x):
    while x > 1:
        x = x / 2
    return x
plait.jit(halve)(10.0)""",
    "plait.variable": """x = plait.variable(3.0)
(x * x).backward()
x.grad""",
    "plait.no_grad": """x = plait.variable(3.0)
with plait.no_grad():
    x += 1
print(x)""",
    "plait.named_scope": """with plait.named_scope("layer"):
    y = jnp.ones(2)
y""",
    "plait.walk": "[eqn.primitive for eqn in plait.walk(plait.make_jaxpr(jnp.tanh)(1.0))]",
    "plait.default_dtypes": """with plait.default_dtypes(float="float64"):
    print(jnp.zeros(2).dtype)""",
    "plait.disable_jit": """with plait.disable_jit():
    print(plait.jit(jnp.sin)(0.0))""",
    "plait.size": 'plait.size("n") * 2',
    "plait.ShapeDtypeStruct": "plait.ShapeDtypeStruct((2, 3), jnp.float32)",
    "plait.rules": 'print("\\n".join(str(plait.rules("tanh")).splitlines()[:3]))',
    "plait.save": """plait.save("f.plait", jnp.sin, jnp.ones(3))
plait.load("f.plait").sin(jnp.zeros(3))""",
    "plait.load": """plait.save("f.plait", jnp.sin, jnp.ones(3))
plait.load("f.plait")""",
    "plait.default_device": """with plait.default_device("cpu:0"):
    print(jnp.ones(2).device)""",
    "plait.memory_stats": "sorted(plait.memory_stats())",
    "plait.numpy.take_along_axis": "jnp.take_along_axis(jnp.array([[3, 1, 2]]), jnp.array([[1, 2, 0]]), 1)",
    "plait.numpy.put_along_axis": "jnp.put_along_axis(jnp.array([[3, 1, 2]]), jnp.array([[0]]), 9, 1, inplace=False)",
    "plait.numpy.ravel_multi_index": "jnp.ravel_multi_index((jnp.array([1]), jnp.array([2])), (2, 3))",
    "plait.numpy.choose": "jnp.choose(jnp.array([0, 1]), [jnp.zeros(2), jnp.ones(2)])",
    "plait.numpy.unpackbits": "jnp.unpackbits(jnp.array([5], dtype=jnp.uint8))",
    "plait.numpy.ix_": "jnp.ix_(jnp.array([0, 1]), jnp.array([2, 3]))",
    "plait.numpy.finfo": "jnp.finfo(jnp.float32).eps",
    "plait.numpy.iinfo": "jnp.iinfo(jnp.int8).max",
    "plait.numpy.result_type": "jnp.result_type(jnp.int32, jnp.float32)",
    "plait.numpy.histogramdd": "jnp.histogramdd(jnp.array([[0.0, 1.0], [1.0, 0.0]]), bins=2)[0]",
    "plait.numpy.from_dlpack": "jnp.from_dlpack(np.arange(3))",
    "plait.dtypes.finfo": "dtypes.finfo(jnp.float32).eps",
    "plait.dtypes.iinfo": "dtypes.iinfo(jnp.int8).max",
    "plait.dtypes.isdtype": 'dtypes.isdtype(jnp.float32, "real floating")',
    "plait.dtypes.issubdtype": "dtypes.issubdtype(jnp.float32, np.floating)",
    "plait.dtypes.promote_types": "dtypes.promote_types(jnp.int32, jnp.float32)",
    "plait.dtypes.result_type": "dtypes.result_type(jnp.ones(2), 1)",
    "plait.dtypes.canonicalize_dtype": 'dtypes.canonicalize_dtype("float32")',
    "plait.flatten_util.ravel_pytree": "flatten_util.ravel_pytree({'a': jnp.ones(2), 'b': 3.0})[0]",
    "plait.lax.custom_linear_solve": "lax.custom_linear_solve(lambda x: 2 * x, jnp.ones(2), lambda f, b: b / 2, symmetric=True)",
    "plait.lax.select_n": "lax.select_n(jnp.array([True, False]), jnp.zeros(2), jnp.ones(2))",
    "plait.lax.conv_transpose": "lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), 'VALID', dimension_numbers=('NHC', 'HIO', 'NHC')).shape",
    "plait.lax.psum_scatter": "plait.vmap(lambda x: lax.psum_scatter(x, 'i'), axis_name='i')(jnp.ones((2, 2)))",
    "plait.lax.all_to_all": "plait.vmap(lambda x: lax.all_to_all(x, 'i', 0, 0), axis_name='i')(jnp.arange(4).reshape(2, 2))",
    "plait.lax.ragged_dot": "lax.ragged_dot(jnp.ones((3, 2)), jnp.ones((2, 2, 2)), jnp.array([1, 2]))",
    "plait.lax.linalg.tridiagonal_solve": "lax.linalg.tridiagonal_solve(jnp.array([0.0, 1.0]), jnp.array([2.0, 2.0]), jnp.array([1.0, 0.0]), jnp.ones((2, 1)))",
    "plait.nn.dot_product_attention": "nn.dot_product_attention(jnp.ones((1, 2, 1, 4)), jnp.ones((1, 2, 1, 4)), jnp.ones((1, 2, 1, 4))).shape",
    "plait.optim.adamw": """params = {"w": jnp.ones(2)}
updates, state = optim.adamw(params, optim.adam_init(params), params)
updates""",
    "plait.scipy.linalg.block_diag": "scipy.linalg.block_diag(jnp.ones((1, 2)), jnp.eye(2))",
    "plait.scipy.linalg.cho_solve": "scipy.linalg.cho_solve(scipy.linalg.cho_factor(jnp.eye(2) * 4), jnp.ones(2))",
    "plait.scipy.linalg.lu_solve": "scipy.linalg.lu_solve(scipy.linalg.lu_factor(jnp.eye(2) * 4), jnp.ones(2))",
    "plait.scipy.stats.dirichlet.logpdf": "scipy.stats.dirichlet.logpdf(jnp.array([0.25, 0.75]), jnp.array([1.0, 2.0]))",
    "plait.tree.map_with_path": "tree.map_with_path(lambda path, x: (str(path[0]), x), {'a': 1})",
    "plait.tree.unflatten": "tree.unflatten(tree.structure((0, 0)), [1, 2])",
    "plait.lax.scan": "lax.scan(lambda carry, x: (carry + x, carry), 0.0, jnp.arange(4.0))",
    "plait.lax.while_loop": "lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3.0)",
    "plait.lax.fori_loop": "lax.fori_loop(0, 5, lambda i, x: x + i, 0)",
    "plait.lax.cond": "lax.cond(True, jnp.sin, jnp.cos, 0.0)",
    "plait.lax.switch": "lax.switch(1, [jnp.sin, jnp.cos], 0.0)",
    "plait.lax.map": "lax.map(lambda x: x**2, jnp.arange(3.0))",
    "plait.lax.associative_scan": "lax.associative_scan(jnp.add, jnp.arange(4.0))",
    "plait.lax.select": "lax.select(jnp.array([True, False]), jnp.ones(2), jnp.zeros(2))",
    "plait.lax.reduce": "lax.reduce(jnp.arange(4.0), 0.0, lax.add, (0,))",
    "plait.lax.reduce_window": "lax.reduce_window(jnp.arange(5.0), 0.0, lax.add, (2,), (1,), 'VALID')",
    "plait.lax.psum": "plait.vmap(lambda x: lax.psum(x, 'i'), axis_name='i')(jnp.arange(3.0))",
    "plait.lax.pmean": "plait.vmap(lambda x: lax.pmean(x, 'i'), axis_name='i')(jnp.arange(3.0))",
    "plait.lax.pmax": "plait.vmap(lambda x: lax.pmax(x, 'i'), axis_name='i')(jnp.arange(3.0))",
    "plait.lax.pmin": "plait.vmap(lambda x: lax.pmin(x, 'i'), axis_name='i')(jnp.arange(3.0))",
    "plait.lax.axis_index": "plait.vmap(lambda x: x + lax.axis_index('i'), axis_name='i')(jnp.zeros(3))",
    "plait.lax.axis_size": "plait.vmap(lambda x: x * lax.axis_size('i'), axis_name='i')(jnp.ones(3))",
    "plait.lax.all_gather": "plait.vmap(lambda x: lax.all_gather(x, 'i'), axis_name='i')(jnp.arange(2.0))",
    "plait.lax.ppermute": "plait.vmap(lambda x: lax.ppermute(x, 'i', [(0, 1), (1, 0)]), axis_name='i')(jnp.arange(2.0))",
    "plait.lax.dynamic_slice": "lax.dynamic_slice(jnp.arange(5), (1,), (3,))",
    "plait.lax.dynamic_update_slice": "lax.dynamic_update_slice(jnp.zeros(5), jnp.ones(2), (1,))",
    "plait.lax.slice": "lax.slice(jnp.arange(6), (1,), (4,))",
    "plait.lax.pad": "lax.pad(jnp.ones(2), 0.0, [(1, 2, 0)])",
    "plait.lax.broadcast_in_dim": "lax.broadcast_in_dim(jnp.arange(2), (2, 3), (0,))",
    "plait.lax.iota": "lax.iota(jnp.int32, 4)",
    "plait.lax.conv": "lax.conv(jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 2, 2)), (1, 1), 'VALID')",
    "plait.lax.conv_general_dilated": "lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), 'VALID')",
    "plait.lax.dot_general": "lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ())))",
    "plait.lax.custom_root": "lax.custom_root(lambda x: x**2 - 2, 1.0, lambda f, x: jnp.sqrt(2.0), lambda g, y: y / g(1.0))",
    "plait.numpy.einsum": 'jnp.einsum("ij,j->i", jnp.ones((2, 3)), jnp.arange(3.0))',
    "plait.numpy.vectorize": "jnp.vectorize(lambda x, y: x + y)(jnp.arange(3), 10)",
    "plait.numpy.where": "jnp.where(jnp.array([True, False]), 1.0, 2.0)",
    "plait.numpy.concatenate": "jnp.concatenate([jnp.zeros(2), jnp.ones(2)])",
    "plait.numpy.arange": "jnp.arange(5)",
    "plait.numpy.linspace": "jnp.linspace(0, 1, 5)",
    "plait.numpy.reshape": "jnp.reshape(jnp.arange(6), (2, 3))",
    "plait.numpy.meshgrid": "jnp.meshgrid(jnp.arange(2), jnp.arange(3))",
    "plait.numpy.interp": "jnp.interp(0.5, jnp.array([0.0, 1.0]), jnp.array([10.0, 20.0]))",
    "plait.numpy.apply_along_axis": "jnp.apply_along_axis(jnp.max, 1, jnp.arange(6).reshape(2, 3))",
    "plait.numpy.piecewise": "jnp.piecewise(jnp.arange(4.0), [jnp.arange(4.0) < 2], [lambda x: -x, lambda x: x])",
    "plait.numpy.select": "jnp.select([jnp.array([True, False])], [jnp.ones(2)], 5.0)",
    "plait.numpy.pad": "jnp.pad(jnp.ones(2), 1)",
    "plait.numpy.squeeze": "jnp.squeeze(jnp.ones((1, 3)))",
    "plait.numpy.fromfunction": "jnp.fromfunction(lambda i, j: i + j, (2, 2))",
    "plait.ops.segment_sum": "ops.segment_sum(jnp.arange(4.0), jnp.array([0, 0, 1, 1]), num_segments=2)",
    "plait.image.resize": "image.resize(jnp.arange(4.0).reshape(2, 2), (2, 4), 'nearest')",
    "plait.optim.adam": """params = {"w": jnp.ones(2)}
state = optim.adam_init(params)
updates, state = optim.adam(params, state)
updates""",
    "plait.optim.constant_schedule": "optim.constant_schedule(0.1)(5)",
    "plait.optim.linear_schedule": "optim.linear_schedule(1.0, 0.0, 10)(5)",
    "plait.optim.polynomial_schedule": "optim.polynomial_schedule(1.0, 0.0, 2, 10)(5)",
    "plait.optim.exponential_decay": "optim.exponential_decay(1.0, 10, 0.5)(5)",
    "plait.optim.cosine_decay_schedule": "optim.cosine_decay_schedule(1.0, 10)(5)",
    "plait.optim.piecewise_constant_schedule": "optim.piecewise_constant_schedule(1.0, {3: 0.1})(5)",
    "plait.optim.warmup_constant_schedule": "optim.warmup_constant_schedule(0.0, 1.0, 10)(5)",
    "plait.optim.warmup_cosine_decay_schedule": "optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 10)(5)",
    "plait.optim.join_schedules": """first, second = optim.constant_schedule(1.0), optim.constant_schedule(0.1)
optim.join_schedules([first, second], [3])(5)""",
    "plait.optim.scale_loss": "optim.scale_loss(2.0, optim.loss_scale_init())",
    "plait.optim.unscale": "optim.unscale({'w': jnp.ones(2)}, optim.loss_scale_init())[0]",
    "plait.info": 'plait.info()["version"]',
    "plait.profile": "plait.profile(jnp.tanh, jnp.ones(3), runs=3).seconds < 1",
    "plait.draw": "plait.draw(jnp.tanh, jnp.ones(3))[:15]",
    "plait.no_host_calls": """with plait.no_host_calls():
    print(plait.jit(jnp.sin)(0.0))""",
    "plait.unscripted": """f = plait.unscripted(lambda x: x + 1)
f(1)""",
    "plait.numpy.save": """jnp.save("x.npy", jnp.arange(3))
jnp.load("x.npy")""",
    "plait.numpy.load": """jnp.save("x.npy", jnp.arange(3))
jnp.load("x.npy")""",
    "plait.numpy.savez": """jnp.savez("x.npz", a=jnp.arange(3))
jnp.load("x.npz")["a"]""",
    "plait.numpy.put": "jnp.put(jnp.zeros(3), jnp.array([1]), 5.0, inplace=False)",
    "plait.numpy.place": "jnp.place(jnp.zeros(3), jnp.array([True, False, True]), jnp.array([1.0, 2.0]), inplace=False)",
    "plait.numpy.fill_diagonal": "jnp.fill_diagonal(jnp.zeros((2, 2)), 5.0, inplace=False)",
    "plait.numpy.apply_over_axes": "jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])",
    "plait.numpy.mask_indices": "jnp.mask_indices(2, jnp.triu)",
    "plait.numpy.einsum_path": 'jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 2)))[0]',
    "plait.numpy.fromstring": 'jnp.fromstring("1 2 3", sep=" ")',
    "plait.numpy.frompyfunc": "jnp.frompyfunc(lambda x, y: x + y, 2, 1)(jnp.arange(3), 1)",
    "plait.numpy.linalg.tensorinv": "jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4), ind=2).shape",
    "plait.lax.fft": 'lax.fft(jnp.arange(4) + 0j, "fft", (4,))',
    "plait.lax.pshuffle": "plait.vmap(lambda x: lax.pshuffle(x, 'i', [1, 0]), axis_name='i')(jnp.arange(2))",
    "plait.lax.pswapaxes": "plait.vmap(lambda x: lax.pswapaxes(x, 'i', 0), axis_name='i')(jnp.arange(4).reshape(2, 2))",
    "plait.lax.conv_with_general_padding": "lax.conv_with_general_padding(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), [(1, 0)], None, None)",
    "plait.lax.conv_general_dilated_patches": "lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), 'VALID')",
    "plait.lax.conv_general_dilated_local": "lax.conv_general_dilated_local(jnp.ones((1, 1, 3)), jnp.ones((1, 2, 2)), (1,), 'VALID', (2,))",
    "plait.lax.conv_shape_tuple": "lax.conv_shape_tuple((1, 1, 5), (1, 1, 2), (1,), 'VALID')",
    "plait.lax.padtype_to_pads": "lax.padtype_to_pads((5,), (2,), (1,), 'SAME')",
    "plait.lax.platform_dependent": "lax.platform_dependent(jnp.ones(2), default=jnp.sin)",
    "plait.nn.Linear": "nn.Linear(3, 2, key=random.key(0))(jnp.ones(3)).shape",
    "plait.image.scale_and_translate": "image.scale_and_translate(jnp.ones((2, 2)), (2, 2), (0, 1), jnp.ones(2), jnp.zeros(2), 'linear')",
    "plait.scipy.optimize.minimize": "scipy.optimize.minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method='BFGS').x",
    "plait.scipy.interpolate.interpn": "scipy.interpolate.interpn((jnp.arange(3.0),), jnp.arange(3.0) ** 2, jnp.array([[0.5], [1.5]]))",
    "plait.sparse.eye": "sparse.eye(2).todense()",
    "plait.sparse.bcoo_fromdense": "sparse.bcoo_fromdense(jnp.eye(2)).todense()",
    "plait.sparse.bcoo_todense": "sparse.bcoo_todense(sparse.bcoo_fromdense(jnp.eye(2)))",
    "plait.sparse.bcoo_transpose": "sparse.bcoo_transpose(sparse.bcoo_fromdense(jnp.ones((1, 2))), permutation=(1, 0)).shape",
    "plait.sparse.bcoo_reduce_sum": "sparse.bcoo_reduce_sum(sparse.bcoo_fromdense(jnp.eye(2)), axes=(0,)).todense()",
    "plait.tree.tree_map_with_path": "tree.tree_map_with_path(lambda path, x: (str(path[0]), x), {'a': 1})",
    "plait.tree.tree_unflatten": "tree.tree_unflatten(tree.structure((0, 0)), [1, 2])",
    "plait.tree.tree_transpose": "tree.tree_transpose(tree.structure([0, 0]), tree.structure((0, 0)), [(1, 2), (3, 4)])",
    "plait.tree.treedef_children": "tree.treedef_children(tree.structure((1, [2, 3])))",
    "plait.tree.treedef_is_leaf": "tree.treedef_is_leaf(tree.structure(1))",
    "plait.tree.treedef_tuple": "tree.treedef_tuple((tree.structure(1), tree.structure([1, 2])))",
    "plait.tree_util.treedef_children": "tree_util.treedef_children(tree.structure((1, [2, 3])))",
    "plait.tree_util.treedef_is_leaf": "tree_util.treedef_is_leaf(tree.structure(1))",
    "plait.tree_util.treedef_tuple": "tree_util.treedef_tuple((tree.structure(1), tree.structure([1, 2])))",
    "plait.tree_util.register_dataclass": """import dataclasses
@tree_util.register_dataclass
@dataclasses.dataclass
class Point:
    x: float
    y: float
tree.map(lambda v: 2 * v, Point(1.0, 2.0))""",
    "plait.tree.map": "tree.map(lambda x: x + 1, {'a': 1, 'b': (2, 3)})",
    "plait.tree.reduce": "tree.reduce(lambda a, b: a + b, {'a': 1, 'b': (2, 3)})",
    "plait.tree.transpose": "tree.transpose(tree.structure([0, 0]), tree.structure((0, 0)), [(1, 2), (3, 4)])",
}
# Functions that write, wait, or change what other examples see.
NOT_CALLED = re.compile(
    r"save|load|file|breakpoint|set_|clear|register|pdb|callback|print|bind$|conformance|profile|draw|fuzz|info$"
)
# By the name of a parameter, then by its kind in the documentation.
BY_NAME = {
    "key": ["random.key(0)"], "shape": ["(2, 3)"], "newshape": ["(-1,)"], "num_segments": ["2"],
    "segment_ids": ["jnp.array([0, 0, 1])"], "p": ["0.5", "3", "jnp.array([0.25, 0.25, 0.5])"],
    "repeats": ["2"], "reps": ["2"], "num_classes": ["3"], "axis": ["0"], "axes": ["(0, 1)"], "k": ["1"],
    "n": ["2"], "N": ["3"], "M": ["3"], "num": ["2"], "minval": ["0"], "maxval": ["10"], "dtype": ["jnp.float32"],
    "fun": ["jnp.sin"], "f": ["jnp.sin"], "func": ["jnp.sin"], "tree": ["{'a': 1, 'b': (2, 3)}"],
    "pytree": ["{'a': jnp.ones(2), 'b': jnp.zeros(2)}"], "is_leaf": ["None"], "x1": ["jnp.array([1, 2])", "jnp.array([1.0, 2.0])"],
    "params": ["{'w': jnp.ones(2)}"], "grads": ["{'w': jnp.ones(2)}"], "source": ["0"], "destination": ["1"],
}  # fmt: skip
ARRAYS = [
    "jnp.array([0.25, 0.5, 0.75])", "jnp.array([[2.0, 1.0], [1.0, 3.0]])", "jnp.array([1, 2, 3])", "0.5", "2", "1.5",
    "jnp.array([True, False])", "jnp.ones((1, 4, 4, 1))", "jnp.ones((2, 2, 2))", "jnp.array([1.0 + 2.0j])", "jnp.ones((2, 3))",
]  # fmt: skip
CANDIDATES = {
    "sequence of array": ["[jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])]"],
    "int": ["1", "2", "0", "3"],
    "int or sequence of int": ["0", "2", "(0, 1)", "(2, 2)", "(1,)"],
    "float": ["0.5", "1.0"],
    "bool": ["True"],
    "dtype": ["jnp.float32"],
    "tree": ["{'w': jnp.ones(2)}"],
    "str": ['"VALID"', '"i"'],
}
LONGEST = 700  # characters of a result
NUMBERS = itertools.count(1)


def prefix_of(module):
    if module == "plait":
        return module
    return re.sub(r"^plait\.(numpy$|numpy(?=\.))", "jnp", module).removeprefix("plait.")


def run(code):
    """The example as a console shows it, and its result."""
    code = textwrap.dedent(code)
    name = f"<example {next(NUMBERS)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)  # for plait.script
    body = ast.parse(code).body
    names, printed = dict(NAMES), []
    names["print"] = lambda *values: printed.append(" ".join(map(str, values)))
    result = None
    last = [body.pop()] if isinstance(body[-1], ast.Expr) else []
    exec(compile(ast.Module(body, []), name, "exec"), names)
    for node in last:
        result = eval(compile(ast.Expression(node.value), name, "eval"), names)
        if result is not None:
            printed.append(repr(result))
    shown, lines = [], code.splitlines()
    for node in body + last:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        block = lines[first - 1 : node.end_lineno]
        shown += [("... " if index else ">>> ") + line for index, line in enumerate(block)]
        shown += ["..."] if len(block) > 1 else []
    return "\n".join(shown + printed), result


def is_good(result):
    """Whether it shows something: numbers that are finite, of which there are some."""
    if result is None or callable(result):
        return False
    leaves = plait.tree.leaves(result)
    arrays = [np.asarray(leaf) for leaf in leaves if plait._plait.is_array_like(leaf)]
    numbers = [a for a in arrays if a.dtype.kind in "fc" or a.dtype.kind == "V"]
    return all(np.isfinite(a.astype(complex)).all() for a in numbers) and all(
        a.size for a in arrays
    )


def kinds_of(function):
    return dict(re.findall(r"^  (\w+): (.+)$", function.__doc__ or "", re.M))


def needed(function):
    """The parameters that a call has to give, or None where that is not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        p
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]


def with_call(path):
    """What gives a function is shown with a call of that."""
    name = path.rpartition(".")[2]
    argument = "0.5" if name == "constant" else ""
    if name == "variance_scaling":
        argument = '1.0, "fan_in", "normal"'
    return run(f"nn.initializers.{name}({argument})(random.key(0), (2, 3))")[0]


def found(path, function):
    """A call on arguments that the function takes."""
    module, _, name = path.rpartition(".")
    parameters = needed(function)
    if NOT_CALLED.search(name) or parameters is None or len(parameters) > 6:
        return None
    kinds = kinds_of(function)
    if not kinds and not parameters and not (function.__doc__ or "").count("("):
        return None
    choices = []
    for each in parameters:
        kind = kinds.get(each.name, "array").removesuffix(" or None")
        choices.append(CANDIDATES.get(kind, []) + BY_NAME.get(each.name, []) or ARRAYS)
        if each.name in BY_NAME:
            choices[-1] = BY_NAME[each.name] + CANDIDATES.get(kind, ARRAYS)
    arrays = [index for index, choice in enumerate(choices) if choice is ARRAYS]
    tried = 0
    # Equal arrays first: most functions of several take those.
    for value in ARRAYS if arrays else [None]:
        others = [[value] if index in arrays else choice for index, choice in enumerate(choices)]
        for words in itertools.product(*others):
            example = attempt(module, name, parameters, words)
            tried += 1
            if example or tried > 40:
                break
        if example:
            return example
    for words in itertools.islice(itertools.product(*choices), 300):
        example = attempt(module, name, parameters, words)
        if example:
            return example
    return None


def attempt(module, name, parameters, words):
    shown = [
        f"{each.name}={word}" if each.kind == each.KEYWORD_ONLY else word
        for each, word in zip(parameters, words)
    ]
    code = f"{prefix_of(module)}.{name}({', '.join(shown)})"
    try:
        text, result = run(code)
    except Exception:
        return None
    return text if is_good(result) and len(text) <= LONGEST else None


def example_of(path, function):
    """The example of plait.numpy.sin, given by its path, as a console shows it; or None."""
    if path in WRITTEN:
        return run(WRITTEN[path])[0]
    twin = path.replace("plait.tree_util.tree_", "plait.tree.")
    if twin in WRITTEN:
        return run(
            re.sub(
                r"\btree\.(?=" + twin.rpartition(".")[2] + r"\()", "tree_util.tree_", WRITTEN[twin]
            )
        )[0]
    if path.startswith("plait.nn.initializers.") and NOT_CALLED.search(path) is None:
        try:
            return with_call(path)
        except Exception:
            return None
    if inspect.isclass(function) or path.count(".") == 1:
        return None
    module, _, name = path.rpartition(".")
    if module == "plait.optim" and hasattr(optim, f"{name}_init"):
        code = f"""params = {{"w": jnp.ones(2)}}
updates, state = optim.{name}(params, optim.{name}_init(params), params)
updates"""
        return run(code)[0]
    return found(path, function)
