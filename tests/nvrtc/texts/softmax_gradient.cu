#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>

// 4096 steps, by octets
extern "C" __global__ void softmax_gradient0_0(In<float> m0, InOut<float> m1, InOut<float> m2, Out<float> m3) {
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
      const float v45 = m0[v1 * 1000 + v13];
      const float v46 = v45 - v4;
      const float v47 = lax::exp(v46);
      m1[v1 * 1000 + v13] = v47;
      part_of_v15 = part_of_v15 + v47;
    }
    part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 4);
    part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 2);
    part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 1);
    const float v15 = from_first_lane(part_of_v15);
    __syncwarp(octet());
    float part_of_v26 = 0.0f;
    for (long v23 = threadIdx.x & 7u; v23 < 1000; v23 += 8) {
      const float v48 = m1[v1 * 1000 + v23];
      const float v49 = v48 / v15;
      m2[v1 * 1000 + v23] = v49;
      const float v25 = -1.0f * v49;
      part_of_v26 = part_of_v26 + v25;
    }
    part_of_v26 = part_of_v26 + from_lane_after(part_of_v26, 4);
    part_of_v26 = part_of_v26 + from_lane_after(part_of_v26, 2);
    part_of_v26 = part_of_v26 + from_lane_after(part_of_v26, 1);
    const float v26 = from_first_lane(part_of_v26);
    const float v31 = 1.0f + v26;
    __syncwarp(octet());
    for (long v29 = (threadIdx.x & 7u); v29 < 1000; v29 += 8) {
      const float v32 = m2[v1 * 1000 + v29];
      const float v33 = v31 * v32;
      m3[v1 * 1000 + v29] = v33;
    }
  }
}
