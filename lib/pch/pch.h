// The precompiled header of the library: what most of its files include, which takes much of the
// time of compiling them. Every file still includes what it uses.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <cmath>
