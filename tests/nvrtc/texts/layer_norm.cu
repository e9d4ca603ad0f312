#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 8192 steps, by warps
extern "C" __global__ void layer_norm0_0(In<float> m0, In<float> m1, In<float> m2, Out<float> m3) {
  const auto run = [&](auto way) {
    constexpr bool in_fours = decltype(way)::value;
    for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 8192u; step += gridDim.x * blockDim.x / 32u) {
      const long v1 = step;
      Four<float> row_m0[6];
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        row_m0[turn] = Lanes<32, in_fours>::load(m0, v1 * 768, turn, 768);
      }
      float parts_of_v4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v3 = row_m0[turn].at[k];
          parts_of_v4[k] = parts_of_v4[k] + v3;
        }
      }
      const float v4 = Lanes<32, in_fours>::joined(parts_of_v4, [](float a, float b) { return a + b; });
      const float v8 = v4 / 768.0f;
      float parts_of_v15[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v11 = row_m0[turn].at[k];
          const float v13 = v11 - v8;
          const float v14 = v13 * v13;
          parts_of_v15[k] = parts_of_v15[k] + v14;
        }
      }
      const float v15 = Lanes<32, in_fours>::joined(parts_of_v15, [](float a, float b) { return a + b; });
      const float v20 = v15 / 768.0f;
      const float v21 = v20 + 1e-05f;
      const float v22 = lax::sqrt(v21);
      const float v23 = 1.0f / v22;
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        const Four<float> four_v31 = Lanes<32, in_fours>::load(m1, 0, turn, 768);
        const Four<float> four_v33 = Lanes<32, in_fours>::load(m2, 0, turn, 768);
        Four<float> four_7;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v26 = row_m0[turn].at[k];
          const float v28 = v26 - v8;
          const float v30 = v28 * v23;
          const float v31 = four_v31.at[k];
          const float v32 = v30 * v31;
          const float v33 = four_v33.at[k];
          const float v34 = v32 + v33;
          four_7.at[k] = v34;
        }
        Lanes<32, in_fours>::store(m3, v1 * 768, turn, 768, four_7);
      }
    }
  };
  if (begins_fours(m0) && begins_fours(m1) && begins_fours(m2) && begins_fours(m3))
    run(InFours());
  else
    run(OneByOne());
}
