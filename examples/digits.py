"""The UCI handwritten digits, as data.py writes them. Lessons 7 and 9 and the demo are about what they do with them."""

# SPDX-License-Identifier: Apache-2.0
import pathlib

import numpy as np


def load_digits():
    """Images (n, 64) of [0, 1], row by row, as float32; labels (n,) as int32."""
    raw = (pathlib.Path(__file__).parent.parent / "data" / "digits.bin").read_bytes()
    n = int(np.frombuffer(raw, np.int32, 1)[0])
    images = np.frombuffer(raw, np.float32, n * 64, offset=4).reshape(n, 64)
    return images, np.frombuffer(raw, np.int32, n, offset=4 + n * 64 * 4)
