"""What every intrinsic of the kernel language gives: tests/gpu/intrinsics.py prints a line of JSON for each.

`run` compares the lines of a GPU with those of the CPU's definition (tests/cuda/on_cpu), bit by bit.
PLAIT_CUDA_LIBRARIES says which of them it is.

SPDX-License-Identifier: Apache-2.0
"""

import hashlib
import json
import sys

import cuda
import numpy as np

THREADS, BLOCKS = 64, 4
COUNT = THREADS * BLOCKS

# By name, what a thread makes of its number i, of x (its 4 bytes of input) and of a word of memory
# for all threads, or for its block.
THREAD = {
    "threadIdx": "threadIdx.x + 1000u * blockIdx.x + 100000u * blockDim.x + 10000000u * gridDim.x",
    "shfl": "__shfl_sync(0xffffffffu, x, int(threadIdx.x * 7u) & 31)",
    "shfl of octets": "__shfl_sync(octet(), x, 3, 8)",
    "shfl_down": "__shfl_down_sync(0xffffffffu, x, 5)",
    "shfl_down of octets": "__shfl_down_sync(octet(), x, 2, 8)",
    "shfl_up": "__shfl_up_sync(0xffffffffu, x, 3)",
    "shfl_xor": "__shfl_xor_sync(0xffffffffu, x, 9)",
    "shfl of doubles": "__shfl_xor_sync(0xffffffffu, double(x), 1)",
    "ballot": "__ballot_sync(0xffffffffu, int(x & 1u))",
    "from_lane_after": "from_lane_after(std::uint16_t(x), 4)",
    "from_first_lane": "from_first_lane(double(x))",
    "from_first_thread": "from_first_thread((x & 2u) != 0)",
    "clz and popc": "std::countl_zero(x) * 100 + std::popcount(x)",
    "division": "(x | 1u) / (threadIdx.x + 1u) + long(x) % 7",
    "wide product": "(unsigned long)((unsigned __int128)x * 0xffffffffffffff1ul >> 64)",
    "load4": "load4(in, long(threadIdx.x / 4u * 4u)).at[threadIdx.x % 4u]",
}
# What a word is after all threads did this to it.
ATOMIC = {
    "atomicAdd": ("int", "atomicAdd(word, int(x & 255u))"),
    "atomicAdd of 8 bytes": ("unsigned long long", "atomicAdd(word, (unsigned long long)x)"),
    "atomicAdd of floats": ("float", "atomicAdd(word, float(x & 15u))"),
    "atomicAdd of doubles": ("double", "atomicAdd(word, double(x & 15u))"),
    "atomicMin": ("int", "atomicMin(word, int(x))"),
    "atomicMax": ("unsigned", "atomicMax(word, x)"),
    "atomicAnd": ("unsigned", "atomicAnd(word, x | 0xff00u)"),
    "atomicOr": ("unsigned", "atomicOr(word, x & 0x0ff0u)"),
    "atomicCAS": ("unsigned", "atomicCAS(word, 0u, 77u)"),
    "atomicExch": ("unsigned", "atomicExch(word, 5u)"),
}
UNARY = "floor ceil round exp expm1 log log1p sqrt sin cos tanh erf erf_inv lgamma digamma".split()
BINARY = "add mul div rem pow atan2 max min".split()

HEAD = """#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>
#include <base/math.cpp>

template <class T>
std::uint64_t word_of(T x) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<std::uint64_t>(x);
  return std::uint64_t(long(x));
}
// NaN is NaN, whatever its bits.
template <class T>
std::uint64_t bits_of(T x) {
  if (x != x) return 1;
  if constexpr (sizeof(T) == 8) return std::bit_cast<std::uint64_t>(x);
  if constexpr (sizeof(T) == 4) return std::bit_cast<std::uint32_t>(x);
  return x;
}

"""


def kernel(name, body, arguments="In<unsigned> in, Out<unsigned long> out"):
    return (
        f'extern "C" __global__ void {name}({arguments}) {{\n'
        "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  const unsigned x = in[i];\n  {body}\n}}\n"
    )


def function_body(kind, raw, call):
    """Of two numbers whose bits are made of the input."""
    first = "x" if kind == "float" else "std::uint64_t(x) << 32 | (x * 2654435761u)"
    second = "x * 2654435761u" if kind == "float" else "std::uint64_t(x * 40503u) << 32 | x"
    return (
        f"const {kind} a = std::bit_cast<{kind}>({raw}({first}));\n"
        f"  const {kind} b = std::bit_cast<{kind}>({raw}({second}));\n"
        f"  (void)b;\n  out[i] = bits_of({call});"
    )


def kernels():
    """(name, body, parameters besides) of each intrinsic; "" are functions of many numbers."""
    for name, value in THREAD.items():
        yield name, f"out[i] = word_of({value});", None
    for name, (kind, call) in ATOMIC.items():
        yield name, f"{call};\n  (void)out;", f", Out<{kind}> word"
    for kind, raw in (("float", "std::uint32_t"), ("double", "std::uint64_t")):
        for names, call in ((UNARY, "lax::%s(a)"), (BINARY, "lax::%s(a, b)")):
            for name in names:
                yield f"{name} of {kind}", function_body(kind, raw, call % name), ""


def inputs(large):
    """Words that are floats of every size, and special ones."""
    count = (1 << 16) if large else COUNT
    words = np.random.default_rng(0).integers(0, 1 << 32, count, dtype=np.uint32)
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, 88.7, -103, 0.5], "f4")
    words[: special.size] = special.view(np.uint32)
    small = np.linspace(-8, 8, count // 4, dtype="f4").view(np.uint32)
    words[count // 2 : count // 2 + small.size] = small
    return words


def main():
    only = sys.argv[1:]
    chosen = [row for row in kernels() if not only or row[0].split(" ")[0] in only]
    text, usual = HEAD, "In<unsigned> in, Out<unsigned long> out"
    for number, (_, body, more) in enumerate(chosen):
        text += kernel(f"kernel{number}", body, usual + (more or ""))
    driver = cuda.Driver()
    module = driver.module(cuda.compiled(text))
    for number, (name, _, more) in enumerate(chosen):
        words, word = inputs(large=more == ""), np.zeros(1, np.uint64)
        given, out = driver.allocate(words), driver.allocate(np.zeros(words.size, np.uint64))
        own = driver.allocate(word)
        parameters = [given, out] + ([own] if more else [])
        function = driver.function(module, f"kernel{number}")
        driver.launch(function, words.size // THREADS, THREADS, *parameters)
        values = driver.fetch(*((own, word) if more else (out, np.empty(words.size, np.uint64))))
        driver.free(given, out, own)
        digest = hashlib.sha256(values.tobytes()).hexdigest()[:16]
        line = {"what": name, "digest": digest, "values": [hex(v) for v in values[:8]]}
        print(json.dumps(line), flush=True)


main()
