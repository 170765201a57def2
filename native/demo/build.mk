# SPDX-License-Identifier: Apache-2.0
# The demo's program, and what it shares with integration/workloads.

DEMO_SHARED := demo/cuda_load.c demo/gpu.c demo/kernels.c demo/report.c

$(eval $(call program,diapause-counter,demo/counter.c $(DEMO_SHARED),-ldl))
