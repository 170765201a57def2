# SPDX-License-Identifier: Apache-2.0
# The software GPU: a libcuda.so.1 that computes on the CPU, and its libnvidia-ml.so.1.

$(eval $(call library,softgpu/libcuda.so.1,$(sort $(wildcard softgpu/*.c)),-lpthread -Wl$(comma)-Bsymbolic,softgpu/libcuda.map,libcuda.so.1))
