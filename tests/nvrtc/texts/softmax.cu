#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 4096 steps, by warps
extern "C" __global__ void softmax0_0(In<float> m0, Out<float> m2) {
  const auto run = [&](auto way) {
    constexpr bool in_fours = decltype(way)::value;
    for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 4096u; step += gridDim.x * blockDim.x / 32u) {
      const long v1 = step;
      Four<float> row_m1[8];
      Four<float> row_m0[8];
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        row_m0[turn] = Lanes<32, in_fours>::load(m0, v1 * 1000, turn, 1000);
      }
      float parts_of_v4[4] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v3 = row_m0[turn].at[k];
          parts_of_v4[k] = lax::max(parts_of_v4[k], v3);
        }
      }
      const float v4 = Lanes<32, in_fours>::joined(parts_of_v4, [](float a, float b) { return lax::max(a, b); });
      float parts_of_v15[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v26 = row_m0[turn].at[k];
          const float v27 = v26 - v4;
          const float v28 = lax::exp(v27);
          row_m1[turn].at[k] = v28;
          parts_of_v15[k] = parts_of_v15[k] + v28;
        }
      }
      const float v15 = Lanes<32, in_fours>::joined(parts_of_v15, [](float a, float b) { return a + b; });
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        Four<float> four_2;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v18 = row_m1[turn].at[k];
          const float v20 = v18 / v15;
          four_2.at[k] = v20;
        }
        Lanes<32, in_fours>::store(m2, v1 * 1000, turn, 1000, four_2);
      }
    }
  };
  if (begins_fours(m0) && begins_fours(m2))
    run(InFours());
  else
    run(OneByOne());
}
