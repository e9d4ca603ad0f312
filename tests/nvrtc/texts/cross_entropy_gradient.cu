#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>

// once
extern "C" __global__ void cross_entropy_gradient0_0(In<int> m0, Out<int> failed, Failure* failure, int call_step) {
  const Word word{failed, 1, failure, call_step};
  for (long v4 = 0; v4 < 2048; ++v4) {
    const int v5 = m0[v4];
    const bool v6 = v5 < 0;
    const int v7 = lax::add(v5, 1000);
    const int v8 = v6 ? v7 : v5;
    const long v9 = long(v8);
    if (v9 < 0 || v9 > 999) {
      fail(word, 1, v9);
      continue;
    }
  }
}

// 2048000 steps, by threads
extern "C" __global__ void cross_entropy_gradient0_1(In<int> m0, Out<float> m1, Out<float> m2, Out<int> failed) {
  if (has_failed_before(failed, 2)) return;
  #pragma unroll 4
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048000u; step += gridDim.x * blockDim.x) {
    const long v10 = step / 1000u;
    const long v11 = step % 1000u;
    const int v12 = m0[v10];
    const bool v13 = v12 < 0;
    const int v14 = lax::add(v12, 1000);
    const int v15 = v13 ? v14 : v12;
    const long v16 = long(v15);
    const long v17 = long(v16);
    const bool v18 = v11 == v17;
    const float v19 = 0.0f + -0.00048828125f;
    const float v20 = v18 ? v19 : 0.0f;
    m1[v10 * 1000 + v11] = v20;
    const float v31 = -v20;
    m2[v10 * 1000 + v11] = v31;
  }
}

// 2048 steps, by octets
extern "C" __global__ void cross_entropy_gradient1_0(In<float> m0, In<float> m1, In<float> m2, Out<float> m3) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 2048u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step;
    float part_of_v4 = 0.0f;
    for (long v2 = threadIdx.x & 7u; v2 < 1000; v2 += 8) {
      const float v3 = m0[v1 * 1000 + v2];
      part_of_v4 = part_of_v4 + v3;
    }
    part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 4);
    part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 2);
    part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 1);
    const float v4 = from_first_lane(part_of_v4);
    float part_of_v9 = -HUGE_VALF;
    for (long v7 = threadIdx.x & 7u; v7 < 1000; v7 += 8) {
      const float v8 = m1[v1 * 1000 + v7];
      part_of_v9 = lax::max(part_of_v9, v8);
    }
    part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 4));
    part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 2));
    part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 1));
    const float v9 = from_first_lane(part_of_v9);
    float part_of_v16 = 0.0f;
    for (long v11 = threadIdx.x & 7u; v11 < 1000; v11 += 8) {
      const float v12 = m1[v1 * 1000 + v11];
      const float v14 = v12 - v9;
      const float v15 = lax::exp(v14);
      part_of_v16 = part_of_v16 + v15;
    }
    part_of_v16 = part_of_v16 + from_lane_after(part_of_v16, 4);
    part_of_v16 = part_of_v16 + from_lane_after(part_of_v16, 2);
    part_of_v16 = part_of_v16 + from_lane_after(part_of_v16, 1);
    const float v16 = from_first_lane(part_of_v16);
    const float v19 = lax::log(v16);
    for (long v21 = (threadIdx.x & 7u); v21 < 1000; v21 += 8) {
      const float v22 = m2[v1 * 1000 + v21];
      const float v24 = m1[v1 * 1000 + v21];
      const float v26 = v24 - v9;
      const float v28 = v26 - v19;
      const float v29 = lax::exp(v28);
      const float v30 = v4 * v29;
      const float v31 = v22 + v30;
      m3[v1 * 1000 + v21] = v31;
    }
  }
}
