"""Programs of JAX over several devices, in the drop-in: the CPU counts as eight, as XLA_FLAGS or an option says.

SPDX-License-Identifier: Apache-2.0
"""

import json

import pytest
from processes import run
from test_compat_jax import DOOR

BEFORE = """
import functools, json
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

def refused(f, *args):
    try: return f(*args)
    except Exception as error: return f"{type(error).__name__}: {error}"
mesh = jax.make_mesh((4, 2), ("x", "y"))
x = np.arange(32.0, dtype=np.float32).reshape(8, 4)
same = lambda v: v
"""

# A program, what it is asked, and the answer.
PROGRAMS = {
    "devices": ("", "[jax.device_count(), jax.local_device_count(), len({d.id for d in jax.devices()})]", [8, 8, 8]),
    "blocks": ("f = jax.shard_map(lambda v: v.sum()[None, None], mesh=mesh, in_specs=P('x', 'y'), out_specs=P('x', 'y'))", "f(x).tolist()", [[10.0, 18.0], [42.0, 50.0], [74.0, 82.0], [106.0, 114.0]]),
    "decorator": ("@jax.jit\n@jax.shard_map(mesh=mesh, in_specs=(P('x'), P()), out_specs=P())\ndef f(v, w): return jax.lax.psum((v * w).sum(), 'x')", "[float(f(x, 2.0)), float(jax.grad(f, 1)(x, 2.0))]", [992.0, 496.0]),
    "context": ("with jax.set_mesh(mesh): y = jax.shard_map(lambda v: jax.lax.psum(v, 'x'), in_specs=P('x'), out_specs=P())(x)", "y.shape", [2, 4]),
    "static": ("f = jax.shard_map(lambda v, n: v * len(n), mesh=mesh, in_specs=(P('x'), None), out_specs=P('x'))", "float(f(x, 'abc').sum())", 1488.0),
    "partial": ("f = jax.shard_map(lambda v: jax.lax.psum(v, 'x'), mesh=mesh, in_specs=P('x'), out_specs=P(), axis_names={'x'})", "f(x).shape", [2, 4]),
    "nested": ("g = jax.shard_map(lambda v: jax.lax.psum(v, 'y'), in_specs=P(None, 'y'), out_specs=P(), axis_names={'y'}, mesh=None)\nf = jax.shard_map(lambda v: g(v) + jax.lax.axis_index('x'), mesh=mesh, in_specs=P('x'), out_specs=P('x'), axis_names={'x'})", "f(x).shape", [8, 2]),
    "unchecked": ("f = jax.shard_map(lambda v: v.sum(), mesh=mesh, in_specs=P('x'), out_specs=P(), check_vma=False)", "[float(f(x)), float(jax.grad(f)(x)[0, 0])]", [28.0, 0.25]),
    "smap": ("with jax.set_mesh(mesh): y = jax.smap(lambda v: jax.lax.psum(v, 'y'), in_axes=1, out_axes=None, axis_name='y')(x)", "y.shape", [8, 2]),
    "pmap": ("f = jax.pmap(lambda v: jax.lax.psum(v, 'i') - v, axis_name='i')", "[float(f(x)[0, 0]), 'only 8' in refused(jax.pmap(same), np.ones(9))]", [112.0, True]),
    "shardings": ("s = NamedSharding(mesh, P('x', 'y')); y = jax.device_put(x, s)", "[s.shard_shape(x.shape), len(s.device_set), y.tolist() == x.tolist(), s.is_fully_replicated, str(s.devices_indices_map(x.shape)[jax.devices()[3]])]", [[2, 2], 8, True, False, "(slice(2, 4, None), slice(2, 4, None))"]),
    "unreduced": ("", "'summed only later' in refused(jax.shard_map(same, mesh=mesh, in_specs=P('x'), out_specs=P(unreduced={'x'})), x)", True),
    "no in_specs": ("", "'in_specs' in refused(jax.shard_map(same, mesh=mesh, out_specs=P('x')), x)", True),
    "twice": ("m = Mesh(np.array(jax.devices()[:1] * 2), 'i')", "'twice' in refused(jax.shard_map(same, mesh=m, in_specs=P('i'), out_specs=P('i')), x)", True),
    "pcast": ("f = jax.shard_map(lambda v: jax.lax.pcast(v, 'x', to='varying'), mesh=mesh, in_specs=P(), out_specs=P('x'))", "[f(x).shape, 'already' in refused(jax.shard_map(lambda v: jax.lax.pcast(v, 'x', to='varying'), mesh=mesh, in_specs=P('x'), out_specs=P('x')), x)]", [[32, 4], True]),
}  # fmt: skip

DOORS = {
    "XLA_FLAGS": "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'",
    "the option": "import jax; jax.config.update('jax_num_cpu_devices', 8)",
}


@pytest.fixture(scope="module", params=DOORS)
def answers(request):
    parts = [DOORS[request.param], BEFORE, "answers = {}"]
    for name, (program, question, _) in PROGRAMS.items():
        body = f"{program}\nanswers[{name!r}] = {question}"
        parts.append(
            f"try: exec({body!r})\nexcept Exception as error: answers[{name!r}] = repr(error)"
        )
    parts.append("print(json.dumps(answers))")
    return json.loads(run(*DOOR, "-c", "\n".join(parts)).splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_over_several_devices(answers, name):
    assert answers[name] == PROGRAMS[name][2]
