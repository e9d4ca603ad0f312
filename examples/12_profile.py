"""Lesson 12: what a program does with its time, and what it looks like.

Prints the same as its twin, 12_profile.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile

import plait.numpy as jnp
from plait import draw, grad, named_scope, profile


def loss(params, x, y):
    with named_scope("hidden"):
        h = jnp.tanh(x @ params["w"])
    with named_scope("output"):
        return jnp.mean((h @ params["v"] - y) ** 2)


params = {"v": jnp.ones((256, 10)), "w": jnp.ones((64, 256))}
x, y = jnp.ones((512, 64)), jnp.ones((512, 10))

# profile compiles the program, runs it some times, and says what each of its steps took, against what the
# machine can do. Times go to lines, to named scopes, and to the transforms that made an equation.
p = profile(grad(loss), params, x, y)
data = json.loads(p.json())
print("it took time:", p.seconds > 0)
print("scopes:", ", ".join(sorted(p.by("scope"))))
print("made by transposing:", any("transpose" in made for made in p.by("transforms")))
products = [step for step in data["steps"] if "dot_general" in step["name"]]
print("products:", len(products))
print("their work:", sum(step["flops"] for step in products) / 1e6, "MFLOP")

# print(p) is a table. The rest goes into files: a flame graph and a trace for ui.perfetto.dev; a picture of the
# program, coloured by these times, whose boxes are the scopes, and fold.
folder = tempfile.mkdtemp()
p.flame(os.path.join(folder, "flame.html"))
p.trace(os.path.join(folder, "trace.json"))
draw(grad(loss), params, x, y, path=os.path.join(folder, "loss.html"), color="time", profile=p)
draw(grad(loss), params, x, y, path=os.path.join(folder, "loss.svg"))
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    print(name, "is written:", os.path.getsize(path) > 1000)
    os.remove(path)
os.rmdir(folder)
