// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

const char kernels_ptx[] = {
#embed "kernels.ptx"
	, 0
};
