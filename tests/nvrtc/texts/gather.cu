#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>

// 4096 steps, by threads
extern "C" __global__ void gather0_0(In<int> m0, Out<int> failed, Failure* failure, int call_step) {
  const Word word{failed, 1, failure, call_step};
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 4096u; step += gridDim.x * blockDim.x) {
    const long v2 = step;
    const int v3 = m0[v2];
    const bool v4 = v3 < 0;
    const int v5 = lax::add(v3, 10000);
    const int v6 = v4 ? v5 : v3;
    const long v7 = long(v6);
    if (v7 < 0 || v7 > 9999) {
      fail(word, 1, v7, long(step));
      continue;
    }
  }
}

// 262144 steps, by threads
extern "C" __global__ void gather0_1(In<int> m0, In<float> m1, Out<float> m2, Out<int> failed) {
  if (has_failed_before(failed, 2)) return;
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 262144u; step += gridDim.x * blockDim.x) {
    const long v8 = step / 64u;
    const long v9 = step % 64u;
    const int v10 = m0[v8];
    const bool v11 = v10 < 0;
    const int v12 = lax::add(v10, 10000);
    const int v13 = v11 ? v12 : v10;
    const long v14 = long(v13);
    const long v15 = long(v14);
    const float v16 = m1[v9 + v15 * 64];
    m2[v8 * 64 + v9] = v16;
  }
}
