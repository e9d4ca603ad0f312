"""What the machine can do: the rates that a roof is made of."""

# SPDX-License-Identifier: Apache-2.0

import concurrent.futures
import dataclasses
import os
import time

import numpy as np

import plait


@dataclasses.dataclass
class Work:
    """What a call must do at least: products and sums, and bytes between memory and cores."""

    flops: float = 0
    bytes: float = 0


class Rates:
    """Flops and bytes a second, each the best that was reached."""

    def __init__(self):
        self.flops = 2 * 1024**3 / min(product(np.asarray), product(plait.numpy.asarray))
        self.bytes = copied_bytes() / copy()

    def roof(self, work):
        """Seconds that the work takes at these rates."""
        return max(work.flops / self.flops, work.bytes / self.bytes)

    def __str__(self):
        return (
            f"the machine: {os.cpu_count()} cores, float32 products at {self.flops / 1e9:.0f} "
            f"GFLOP/s, copies at {self.bytes / 1e9:.1f} GB/s read and written, "
            f"load {os.getloadavg()[0]:.1f}"
        )


def best(call):
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def product(array):
    """Seconds of a product of two matrices of 1024 × 1024."""
    x = array(np.ones((1024, 1024), np.float32))
    return best(lambda: x @ x)


PIECE = 1 << 26


def copied_bytes():
    return 2 * PIECE * os.cpu_count()


def copy():
    """Seconds in which every core copies a piece that no cache holds."""
    cores = os.cpu_count()
    pairs = [(np.ones(PIECE, np.uint8), np.zeros(PIECE, np.uint8)) for _ in range(cores)]
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        return best(lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs)))
