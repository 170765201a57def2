# SPDX-License-Identifier: Apache-2.0
# Tests that are about no single part. On a driver instead of the software GPU: OUT/tests/contract

$(eval $(call test,contract,$(wildcard tests/contract/*.c) demo/kernels.c,-ldl -lpthread))
$(O)/tests/contract/compare.o: tests/contract/contract.expected
$(OUT)/tests/contract: $(OUT)/softgpu/libcuda.so.1 $(OUT)/lib/libdiapause-cuda.so

$(eval $(call test,replaced,$(wildcard tests/replaced/*.c) demo/kernels.c,-ldl))
$(O)/tests/replaced/compare.o: tests/replaced/allowed.txt
$(OUT)/tests/replaced: $(OUT)/softgpu/libcuda.so.1 $(OUT)/lib/libdiapause-cuda.so

# On the software GPU beside them, unless LD_LIBRARY_PATH says otherwise.
SOFTGPU_TESTS := lock evacuate polls faults limits held exported streams criu
SOFTGPU_TEST_SHARED := tests/softgpu/testing.c tests/softgpu/role.c $(DEMO_SHARED)
SOFTGPU_TEST_LIBS := -ldl -lpthread -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../softgpu'
$(foreach t,$(SOFTGPU_TESTS),$(eval $(call test,softgpu_$(t),tests/softgpu/$(t).c $(SOFTGPU_TEST_SHARED),$(SOFTGPU_TEST_LIBS))))
