#include <plait/kernel.h>
#include <plait/functions.h>
#include <base/math.cpp>

// 4096 steps, by threads
extern "C" __global__ void complex_product0_0(In<complex64> m0, In<complex64> m1, Out<complex64> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 4096u; step += gridDim.x * blockDim.x) {
    const long v0 = step;
    const complex64 v1 = m0[v0];
    const complex64 v2 = m1[v0];
    const complex64 v3 = lax::mul(v1, v2);
    m2[v0] = v3;
  }
}
