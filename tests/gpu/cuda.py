"""CUDA by its own functions, from Python: what plait is measured beside, and kernels of texts.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import glob
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTIONS = ["--std=c++20", "-fmad=false", "-default-device", "--device-int128"]
OPTIONS += ["-diag-suppress=1097"]
FOLDERS = ["lib/backends/cuda/device/std", "lib/backends/cuda/device", "include", "lib"]


class CudaError(Exception):
    pass


def library(name):
    """The first of that name: in the folders of PLAIT_CUDA_LIBRARIES, in wheels, in the system."""
    found = []
    for folder in os.environ.get("PLAIT_CUDA_LIBRARIES", "").split(":"):
        found += glob.glob(os.path.join(folder, name)) if folder else []
    for folder in sys.path:
        found += sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", name + "*")))
    found += sorted(glob.glob(f"/usr/local/cuda*/lib64/{name}*")) + [name]
    for path in found:
        try:
            return ctypes.CDLL(path)
        except OSError:
            pass
    return None


class Driver:
    """The driver, with a context and a stream of device 0."""

    def __init__(self):
        self.lib = library("libcuda.so.1")
        self.do("cuInit", 0)
        self.device = self.get("cuDeviceGet", ctypes.c_int, 0)
        self.context = self.get("cuDevicePrimaryCtxRetain", ctypes.c_void_p, self.device)
        self.do("cuCtxSetCurrent", self.context)
        self.stream = self.get("cuStreamCreate", ctypes.c_void_p, 1)
        props = (ctypes.c_int32 * 22)(1, 0, 1, 0)  # CUmemPoolProps: pinned, of device 0
        self.pool = self.get("cuMemPoolCreate", ctypes.c_void_p, ctypes.byref(props))

    def do(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status != 0:
            raise CudaError(f"{name}: error {status}")

    def get(self, name, kind, *arguments):
        """What a function writes to its first argument."""
        value = kind()
        self.do(name, ctypes.byref(value), *arguments)
        return value

    def attribute(self, number):
        return self.get("cuDeviceGetAttribute", ctypes.c_int, number, self.device).value

    def describe(self):
        name = ctypes.create_string_buffer(100)
        self.do("cuDeviceGetName", name, 100, self.device)
        return {
            "name": name.value.decode(),
            "driver": self.get("cuDriverGetVersion", ctypes.c_int).value,
            "capability": [self.attribute(75), self.attribute(76)],
            "processors": self.attribute(16),
            "l2_bytes": self.attribute(38),
            "clock_khz": self.attribute(13),
            "bytes": self.get("cuDeviceTotalMem_v2", ctypes.c_size_t, self.device).value,
        }

    def wait(self):
        self.do("cuStreamSynchronize", self.stream)

    def allocate(self, array):
        """Memory of the device with the bytes of an array of NumPy."""
        bytes = ctypes.c_size_t(max(array.nbytes, 1))
        memory = self.get("cuMemAllocFromPoolAsync", ctypes.c_uint64, bytes, self.pool, self.stream)
        self.do("cuMemcpyHtoDAsync_v2", memory, ctypes.c_void_p(array.ctypes.data),
                ctypes.c_size_t(array.nbytes), self.stream)  # fmt: skip
        self.wait()
        return memory

    def free(self, *memories):
        for memory in memories:
            self.do("cuMemFreeAsync", memory, self.stream)

    def fetch(self, memory, array):
        self.do("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(array.ctypes.data), memory,
                ctypes.c_size_t(array.nbytes), self.stream)  # fmt: skip
        self.wait()
        return array

    def module(self, image):
        return self.get("cuModuleLoadData", ctypes.c_void_p, image)

    def function(self, module, name):
        return self.get("cuModuleGetFunction", ctypes.c_void_p, module, name.encode())

    def launch(self, function, blocks, threads, *parameters):
        """Parameters are numbers of ctypes."""
        addresses = (ctypes.c_void_p * (len(parameters) + 1))()
        for i, parameter in enumerate(parameters):
            addresses[i] = ctypes.addressof(parameter)
        self.do("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, self.stream, addresses,
                None)  # fmt: skip


def compiled(text, architecture="sm_90"):
    """The bytes of a text of kernels, by NVRTC; CudaError with what it says."""
    lib = library("libnvrtc.so.13")
    library("libnvrtc-builtins.so")  # which it opens by name
    lib.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = OPTIONS + [f"-arch={architecture}"]
    options += [f"--include-path={os.path.join(ROOT, folder)}" for folder in FOLDERS]
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = lib.nvrtcCompileProgram(program, len(options), words)
    size = ctypes.c_size_t()
    if status != 0:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        raise CudaError(f"NVRTC: {lib.nvrtcGetErrorString(status).decode()}: {log.value.decode()}")
    lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, image)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return image.raw
