#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>

// 4096 steps, by octets
extern "C" __global__ void softmax0_0(In<float> m0, InOut<float> m1, Out<float> m2) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 4096u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step;
    float part_of_v4 = -HUGE_VALF;
    for (long v2 = threadIdx.x & 7u; v2 < 1000; v2 += 8) {
      const float v3 = m0[v1 * 1000 + v2];
      part_of_v4 = lax::max(part_of_v4, v3);
    }
    part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 4));
    part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 2));
    part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 1));
    const float v4 = from_first_lane(part_of_v4);
    float part_of_v15 = 0.0f;
    for (long v13 = threadIdx.x & 7u; v13 < 1000; v13 += 8) {
      const float v26 = m0[v1 * 1000 + v13];
      const float v27 = v26 - v4;
      const float v28 = lax::exp(v27);
      m1[v1 * 1000 + v13] = v28;
      part_of_v15 = part_of_v15 + v28;
    }
    part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 4);
    part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 2);
    part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 1);
    const float v15 = from_first_lane(part_of_v15);
    __syncwarp(octet());
    for (long v17 = (threadIdx.x & 7u); v17 < 1000; v17 += 8) {
      const float v18 = m1[v1 * 1000 + v17];
      const float v20 = v18 / v15;
      m2[v1 * 1000 + v17] = v20;
    }
  }
}
