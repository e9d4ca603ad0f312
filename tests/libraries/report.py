"""What the programs of this folder print: a line of JSON for each result.

SPDX-License-Identifier: Apache-2.0
"""

import json

import numpy as np


def report(name, *values):
    """Prints the numbers of some trees of arrays under a name, and their dtypes."""
    import jax

    leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(values)]
    numbers = [leaf.astype(np.float64).ravel().tolist() for leaf in leaves]
    print(
        json.dumps(
            {"name": name, "values": numbers, "dtypes": [str(leaf.dtype) for leaf in leaves]}
        ),
        flush=True,
    )


def attempt(name, function):
    """Reports what a function returns, or its error."""
    try:
        report(name, function())
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps({"name": name, "error": text}), flush=True)
