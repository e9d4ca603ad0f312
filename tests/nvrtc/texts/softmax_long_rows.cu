#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 3136 steps, by warps
extern "C" __global__ void softmax_long_rows0_0(In<float> m0, Out<float> m1) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 3136u; step += gridDim.x * blockDim.x / 32u) {
    const long v1 = step / 49u;
    const long v2 = step % 49u;
    float parts_of_v5[4] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
    #pragma unroll 8
    for (int turn = 0; turn < 8; ++turn) {
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        const long v3 = Lanes<32, false>::index(turn, k);
        const float v4 = m0[v1 * 50257 + v2 * 1024 + v3];
        parts_of_v5[k] = lax::max(parts_of_v5[k], v4);
      }
    }
    const float v5 = Lanes<32, false>::joined(parts_of_v5, [](float a, float b) { return lax::max(a, b); });
    if ((threadIdx.x & 31u) == 0) m1[v1 * 50 + v2] = v5;
  }
}

// 64 steps, by octets
extern "C" __global__ void softmax_long_rows0_1(In<float> m0, Out<float> m1) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 64u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step;
    float part_of_v9 = -HUGE_VALF;
    #pragma unroll 8
    for (long v7 = threadIdx.x & 7u; v7 < 81; v7 += 8) {
      const float v8 = m0[v1 * 50257 + v7 + 50176];
      part_of_v9 = lax::max(part_of_v9, v8);
    }
    part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 4));
    part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 2));
    part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 1));
    const float v9 = from_first_lane(part_of_v9);
    if ((threadIdx.x & 7u) == 0) m1[v1 * 50 + 49] = v9;
  }
}

// 2048 steps, by threads
extern "C" __global__ void softmax_long_rows0_2(Out<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 32u;
    const long v11 = step % 32u;
    const long v16 = lax::div(v11, 16L);
    const long v22 = lax::div(v11, 8L);
    const long v23 = lax::rem(v22, 2L);
    const long v27 = 25L + v23;
    const long v28 = lax::div(v27, 2L);
    const long v30 = lax::div(v11, 4L);
    const long v31 = lax::rem(v30, 2L);
    const long v35 = v28 + v31;
    const long v36 = lax::div(v35, 2L);
    const long v37 = lax::div(v11, 2L);
    const long v38 = lax::rem(v37, 2L);
    const long v42 = v36 + v38;
    const long v43 = lax::div(v42, 2L);
    const long v45 = lax::div(v11, 1L);
    const long v46 = lax::rem(v45, 2L);
    const long v47 = lax::div(v43, 2L);
    const long v48 = v46 * v47;
    const long v50 = v43 + v46;
    const long v51 = lax::div(v50, 2L);
    const long v52 = v51 - 1L;
    const float v53 = m1[v1 * 50 + v16 * 25 + v23 * 12 + v31 * 6 + v38 * 3 + v48];
    const float v55 = m1[v1 * 50 + v16 * 25 + v23 * 12 + v31 * 6 + v38 * 3 + v48 + v51 - 1];
    const bool v56 = v52 == 0L;
    const float v57 = lax::max(v53, v55);
    const float v58 = v56 ? v53 : v57;
    m2[v1 * 32 + v11] = v58;
  }
}

// 1024 steps, by threads
extern "C" __global__ void softmax_long_rows0_3(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1024u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 16u;
    const long v60 = step % 16u;
    const float v61 = m2[v1 * 32 + v60 * 2];
    const float v62 = m2[v1 * 32 + v60 * 2 + 1];
    const float v63 = lax::max(v61, v62);
    m3[v1 * 16 + v60] = v63;
  }
}

// 3136 steps, by warps
extern "C" __global__ void softmax_long_rows0_4(In<float> m0, Out<float> m3, Out<float> m4, Out<float> m5) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 3136u; step += gridDim.x * blockDim.x / 32u) {
    const long v1 = step / 49u;
    const long v104 = step % 49u;
    const float v65 = m3[v1 * 16];
    const float v66 = m3[v1 * 16 + 1];
    const float v81 = lax::max(v65, v66);
    const float v67 = m3[v1 * 16 + 2];
    const float v68 = m3[v1 * 16 + 3];
    const float v82 = lax::max(v67, v68);
    const float v83 = lax::max(v81, v82);
    const float v69 = m3[v1 * 16 + 4];
    const float v70 = m3[v1 * 16 + 5];
    const float v84 = lax::max(v69, v70);
    const float v71 = m3[v1 * 16 + 6];
    const float v72 = m3[v1 * 16 + 7];
    const float v85 = lax::max(v71, v72);
    const float v86 = lax::max(v84, v85);
    const float v87 = lax::max(v83, v86);
    const float v73 = m3[v1 * 16 + 8];
    const float v74 = m3[v1 * 16 + 9];
    const float v88 = lax::max(v73, v74);
    const float v75 = m3[v1 * 16 + 10];
    const float v76 = m3[v1 * 16 + 11];
    const float v89 = lax::max(v75, v76);
    const float v90 = lax::max(v88, v89);
    const float v77 = m3[v1 * 16 + 12];
    const float v78 = m3[v1 * 16 + 13];
    const float v91 = lax::max(v77, v78);
    const float v79 = m3[v1 * 16 + 14];
    const float v80 = m3[v1 * 16 + 15];
    const float v92 = lax::max(v79, v80);
    const float v93 = lax::max(v91, v92);
    const float v94 = lax::max(v90, v93);
    const float v95 = lax::max(v87, v94);
    float parts_of_v107[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    #pragma unroll 8
    for (int turn = 0; turn < 8; ++turn) {
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        const long v105 = Lanes<32, false>::index(turn, k);
        const float v202 = m0[v1 * 50257 + v104 * 1024 + v105];
        const float v203 = v202 - v95;
        const float v204 = lax::exp(v203);
        m4[v1 * 50257 + v104 * 1024 + v105] = v204;
        parts_of_v107[k] = parts_of_v107[k] + v204;
      }
    }
    const float v107 = Lanes<32, false>::joined(parts_of_v107, [](float a, float b) { return a + b; });
    if ((threadIdx.x & 31u) == 0) m5[v1 * 50 + v104] = v107;
  }
}

// 64 steps, by octets
extern "C" __global__ void softmax_long_rows0_5(In<float> m0, Out<float> m3, Out<float> m4, Out<float> m5) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 64u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step;
    const float v65 = m3[v1 * 16];
    const float v66 = m3[v1 * 16 + 1];
    const float v81 = lax::max(v65, v66);
    const float v67 = m3[v1 * 16 + 2];
    const float v68 = m3[v1 * 16 + 3];
    const float v82 = lax::max(v67, v68);
    const float v83 = lax::max(v81, v82);
    const float v69 = m3[v1 * 16 + 4];
    const float v70 = m3[v1 * 16 + 5];
    const float v84 = lax::max(v69, v70);
    const float v71 = m3[v1 * 16 + 6];
    const float v72 = m3[v1 * 16 + 7];
    const float v85 = lax::max(v71, v72);
    const float v86 = lax::max(v84, v85);
    const float v87 = lax::max(v83, v86);
    const float v73 = m3[v1 * 16 + 8];
    const float v74 = m3[v1 * 16 + 9];
    const float v88 = lax::max(v73, v74);
    const float v75 = m3[v1 * 16 + 10];
    const float v76 = m3[v1 * 16 + 11];
    const float v89 = lax::max(v75, v76);
    const float v90 = lax::max(v88, v89);
    const float v77 = m3[v1 * 16 + 12];
    const float v78 = m3[v1 * 16 + 13];
    const float v91 = lax::max(v77, v78);
    const float v79 = m3[v1 * 16 + 14];
    const float v80 = m3[v1 * 16 + 15];
    const float v92 = lax::max(v79, v80);
    const float v93 = lax::max(v91, v92);
    const float v94 = lax::max(v90, v93);
    const float v95 = lax::max(v87, v94);
    float part_of_v111 = 0.0f;
    #pragma unroll 8
    for (long v109 = threadIdx.x & 7u; v109 < 81; v109 += 8) {
      const float v205 = m0[v1 * 50257 + v109 + 50176];
      const float v206 = v205 - v95;
      const float v207 = lax::exp(v206);
      m4[v1 * 50257 + v109 + 50176] = v207;
      part_of_v111 = part_of_v111 + v207;
    }
    part_of_v111 = part_of_v111 + from_lane_after(part_of_v111, 4);
    part_of_v111 = part_of_v111 + from_lane_after(part_of_v111, 2);
    part_of_v111 = part_of_v111 + from_lane_after(part_of_v111, 1);
    const float v111 = from_first_lane(part_of_v111);
    if ((threadIdx.x & 7u) == 0) m5[v1 * 50 + 49] = v111;
  }
}

// 2048 steps, by threads
extern "C" __global__ void softmax_long_rows0_6(Out<float> m5, Out<float> m6) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 32u;
    const long v113 = step % 32u;
    const long v114 = lax::div(v113, 16L);
    const long v118 = lax::div(v113, 8L);
    const long v119 = lax::rem(v118, 2L);
    const long v122 = 25L + v119;
    const long v123 = lax::div(v122, 2L);
    const long v124 = lax::div(v113, 4L);
    const long v125 = lax::rem(v124, 2L);
    const long v128 = v123 + v125;
    const long v129 = lax::div(v128, 2L);
    const long v130 = lax::div(v113, 2L);
    const long v131 = lax::rem(v130, 2L);
    const long v134 = v129 + v131;
    const long v135 = lax::div(v134, 2L);
    const long v136 = lax::div(v113, 1L);
    const long v137 = lax::rem(v136, 2L);
    const long v138 = lax::div(v135, 2L);
    const long v139 = v137 * v138;
    const long v141 = v135 + v137;
    const long v142 = lax::div(v141, 2L);
    const long v143 = v142 - 1L;
    const float v144 = m5[v1 * 50 + v114 * 25 + v119 * 12 + v125 * 6 + v131 * 3 + v139];
    const float v146 = m5[v1 * 50 + v114 * 25 + v119 * 12 + v125 * 6 + v131 * 3 + v139 + v142 - 1];
    const bool v147 = v143 == 0L;
    const float v148 = v144 + v146;
    const float v149 = v147 ? v144 : v148;
    m6[v1 * 32 + v113] = v149;
  }
}

// 1024 steps, by threads
extern "C" __global__ void softmax_long_rows0_7(Out<float> m6, Out<float> m7) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1024u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 16u;
    const long v151 = step % 16u;
    const float v152 = m6[v1 * 32 + v151 * 2];
    const float v153 = m6[v1 * 32 + v151 * 2 + 1];
    const float v154 = v152 + v153;
    m7[v1 * 16 + v151] = v154;
  }
}

// 3216448 steps, by threads
extern "C" __global__ void softmax_long_rows0_8(Out<float> m4, Out<float> m7, Out<float> m8) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 3216448u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 50257u;
    const long v188 = step % 50257u;
    const float v189 = m4[v1 * 50257 + v188];
    const float v156 = m7[v1 * 16];
    const float v157 = m7[v1 * 16 + 1];
    const float v172 = v156 + v157;
    const float v158 = m7[v1 * 16 + 2];
    const float v159 = m7[v1 * 16 + 3];
    const float v173 = v158 + v159;
    const float v174 = v172 + v173;
    const float v160 = m7[v1 * 16 + 4];
    const float v161 = m7[v1 * 16 + 5];
    const float v175 = v160 + v161;
    const float v162 = m7[v1 * 16 + 6];
    const float v163 = m7[v1 * 16 + 7];
    const float v176 = v162 + v163;
    const float v177 = v175 + v176;
    const float v178 = v174 + v177;
    const float v164 = m7[v1 * 16 + 8];
    const float v165 = m7[v1 * 16 + 9];
    const float v179 = v164 + v165;
    const float v166 = m7[v1 * 16 + 10];
    const float v167 = m7[v1 * 16 + 11];
    const float v180 = v166 + v167;
    const float v181 = v179 + v180;
    const float v168 = m7[v1 * 16 + 12];
    const float v169 = m7[v1 * 16 + 13];
    const float v182 = v168 + v169;
    const float v170 = m7[v1 * 16 + 14];
    const float v171 = m7[v1 * 16 + 15];
    const float v183 = v170 + v171;
    const float v184 = v182 + v183;
    const float v185 = v181 + v184;
    const float v186 = v178 + v185;
    const float v191 = v189 / v186;
    m8[v1 * 50257 + v188] = v191;
  }
}
