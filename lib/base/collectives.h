// Collectives of arrays: a communicator moves bytes, this adds.
//
// NOTE: [sums over ranks] What ranks give is combined in pairs of neighbours, level by level, in
// the order of their places: ((x0 + x1) + (x2 + x3)) + x4. Each pair is what the primitives add,
// max and min give, rounded to the dtype, so the bits depend neither on what arrives first nor on
// how arrays are cut, and one process that combines the same arrays by combine_in_tree, or by these
// primitives in this order, has the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/communicator.h>
#include <plait/base/dtype.h>

#include <cstdint>
#include <span>
#include <string>

namespace plait {

enum class Combination { sum, max, min };  // of bools: max is or, min is and

// DtypeError for what cannot be combined so: sums of bools, extremes of complex numbers, stored
// dtypes.
void check_combination(Combination combination, DType dtype);

// out[i] = the combination of arrays[..][i], for i < count. out may be one of the arrays.
void combine_in_tree(Combination combination, DType dtype, std::span<const void* const> arrays,
                     void* out, std::int64_t count);

// The combination of what all ranks have as `in`, on each of them. out may be in. Calls of
// different purposes, combinations or dtypes do not meet.
void all_reduce(Communicator& communicator, const Ranks& ranks, Combination combination,
                DType dtype, const void* in, void* out, std::int64_t count, const std::string& what,
                std::uint64_t purpose = 0);

// Block i of the combination on rank i of the list, where `in` is one block of `count` elements
// after the other.
void reduce_scatter(Communicator& communicator, const Ranks& ranks, Combination combination,
                    DType dtype, const void* in, void* out, std::int64_t count,
                    const std::string& what, std::uint64_t purpose = 0);

// Compares what the ranks of a group are about to do, by its hash. JobError on each of them where
// they differ, with the ranks and what each says of itself (`what`), and the first lines in which
// the programs differ; also where the call is not the same one of the group's.
void agree(Communicator& communicator, const Ranks& ranks, std::uint64_t hash,
           const std::string& what, const std::string& program = {});

}  // namespace plait
