"""Writes the UCI handwritten digits (1,797 images of 8x8, shipped inside scikit-learn) to data/digits.bin.

The form is what a C++ program reads in ten lines: the number of images as int32, the pixels in [0, 1] as
float32, image by image, then the labels as int32. `dev` runs this once.
"""

# SPDX-License-Identifier: Apache-2.0
import pathlib

import numpy as np
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
path = pathlib.Path(__file__).parent.parent / "data" / "digits.bin"
path.parent.mkdir(exist_ok=True)
partial = path.with_suffix(".partial")
with open(partial, "wb") as file:
    file.write(np.int32(len(images)).tobytes())
    file.write((images / 16).astype(np.float32).tobytes())
    file.write(labels.astype(np.int32).tobytes())
partial.rename(path)
print(f"wrote {len(images)} digits to {path}")
