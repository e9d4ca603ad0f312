"""What a GPU reaches: copies, products by type, empty launches and graphs. A line of JSON for each.

Copies and launches by CUDA's own functions; products by PyTorch where it is installed, as the best
known way to the peak.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import json
import sys
import time

import cuda
import numpy as np

IS_SMALL = "small" in sys.argv[1:]
EMPTY = '#include <plait/kernel.h>\n\nextern "C" __global__ void empty() {}\n'


def say(what, **facts):
    print(json.dumps({"what": what, **facts}), flush=True)


def least(driver, submit, times):
    """The least seconds of a call in a pipeline of so many."""
    best = float("inf")
    for _ in range(2 if IS_SMALL else 7):
        driver.wait()
        begin = time.perf_counter()
        for _ in range(times):
            submit()
        driver.wait()
        best = min(best, (time.perf_counter() - begin) / times)
    return best


def copies(driver):
    size = 1 << (12 if IS_SMALL else 32)
    fresh = np.ones(1, np.uint8)
    pool, stream = driver.pool, driver.stream
    a, b = (
        driver.get("cuMemAllocFromPoolAsync", ctypes.c_uint64, ctypes.c_size_t(size), pool, stream)
        for _ in range(2)
    )
    # Not zeros, which move faster.
    driver.do("cuMemsetD8Async", a, ctypes.c_ubyte(fresh[0] * 77), ctypes.c_size_t(size), stream)
    copy = lambda: driver.do("cuMemcpyDtoDAsync_v2", b, a, ctypes.c_size_t(size), stream)  # noqa: E731
    seconds = least(driver, copy, 2 if IS_SMALL else 5)
    driver.free(a, b)
    say("copy", bytes_per_second=2 * size / seconds)


def launches(driver):
    function = driver.function(driver.module(cuda.compiled(EMPTY)), "empty")
    times = 10 if IS_SMALL else 1000
    say(
        "launch of an empty kernel",
        us=least(driver, lambda: driver.launch(function, 1, 32), times) * 1e6,
    )
    for count in (1, 8, 32):
        driver.do("cuStreamBeginCapture_v2", driver.stream, 1)
        for _ in range(count):
            driver.launch(function, 1, 32)
        graph = ctypes.c_void_p()
        driver.do("cuStreamEndCapture", driver.stream, ctypes.byref(graph))
        made = driver.get("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, ctypes.c_uint64(0))
        run = lambda: driver.do("cuGraphLaunch", made, driver.stream)  # noqa: E731
        begin, number = time.perf_counter(), 5 if IS_SMALL else 200
        for _ in range(number):
            run()
        submitted = (time.perf_counter() - begin) / number
        us = least(driver, run, times) * 1e6
        say(f"graph of {count} empty kernels", us=us, submitted_us=submitted * 1e6)


def products():
    try:
        import torch
    except ImportError:
        return say("products", state="skipped", why="PyTorch is not installed")
    if not torch.cuda.is_available():
        return say("products", state="skipped", why="PyTorch sees no device")
    for unit, dtype, side in (
        ("bf16", torch.bfloat16, 8192),
        ("f16", torch.float16, 8192),
        ("tf32", torch.float32, 8192),
        ("f32", torch.float32, 8192),
        ("f64", torch.float64, 4096),
    ):
        torch.backends.cuda.matmul.allow_tf32 = unit == "tf32"
        a, b = (torch.randn(side, side, device="cuda").to(dtype) for _ in range(2))
        for _ in range(3):
            a @ b
        best = float("inf")
        for _ in range(4):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(3):
                a @ b
            torch.cuda.synchronize()
            best = min(best, (time.perf_counter() - begin) / 3)
        say(f"product {unit}", unit=unit, flop_per_second=2 * side**3 / best)


def main():
    driver = cuda.Driver()
    try:
        say("device", **driver.describe())
        copies(driver)
        launches(driver)
    except cuda.CudaError as error:
        say("driver", state="failed", why=str(error))
    products()


main()
