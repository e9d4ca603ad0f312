// plait::image: images of another size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/image.h>
