#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 65536 steps, by threads
extern "C" __global__ void steady_heat0_0(In<float> m0, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 65536u; step += gridDim.x * blockDim.x) {
    const long v80 = step;
    const float v79 = m0[v80];
    m2[v80] = v79;
  }
}

// once, by all blocks
extern "C" __global__ void steady_heat0_1(In<float> m1, InOut<float> m2, InOut<float> m3, InOut<float> m4, InOut<float> m5, Out<float> m6, Grid* grid, Out<int> failed, Failure* failure, int call_step) {
  SHARED(float, terms_float, 1024);
  const Word word{failed, 2, failure, call_step};
  const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long)gridDim.x * blockDim.x;
  const float v129 = m1[0];
  float v1 = v129;
  bool is_swapped_m2_0 = false;
  for (unsigned turn = 0;; ++turn) {
    const bool v4 = v1 > 1e-04f;
    if (!v4) break;
    const float v5 = m2[65535];
    const float v6 = m2[0];
    const float v9 = m2[1];
    const float v10 = v5 + v9;
    const float v11 = v6 * 2.0f;
    const float v12 = v10 - v11;
    const float v13 = v12 * 0.1f;
    const float v14 = v6 + v13;
    if (thread == 0) m3[0] = v14;
    for (long v15 = thread; v15 < 65534; v15 += threads) {
      const float v16 = m2[v15 + 1];
      const float v17 = m2[v15];
      const float v18 = m2[v15 + 2];
      const float v19 = v17 + v18;
      const float v20 = v16 * 2.0f;
      const float v21 = v19 - v20;
      const float v22 = v21 * 0.1f;
      const float v23 = v16 + v22;
      m3[v15 + 1] = v23;
    }
    const float v25 = m2[65534];
    const float v26 = v25 + v6;
    const float v27 = v5 * 2.0f;
    const float v28 = v26 - v27;
    const float v29 = v28 * 0.1f;
    const float v30 = v5 + v29;
    if (thread == 0) m3[65535] = v30;
    sync_grid(grid);
    for (long v32 = blockIdx.x; v32 < 64; v32 += gridDim.x) {
      __syncthreads();
      for (long v33 = threadIdx.x; v33 < 1024; v33 += blockDim.x) {
        const float v34 = m3[v32 * 1024 + v33];
        const float v35 = m2[v32 * 1024 + v33];
        const float v36 = v34 - v35;
        const float v37 = lax::abs(v36);
        terms_float[v33] = v37;
      }
      __syncthreads();
      float parts_of_v38[4] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
      #pragma unroll 8
      for (int turn = 0; turn < 8; ++turn) {
        const auto term1 = Lanes<32, false>::load(terms_float, 0, turn, 1024);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          parts_of_v38[k] = lax::max(parts_of_v38[k], term1.at[k]);
        }
      }
      const float v38 = Lanes<32, false>::joined(parts_of_v38, [](float a, float b) { return lax::max(a, b); });
      if (threadIdx.x == 0) m4[v32] = v38;
    }
    sync_grid(grid);
    for (long v39 = thread; v39 < 32; v39 += threads) {
      const float v40 = m4[v39 * 2];
      const float v41 = m4[v39 * 2 + 1];
      const float v42 = lax::max(v40, v41);
      m5[v39] = v42;
    }
    sync_grid(grid);
    const float v81 = m5[0];
    const float v82 = m5[1];
    const float v83 = lax::max(v81, v82);
    const float v84 = m5[2];
    const float v85 = m5[3];
    const float v86 = lax::max(v84, v85);
    const float v87 = m5[4];
    const float v88 = m5[5];
    const float v89 = lax::max(v87, v88);
    const float v90 = m5[6];
    const float v91 = m5[7];
    const float v92 = lax::max(v90, v91);
    const float v93 = m5[8];
    const float v94 = m5[9];
    const float v95 = lax::max(v93, v94);
    const float v96 = m5[10];
    const float v97 = m5[11];
    const float v98 = lax::max(v96, v97);
    const float v99 = m5[12];
    const float v100 = m5[13];
    const float v101 = lax::max(v99, v100);
    const float v102 = m5[14];
    const float v103 = m5[15];
    const float v104 = lax::max(v102, v103);
    const float v105 = m5[16];
    const float v106 = m5[17];
    const float v107 = lax::max(v105, v106);
    const float v108 = m5[18];
    const float v109 = m5[19];
    const float v110 = lax::max(v108, v109);
    const float v111 = m5[20];
    const float v112 = m5[21];
    const float v113 = lax::max(v111, v112);
    const float v114 = m5[22];
    const float v115 = m5[23];
    const float v116 = lax::max(v114, v115);
    const float v117 = m5[24];
    const float v118 = m5[25];
    const float v119 = lax::max(v117, v118);
    const float v120 = m5[26];
    const float v121 = m5[27];
    const float v122 = lax::max(v120, v121);
    const float v123 = m5[28];
    const float v124 = m5[29];
    const float v125 = lax::max(v123, v124);
    const float v126 = m5[30];
    const float v127 = m5[31];
    const float v128 = lax::max(v126, v127);
    const float v63 = lax::max(v83, v86);
    const float v64 = lax::max(v89, v92);
    const float v65 = lax::max(v63, v64);
    const float v66 = lax::max(v95, v98);
    const float v67 = lax::max(v101, v104);
    const float v68 = lax::max(v66, v67);
    const float v69 = lax::max(v65, v68);
    const float v70 = lax::max(v107, v110);
    const float v71 = lax::max(v113, v116);
    const float v72 = lax::max(v70, v71);
    const float v73 = lax::max(v119, v122);
    const float v74 = lax::max(v125, v128);
    const float v75 = lax::max(v73, v74);
    const float v76 = lax::max(v72, v75);
    const float v77 = lax::max(v69, v76);
    sync_grid(grid);
    v1 = v77;
    swap(m2, m3);
    is_swapped_m2_0 = !is_swapped_m2_0;
    if (turn % 64 == 63 && from_first_block(thread == 0 && is_stopped(word), grid)) return;
  }
  if (is_swapped_m2_0) {
    swap(m2, m3);
    for (long i0 = thread; i0 < 65536; i0 += threads) {
      const float held = m2[(i0)];
      m2[(i0)] = m3[(i0)];
      m3[(i0)] = held;
    }
  }
  const float v78 = v1;
  if (thread == 0) m6[0] = v78;
}
