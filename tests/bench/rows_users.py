"""Programs as people write them (programs.py), and their gradients."""

# SPDX-License-Identifier: Apache-2.0

import by_numpy
import numpy as np
import programs
from libraries import compiled
from rows import Row, best_peer
from rows_attention import slopes, slopes_by_differences

# Bound by memory or by libraries.
AS_FAST = {
    "correlation",
    "gram_schmidt",
    "cholesky_by_columns",
    "histogram_of_means",
    "resolvents",
    "normal_equations_step",
}
FACTOR = 1 / 1.5


def by_library(library):
    programs.use(library.module, library.xp, library.lax)


def plain(value):
    """Leaves of real numbers, which rows compare: complex ones as both parts in one array, since one
    part alone may be nothing but rounding."""
    found = map(np.asarray, by_numpy.leaves(value))
    return [np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x for x in found]


def reference_of(program, inputs):
    programs.use(*by_numpy.names())
    return program.function(*by_numpy.tree(by_numpy.array, inputs))


def value_row(name, program):
    def call(library, *inputs):
        by_library(library)
        return compiled(library, program.function, *inputs)

    return Row(
        f"programs/{name}",
        "a program as users write it",
        best_peer(1.0 if name in AS_FAST else FACTOR),
        inputs=program.inputs,
        reference=lambda *inputs: plain(reference_of(program, program.inputs())),
        sample=lambda *inputs: (),
        calls={"jaxlike": call},
        pick=plain,
        tolerance=1e-3 if program.single else 1e-6,
        x64=not program.single,
    )


# --- Gradients ---------------------------------------------------------------------------------------


def loss_of(program, mean, squashed):
    """Of all results, each once squashed."""

    def loss(*inputs):
        total = 0.0
        for leaf in by_numpy.leaves(program.function(*inputs)):
            if leaf.dtype.kind == "f":
                total = total + mean(squashed(leaf))
        return total

    return loss


def gradient_row(name, program):
    def call(library, *inputs):
        by_library(library)
        loss = loss_of(program, library.xp.mean, library.xp.tanh)
        return compiled(library, library.module.grad(loss, argnums=program.by), *inputs)

    def reference(*_):
        """The slope along one direction for each input, by differences."""
        inputs = list(map(np.float64, program.inputs())) if program.single else program.inputs()

        def loss(varied):
            full = list(inputs)
            for place, value in zip(program.by, varied):
                full[place] = value
            programs.use(*by_numpy.names())
            arrays = by_numpy.tree(by_numpy.array, full)
            return float(loss_of(program, np.mean, np.tanh)(*arrays))

        varied = [np.asarray(inputs[place], np.float64) for place in program.by]
        # Short, since some programs bend much: a filter of a thousand steps.
        return [np.array(slopes_by_differences(loss, varied, size=3e-7))]

    return Row(
        f"gradients/{name}",
        "the gradient of the mean tanh of its results",
        best_peer(FACTOR),
        inputs=program.inputs,
        reference=reference,
        sample=lambda *inputs: (),
        calls={"jaxlike": call},
        pick=lambda found: [np.array(slopes([np.asarray(g) for g in by_numpy.leaves(found)]))],
        tolerance=2e-2 if program.single else 1e-4,
        x64=not program.single,
    )


ROWS = [value_row(name, program) for name, program in programs.PROGRAMS.items()]
ROWS += [gradient_row(name, program) for name, program in programs.PROGRAMS.items() if program.by]
