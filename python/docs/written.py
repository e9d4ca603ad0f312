"""Examples of public functions, written: what python/docs/examples.py does not find by itself.

The last line is what the page shows the value of. Files that they write lie in a scratch folder.

SPDX-License-Identifier: Apache-2.0
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
    "plait.lax.ragged_dot_general": """numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())  # a product for each group
lax.ragged_dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), jnp.array([1, 2]), numbers)""",
    "plait.lax.rng_bit_generator": "lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (3,))",
    "plait.lax.RaggedDotDimensionNumbers": "lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))",
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
    "plait.apply_pass": """@plait.apply_pass
def cosine(jaxpr):
    def rule(builder, equation, *inputs):
        if equation.primitive == "sin":
            return builder.add("cos", *inputs)
    return plait.rebuild(jaxpr, rule)
cosine(jnp.sin)(0.0)""",
    "plait.bind": 'plait.bind("reduce", jnp.arange(4.0), kind="sum", axes=(0,))',
    "plait.clear_memory": "plait.clear_memory()",
    "plait.conformance": 'plait.conformance("interpreter", ["tanh"], programs=False).passed()',
    "plait.from_jax": """try:
    f = plait.from_jax(lambda x: 2 * x)
except ImportError:  # JAX is not installed
    f = lambda x: 2 * x
float(f(3.0))""",
    "plait.literal": 'plait.literal("2.0:f32")',
    "plait.pipeline": """halves = plait.rewrite(lambda x: x / 2, lambda x: x * 0.5)
logs = plait.rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x: x)
plait.pipeline(halves, logs)(lambda x: jnp.log(jnp.exp(x / 2)))(3.0)""",
    "plait.rebuild": """def rule(builder, equation, *inputs):
    if equation.primitive == "sin":
        return builder.add("cos", *inputs)
plait.rebuild(plait.make_jaxpr(jnp.sin)(1.0).jaxpr, rule)""",
    "plait.rewrite": """tidy = plait.rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x: x)
plait.make_jaxpr(tidy(lambda x: 2 * jnp.log(jnp.exp(x))))(1.0)""",
    "plait.set_cache_limit": """before = plait.set_cache_limit(1 << 20)
plait.set_cache_limit(before)""",
    "plait.set_progress": """seen = []
plait.set_progress(lambda what, done, total, seconds, is_last: seen.append(done), after=0.0)
plait.set_progress(None)""",
    "plait.staged": """@plait.staged("n ; x:f32[n]")
def doubled(n, x):
    return 2 * x
print(doubled)""",
    "plait.debug.breakpoint": """import io
answers, screen = io.StringIO("p x\\nc\\n"), io.StringIO()
def f(x):
    debug.breakpoint(stdin=answers, stdout=screen)
    return 2 * x
f(jnp.arange(2.0))
screen.getvalue().splitlines()[2]""",
    "plait.debug.callback": """def f(x):
    debug.callback(lambda v: print("x is", v), x)
    return x**2
plait.jit(f)(3.0)""",
    "plait.debug.lane_work": "debug.lane_work()",
    "plait.debug.print": """def f(x):
    debug.print("x = {}", x)
    return x**2
plait.jit(f)(3.0)""",
    "plait.lax.conv_general_shape_tuple": "lax.conv_general_shape_tuple((1, 5, 2), (3, 2, 4), (1,), 'VALID', ('NHC', 'HIO', 'NHC'))",
    "plait.lax.conv_transpose_shape_tuple": "lax.conv_transpose_shape_tuple((1, 5, 2), (3, 2, 4), (2,), 'SAME', ('NHC', 'HIO', 'NHC'))",
    "plait.lax.reduce_window_shape_tuple": "lax.reduce_window_shape_tuple((5,), (2,), (1,), [(0, 0)])",
    "plait.lax.gather": """numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
lax.gather(jnp.arange(6.0).reshape(3, 2), jnp.array([[2], [0]]), numbers, (1, 2))""",
    "plait.lax.index_take": "lax.index_take(jnp.arange(6.0).reshape(3, 2), [jnp.array([2, 0])], (0,))",
    "plait.lax.linear_solve": "lax.linear_solve(lambda x: 2 * x, jnp.ones(2), lambda f, b: b / 2, symmetric=True)",
    "plait.lax.scatter": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), jnp.array([5.0, 0.5]), numbers)""",
    "plait.lax.scatter_add": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter_add(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), jnp.array([5.0, 0.5]), numbers)""",
    "plait.lax.scatter_max": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter_max(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), jnp.array([5.0, 0.5]), numbers)""",
    "plait.lax.scatter_min": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter_min(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), jnp.array([5.0, 0.5]), numbers)""",
    "plait.lax.scatter_mul": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter_mul(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), jnp.array([5.0, 0.5]), numbers)""",
    "plait.lax.scatter_apply": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter_apply(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0], [2]]), lambda x: 10 * x, numbers, update_shape=(3,))""",
    "plait.lax.scatter_sub": """numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
lax.scatter_sub(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), jnp.array([5.0, 0.5]), numbers)""",
    "plait.nn.Conv1d": "nn.Conv1d(2, 4, 3, key=random.key(0))(jnp.ones((8, 2))).shape",
    "plait.nn.Conv2d": "nn.Conv2d(3, 4, 3, key=random.key(0))(jnp.ones((8, 8, 3))).shape",
    "plait.nn.Conv3d": "nn.Conv3d(1, 2, 3, key=random.key(0))(jnp.ones((4, 4, 4, 1))).shape",
    "plait.nn.combine": """arrays, rest = nn.partition({"w": jnp.ones(2), "steps": 3}, lambda leaf: not isinstance(leaf, int))
nn.combine(arrays, rest)""",
    "plait.nn.save_weights": """model = nn.Linear(3, 2, key=random.key(0))
nn.save_weights("model.npz", model)
np.load("model.npz").files""",
    "plait.nn.load_weights": """model = nn.Linear(3, 2, key=random.key(0))
nn.save_weights("model.npz", model)
nn.load_weights("model.npz", nn.Linear(3, 2, key=random.key(1))).bias""",
    "plait.nn.tree_at": """model = nn.Linear(3, 2, key=random.key(0))
nn.tree_at(lambda m: m.bias, model, jnp.ones(2)).bias""",
    "plait.nn.initializers.zeros": "nn.initializers.zeros(random.key(0), (3,))",
    "plait.nn.initializers.ones": "nn.initializers.ones(random.key(0), (3,))",
    "plait.numpy.fromfile": """np.arange(3, dtype=np.float32).tofile("x.bin")
jnp.fromfile("x.bin", dtype=np.float32)""",
    "plait.sparse.bcoo_add": "sparse.bcoo_add(sparse.eye(2), sparse.eye(2)).todense()",
    "plait.sparse.bcoo_dot_general": "sparse.bcoo_dot_general(sparse.eye(2), jnp.arange(2.0), dimension_numbers=(((1,), (0,)), ((), ())))",
    "plait.sparse.bcoo_multiply_dense": "sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([[2.0], [3.0]])).todense()",
    "plait.sparse.bcoo_sum_duplicates": """twice = sparse.BCOO((jnp.ones(2), jnp.array([[1], [1]])), shape=(3,))
sparse.bcoo_sum_duplicates(twice).data""",
    "plait.sparse.grad": """loss = lambda a, x: jnp.sum((a @ x) ** 2)
sparse.grad(loss)(sparse.eye(2), jnp.array([1.0, 2.0])).data""",
    "plait.sparse.value_and_grad": """loss = lambda a, x: jnp.sum((a @ x) ** 2)
sparse.value_and_grad(loss)(sparse.eye(2), jnp.array([1.0, 2.0]))[0]""",
    "plait.tree.register_pytree_node": """class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
tree.register_pytree_node(Point, lambda p: ((p.x, p.y), None), lambda data, children: Point(*children))
tree.map(lambda v: 2 * v, Point(1.0, 2.0)).y""",
    "plait.tree.register_pytree_node_class": """@tree.register_pytree_node_class
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def tree_flatten(self):
        return (self.x, self.y), None
    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(*children)
tree.leaves(Point(1.0, 2.0))""",
    "plait.tree.register_pytree_with_keys": """class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
tree.register_pytree_with_keys(
    Point,
    lambda p: ([(tree.GetAttrKey("x"), p.x), (tree.GetAttrKey("y"), p.y)], None),
    lambda data, children: Point(*children),
)
tree.map_with_path(lambda path, v: str(path[0]), Point(1.0, 2.0)).y""",
    "plait.tree.register_pytree_with_keys_class": """@tree.register_pytree_with_keys_class
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def tree_flatten_with_keys(self):
        return [(tree.GetAttrKey("x"), self.x), (tree.GetAttrKey("y"), self.y)], None
    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(*children)
tree.map_with_path(lambda path, v: str(path[0]), Point(1.0, 2.0)).y""",
    "plait.tree.register_static": """@tree.register_static
class Options(str):
    pass
tree.leaves((1.0, Options("fast")))""",
    "plait.mesh": 'plait.mesh((2, 2), ("data", "model"))',
    "plait.shard_map": """def centred(block):
    return block - lax.pmean(jnp.mean(block), "data")
places = plait.mesh((2,), ("data",))
f = plait.shard_map(centred, mesh=places, in_specs=plait.P("data"), out_specs=plait.P("data"))
f(jnp.arange(4.0))""",
    "plait.set_mesh": """with plait.set_mesh(plait.mesh((2,), ("data",))):
    total = plait.shard_map(
        lambda x: lax.psum(x, "data"), in_specs=plait.P("data"), out_specs=plait.P()
    )(jnp.arange(4.0))
total""",
    "plait.process_index": "plait.process_index()",
    "plait.process_count": "plait.process_count()",
    "plait.save_checkpoint": """plait.save_checkpoint("step.ckpt", {"w": jnp.ones(2), "step": 7}).wait()
plait.load_checkpoint("step.ckpt", {"w": jnp.zeros(2), "step": 0})""",
    "plait.load_checkpoint": """plait.save_checkpoint("step.ckpt", {"w": jnp.ones(2), "step": 7}).wait()
plait.load_checkpoint("step.ckpt", {"w": jnp.zeros(2), "step": 0})["step"]""",
    "plait.nn.initializers.delta_orthogonal": "nn.initializers.delta_orthogonal()(random.key(0), (3, 1, 2)).shape",
    "plait.numpy.issubdtype": "jnp.issubdtype(jnp.float32, jnp.floating)",
    "plait.random.key_data": "random.key_data(random.key(7))",
    "plait.random.wrap_key_data": "random.wrap_key_data(jnp.array([0, 7], dtype=jnp.uint32))",
    "plait.lax.pcast": "plait.vmap(lambda x: lax.pcast(x, 'i', to='varying'), axis_name='i')(jnp.arange(2.0))",
    "plait.lax.pvary": "plait.vmap(lambda x: lax.pvary(x, 'i'), axis_name='i')(jnp.arange(2.0))",
}
