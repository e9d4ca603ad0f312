"""What the cost model says of the programs of programs.py and of their gradients, beside what they take:
`./dev run python tests/bench/predictions.py [NAME…]`.

Counts the steps of each program that are loop programs; a step that runs many times counts each time.
Measured is the least time of many calls, of which a profile says their share.
"""

# SPDX-License-Identifier: Apache-2.0

import json
import math
import os
import sys
import time

os.environ["PLAIT_WAIT"] = "1"

import plait
import plait.numpy as jnp
import programs
from plait import lax
from rows_users import loss_of

ENOUGH = 0.4  # seconds of calls


def cases(words):
    """Names, functions and their arguments."""
    for name, program in programs.PROGRAMS.items():
        chosen = [("value", program.function)]
        if program.by:
            loss = loss_of(program, jnp.mean, jnp.tanh)
            chosen.append(("gradient", plait.grad(loss, argnums=program.by)))
        for kind, function in chosen:
            if not words or any(word in f"{kind}/{name}" for word in words):
                yield f"{kind}/{name}", function, tuple(map(jnp.asarray, program.inputs()))


def times_of(function, arguments):
    """Seconds predicted and measured of all steps that are loop programs, and the share of the call that
    they are."""
    profile = json.loads(plait.profile(function, *arguments).json())
    found = [step for step in profile["steps"] if step["predicted_seconds"] > 0]
    if not found:
        return None
    predicted = sum(step["predicted_seconds"] for step in found)
    inside = sum(step["total_seconds"] for step in found)
    share = inside / max(sum(step["seconds"] for step in profile["steps"]), inside)
    return predicted, share * least(plait.jit(function), arguments), share


def least(function, arguments):
    """Seconds of the fastest of many calls."""
    for _ in range(3):
        function(*arguments)
    best, end = math.inf, time.perf_counter() + ENOUGH
    while time.perf_counter() < end:
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def main(words):
    programs.use(plait, jnp, lax)
    ratios, guesses = {}, 0
    print(f"{'program':44} {'predicted':>11} {'measured':>11} {'ratio':>6}  of the call")
    for name, function, arguments in cases(words):
        times = times_of(function, arguments)
        if times is None:
            print(f"{name:44} no loop program")
            continue
        predicted, measured, share = times
        ratio = predicted / measured
        is_guess = "unknown length" in plait.explain(function, *arguments)
        if is_guess:
            guesses += 1
        else:
            ratios[name] = ratio
        print(
            f"{name:44} {predicted * 1e6:8.1f} us {measured * 1e6:8.1f} us {ratio:6.2f}  {share:4.0%}"
            f"{'  loops of unknown length' if is_guess else ''}",
            flush=True,
        )
    within = sum(0.5 <= ratio <= 2 for ratio in ratios.values())
    mean = math.exp(sum(map(math.log, ratios.values())) / max(len(ratios), 1))
    print(
        f"{within} of {len(ratios)} within 2x; geometric mean {mean:.2f}; "
        f"{guesses} more with loops of unknown length"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
