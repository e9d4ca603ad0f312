#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>

// 10000 steps, by threads
extern "C" __global__ void square_roots0_0(In<float> m0, Out<float> m1, Out<int> failed, Failure* failure, int call_step) {
  const Word word{failed, 1, failure, call_step};
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 10000u; step += gridDim.x * blockDim.x) {
    const long v0 = step;
    const float v1 = m0[v0];
    const float v8 = v1 * 1e-05f;
    float v2 = v1;
    for (unsigned turn = 0;; ++turn) {
      const float v4 = v2 * v2;
      const float v5 = v4 - v1;
      const float v6 = lax::abs(v5);
      const bool v9 = v6 > v8;
      if (!v9) break;
      const float v10 = v1 / v2;
      const float v11 = v2 + v10;
      const float v13 = v11 * 0.5f;
      v2 = v13;
      if (turn % 65536 == 65535 && is_stopped(word)) return;
    }
    const float v14 = v2;
    m1[v0] = v14;
  }
}
