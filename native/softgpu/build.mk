# SPDX-License-Identifier: Apache-2.0
# The software GPU: a libcuda.so.1 that computes on the CPU, and its libnvidia-ml.so.1.

SOFTGPU_SOURCES := $(sort $(wildcard softgpu/*.c)) gpud/block_hash.c
SOFTGPU_NVML_SOURCES := $(sort $(wildcard softgpu/nvml/*.c)) softgpu/identity.c

$(eval $(call library,softgpu/libcuda.so.1,$(SOFTGPU_SOURCES),-lpthread -Wl$(comma)-Bsymbolic,softgpu/libcuda.map,libcuda.so.1))
$(eval $(call library,softgpu/libnvidia-ml.so.1,$(SOFTGPU_NVML_SOURCES),-Wl$(comma)-Bsymbolic,softgpu/nvml/libnvidia-ml.map,libnvidia-ml.so.1))
