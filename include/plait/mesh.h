// Programs in several places at once: meshes, shard_map, and what places give each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/collectives.h>
#include <plait/transforms/shard_map.h>
