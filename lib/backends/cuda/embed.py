"""Writes the texts that kernels include as one C++ file: embed.py OUTPUT ROOT PATH...

A text is named as kernels include it: by its path in the folder of headers that holds it.
"""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import sys

FOLDERS = ["lib/backends/cuda/device/std/", "lib/backends/cuda/device/", "include/", "lib/"]
PIECE = 8000  # characters: compilers need not take longer literals
START = """// Made by lib/backends/cuda/embed.py.
#include "backends/cuda/texts.h"

namespace plait::cuda {

std::span<const Text> device_texts() {
  static constexpr Text texts[] = {
"""
END = """  };
  return texts;
}

}  // namespace plait::cuda
"""


def name_of(path):
    folder = next(folder for folder in FOLDERS if path.startswith(folder))
    return path.removeprefix(folder)


def literal(text):
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    return "\n".join(f'R"text({piece})text"' for piece in pieces)


def main():
    output, root, *paths = sys.argv[1:]
    rows = [
        f'{{"{name_of(path)}",\n{literal(pathlib.Path(root, path).read_text())}}},\n'
        for path in paths
    ]
    pathlib.Path(output).write_text(START + "".join(rows) + END)


main()
