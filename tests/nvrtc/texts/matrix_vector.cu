#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 1024 steps, by warps
extern "C" __global__ void matrix_vector0_0(In<float> m0, In<float> m1, Out<float> m2) {
  const auto run = [&](auto way) {
    constexpr bool in_fours = decltype(way)::value;
    for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 1024u; step += gridDim.x * blockDim.x / 32u) {
      const long v0 = step;
      float parts_of_v5[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        const Four<float> four_v3 = Lanes<32, in_fours>::load(m0, v0 * 768, turn, 768);
        const Four<float> four_v4 = Lanes<32, in_fours>::load(m1, 0, turn, 768);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v3 = four_v3.at[k];
          const float v4 = four_v4.at[k];
          parts_of_v5[k] = lax::fma(v3, v4, parts_of_v5[k]);
        }
      }
      const float v5 = Lanes<32, in_fours>::joined(parts_of_v5, [](float a, float b) { return a + b; });
      if ((threadIdx.x & 31u) == 0) m2[v0] = v5;
    }
  };
  if (begins_fours(m0) && begins_fours(m1))
    run(InFours());
  else
    run(OneByOne());
}
