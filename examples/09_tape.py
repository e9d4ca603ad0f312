"""Lesson 9: one autograd: the digits by a tape, as eager programs have it, and by jit(grad). Same bits.

Prints the same as its twin, 09_tape.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import numpy as np
from digits import load_digits

import plait
import plait.numpy as jnp
from plait import grad, jit, nn, random

EPOCHS, BATCH, RATE = 2, 64, 0.2


def init():
    keys = random.split(random.key(1))
    return [
        random.normal(keys[0], (64, 128)) * 0.2,
        jnp.zeros(128),
        random.normal(keys[1], (128, 10)) * 0.1,
        jnp.zeros(10),
    ]


def loss(weights, x, y):
    w, b, v, c = weights
    logits = nn.relu(x @ w + b) @ v + c
    return -jnp.mean(jnp.sum(nn.log_softmax(logits) * nn.one_hot(y, 10), axis=-1))


def same_bits(a, b):
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


# A tape records what an eager program does to its variables. backward goes back over it and adds to their
# gradients. What it applies are the rules of grad, so it is no second set of derivatives.
x = plait.variable(np.float32(3))
y = x * x
while y < 100:  # values are known: any Python goes
    y = y * x
y.backward()
print(f"x^5 = {float(y):.0f}, and its derivative is {float(x.grad):.0f}")

# The derivative can be recorded, and differentiated again.
x.grad = None
jnp.sin(x).backward(create_graph=True)
slope, x.grad = x.grad, None
slope.backward()
print(f"sin''(3) = {float(x.grad):.4f}, and -sin(3) = {-float(jnp.sin(x)):.4f}")

# Writing makes new values underneath, so it is differentiated like everything else.
x = plait.variable(np.array([1, 2, 3], "f"))
row = jnp.zeros((2, 3)) + x
view = row[1]
view[...] *= x
row[0, 0] = 5
jnp.sum(row * row).backward()
print("after writing:", x.grad.tolist())

# Now the same model twice. Variables are updated under no_grad; pure functions return new weights.
images, labels = load_digits()
variables, weights = [plait.variable(w) for w in init()], init()
gradient = jit(grad(loss))
equal = total = 0
for epoch in range(EPOCHS):
    for first in range(0, len(images) - BATCH + 1, BATCH):
        x, y = images[first : first + BATCH], labels[first : first + BATCH]
        value = loss(variables, x, y)
        value.backward()
        gradients = gradient(weights, x, y)
        total += 1
        equal += all(same_bits(a.grad, b) for a, b in zip(variables, gradients))
        with plait.no_grad():
            for variable in variables:
                variable -= RATE * variable.grad
                variable.grad = None
        weights = [w - RATE * g for w, g in zip(weights, gradients)]
    print(f"epoch {epoch}: loss {float(value):.4f}")
print(f"steps whose gradients are equal to the bit: {equal} of {total}")
print("weights equal to the bit:", sum(map(same_bits, variables, weights)), "of", len(weights))
