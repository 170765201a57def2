# SPDX-License-Identifier: Apache-2.0
# Tests that are about no single part. The contract runs on the software GPU in `make check`, and by
# hand on a driver: OUT/tests/contract --expected tests/contract/contract.expected

$(eval $(call test,contract,$(wildcard tests/contract/*.c) demo/kernels.c,-ldl -lpthread))

# On the software GPU beside them, unless LD_LIBRARY_PATH says otherwise.
SOFTGPU_TESTS := lock evacuate polls faults limits criu
SOFTGPU_TEST_SHARED := tests/softgpu/testing.c tests/softgpu/role.c $(DEMO_SHARED)
SOFTGPU_TEST_LIBS := -ldl -lpthread -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../softgpu'
$(foreach t,$(SOFTGPU_TESTS),$(eval $(call test,softgpu_$(t),tests/softgpu/$(t).c $(SOFTGPU_TEST_SHARED),$(SOFTGPU_TEST_LIBS))))
