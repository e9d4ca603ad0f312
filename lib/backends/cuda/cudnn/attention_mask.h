// Masks of attention as cuDNN takes them: as what is added to scores, which generated loops make of
// the mask before each call of the library.
//
// Excluded pairs get a number beside which every score vanishes, so that a row without any pair is
// the mean of v, as plait has it. The statistics of such a row are that number, too: what they lack
// is the logarithm of the number of keys. So a gradient is given other operands for these rows:
// nothing is excluded, q is 0, and the statistics are that logarithm; and their dq is 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "backends/cuda/cudnn/attention_graph.h"
#include "backends/cuda/frame.h"

namespace plait::cuda {

// Of a mask [..., t, s] the sizes of what is added. With strides of 0 they are 1.
FourSizes bias_of(const Sizes64& shape, const Sizes64& strides);

class AttentionMask {
 public:
  // mask: [..., t, s]; q: [..., t, d]. Without memory.
  AttentionMask(const AttentionGraph& graph, const View& mask, const View& q, Device device);
  std::int64_t scratch_bytes() const { return frame_.bytes(); }

  // Of a call, before and behind that of the library: puts what is made in the scratch memory in
  // the place of operands and results.
  void before(const View& mask, const View& q, AttentionMemory& memory, char* scratch,
              const Launch& launch) const;
  // of_q: where the gradient of q belongs.
  void behind(const void* of_q, char* scratch, const Launch& launch) const;

 private:
  struct Made {
    View view;
    std::int64_t at = 0;
    View in(char* scratch) const {
      View placed = view;
      placed.data = scratch + at;
      return placed;
    }
  };
  Made make(DType dtype, const Sizes64& shape);

  const bool is_gradient_;
  const View narrow_;  // the mask without what is repeated
  Made bias_, has_pairs_, q_, statistics_, of_q_;
  std::unique_ptr<Kernel> before_, behind_;
  Frame frame_;
  std::int64_t before_at_ = 0, behind_at_ = 0;
};

}  // namespace plait::cuda
