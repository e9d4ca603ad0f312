#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>

// once
extern "C" __global__ void gather0_0(In<int> m0, Out<int> failed, Failure* failure, int call_step) {
  SHARED(bool, terms_bool, 4096);
  SHARED(bool, total_bool, 1);
  const Word word{failed, 1, failure, call_step};
  for (long v3 = threadIdx.x; v3 < 4096; v3 += blockDim.x) {
    const int v4 = m0[v3];
    const bool v5 = v4 < 0;
    const int v6 = lax::add(v4, 10000);
    const int v7 = v5 ? v6 : v4;
    const long v8 = long(v7);
    const bool v10 = v8 < 0L;
    const bool v12 = v8 > 9999L;
    const bool v13 = v10 | v12;
    terms_bool[v3] = v13;
  }
  __syncthreads();
  if (threadIdx.x < 8) {
    bool part_of_v14 = false;
    for (long i = threadIdx.x; i < 4096; i += 8) {
      const bool term1 = terms_bool[i];
      part_of_v14 = part_of_v14 | term1;
    }
    part_of_v14 = part_of_v14 | from_lane_after(part_of_v14, 4);
    part_of_v14 = part_of_v14 | from_lane_after(part_of_v14, 2);
    part_of_v14 = part_of_v14 | from_lane_after(part_of_v14, 1);
    if (threadIdx.x == 0) total_bool[0] = part_of_v14;
  }
  __syncthreads();
  const bool v14 = total_bool[0];
  const long v15 = lax::convert<long>(v14);
  if (v15 == 0) {
  } else {
    for (long v16 = 0; v16 < 4096; ++v16) {
      const int v17 = m0[v16];
      const bool v18 = v17 < 0;
      const int v19 = lax::add(v17, 10000);
      const int v20 = v18 ? v19 : v17;
      const long v21 = long(v20);
      if (v21 < 0 || v21 > 9999) {
        if (threadIdx.x == 0) fail(word, 1, v21);
        continue;
      }
    }
  }
}

// 262144 steps, by threads
extern "C" __global__ void gather0_1(In<int> m0, In<float> m1, Out<float> m2, Out<int> failed) {
  if (has_failed_before(failed, 2)) return;
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 262144u; step += gridDim.x * blockDim.x) {
    const long v22 = step / 64u;
    const long v23 = step % 64u;
    const int v24 = m0[v22];
    const bool v25 = v24 < 0;
    const int v26 = lax::add(v24, 10000);
    const int v27 = v25 ? v26 : v24;
    const long v28 = long(v27);
    const long v29 = long(v28);
    const float v30 = m1[v23 + v29 * 64];
    m2[v22 * 64 + v23] = v30;
  }
}
