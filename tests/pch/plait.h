// The precompiled header of the examples and the benchmarks: what a user includes first. Every file
// still includes what it uses.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
