/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PTX of the kernels that the demo, the workloads and the contract test use. The software GPU
 * knows the same by name (softgpu/kernels.c); model.h is their arithmetic on the CPU. */
extern const char kernels_ptx[];

#define KERNEL_MULTIPLIER 6364136223846793005ull
#define KERNEL_INCREMENT 1442695040888963407ull
