# SPDX-License-Identifier: Apache-2.0
# libdiapause-cuda.so and its checksum: the copies on a host are named by it.

CUDA_LIBRARY := $(OUT)/lib/libdiapause-cuda.so
CUDA_C := $(filter-out cuda/tests/%,$(wildcard cuda/*.c))
CUDA_OBJECTS := $(CUDA_C:%.c=$(O)/%.o) $(O)/cuda/entries.o $(O)/cuda/dlsym.o

ARTIFACTS += $(CUDA_LIBRARY) $(CUDA_LIBRARY).sha256
DEPENDS += $(CUDA_OBJECTS:.o=.d)

$(CUDA_LIBRARY): $(CUDA_OBJECTS) cuda/export.map
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -shared -o $@ $(CUDA_OBJECTS) $(LDFLAGS) -Wl,-z,nodelete \
		-Wl,--version-script=cuda/export.map -Wl,-soname,libcuda.so.1 -ldl -lpthread

$(O)/cuda/gate_calls.o: CFLAGS += -fomit-frame-pointer

$(CUDA_LIBRARY).sha256: $(CUDA_LIBRARY)
	$(Q)cd $(@D) && sha256sum $(<F) > $@

$(O)/cuda/%.o: cuda/%.S
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# Its tests: a stub in the place of the real library, and names under which a program finds ours.

CUDA_STUB := $(OUT)/cuda-tests/stub/libcuda.so.1
CUDA_STUB_SYSV := $(OUT)/cuda-tests/stub-sysv/libcuda.so.1
CUDA_INTERPOSERS := $(addprefix $(OUT)/cuda-tests/interposer-,plain.so dlsym.so early.so)
CUDA_REPLACED := $(addprefix $(OUT)/cuda-tests/replaced/,libcuda.so libcuda.so.1 libcuda.so.580.00 another.so)
CUDA_TESTS := $(addprefix $(OUT)/tests/cuda_,loading interposers forward table control criu softgpu)

$(eval $(call test,cuda_loading,cuda/tests/loading.c,-ldl))
$(eval $(call test,cuda_interposers,cuda/tests/interposers.c,-ldl))
$(eval $(call test,cuda_forward,cuda/tests/forward.c,-ldl -lpthread))
$(eval $(call test,cuda_table,cuda/tests/table.c))
$(eval $(call test,cuda_control,cuda/tests/control.c,-ldl -lpthread))
$(eval $(call test,cuda_criu,cuda/tests/criu.c,-ldl))
$(eval $(call test,cuda_softgpu,cuda/tests/softgpu.c))
$(eval $(call test,cuda_gate_model,cuda/tests/gate_model.c,-lpthread))
$(eval $(call test,cuda_linked,cuda/tests/linked.c,$(CUDA_STUB) -ldl -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../cuda-tests/stub'))

$(OUT)/tests/cuda_linked: $(CUDA_STUB)
$(OUT)/tests/cuda_softgpu: $(OUT)/softgpu/libcuda.so.1 $$(WORKLOAD_FILES)
$(CUDA_TESTS) $(OUT)/tests/cuda_linked: $(CUDA_LIBRARY) $(CUDA_STUB) $(CUDA_STUB_SYSV) $(CUDA_INTERPOSERS) $(CUDA_REPLACED)

# Those of the memory have the software GPU behind it.
CUDA_MEMORY_TESTS := handover memory
$(foreach t,$(CUDA_MEMORY_TESTS),$(eval $(call test,cuda_$(t),cuda/tests/$(t).c tests/contract/api.c,-ldl -lpthread)))
$(CUDA_MEMORY_TESTS:%=$(OUT)/tests/cuda_%): $(CUDA_LIBRARY) $(CUDA_REPLACED) $(OUT)/softgpu/libcuda.so.1

# Those of the gate have the library's objects inside, so that they can close it themselves.
GATE_STUB := $(OUT)/cuda-tests/stub-calls/libcuda.so.1
GATE_NAMES := gate_close gate_threads gate_captures gate_callbacks gate_hammer
GATE_TESTS := $(GATE_NAMES:%=$(OUT)/tests/cuda_%)
TESTS += $(GATE_TESTS)
DEPENDS += $(GATE_NAMES:%=$(O)/cuda/tests/%.d) $(O)/cuda/tests/stub_calls.d

$(GATE_TESTS): $(OUT)/tests/cuda_%: $(O)/cuda/tests/%.o $(CUDA_OBJECTS) $(GATE_STUB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $(filter %.o,$^) $(LDFLAGS) -ldl -lpthread

$(GATE_STUB): $(O)/cuda/tests/stub_calls.o
$(CUDA_STUB) $(CUDA_STUB_SYSV) $(GATE_STUB): $(O)/cuda/tests/stub.o
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -shared -o $@ $^ $(LDFLAGS) -Wl,-soname,libcuda.so.1 \
		-Wl,--hash-style=$(if $(findstring sysv,$@),sysv,gnu)

$(OUT)/cuda-tests/interposer-plain.so: CPPFLAGS += -DPLAIN
$(OUT)/cuda-tests/interposer-dlsym.so: CPPFLAGS += -DWRAP_DLSYM
$(OUT)/cuda-tests/interposer-early.so: CPPFLAGS += -DEARLY
$(CUDA_INTERPOSERS): cuda/tests/interposer.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) -shared -o $@ $< $(LDFLAGS) -ldl

$(OUT)/cuda-tests/replaced/another.so: $(CUDA_LIBRARY)
	$(Q)mkdir -p $(@D) && cp $< $@

$(OUT)/cuda-tests/replaced/libcuda%: $(CUDA_LIBRARY)
	$(Q)mkdir -p $(@D) && ln -sf ../../lib/libdiapause-cuda.so $@

# By hand: what a forwarded call costs, and what a real driver's resolver gives.
$(OUT)/cuda-tests/cost $(OUT)/cuda-tests/identity: $(OUT)/cuda-tests/%: $(O)/cuda/tests/%.o $(CUDA_LIBRARY) $(CUDA_STUB)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $< $(LDFLAGS) -ldl

# By hand: the gate under ThreadSanitizer, which knows nothing of membarrier but has to see the order that
# the gate makes. It wants a younger libc.
$(OUT)/cuda-tests/gate-race: cuda/tests/gate_race.c cuda/gate.c cuda/gate_thread.c cuda/gate_wait.c cuda/gate.h
	$(Q)mkdir -p $(@D) && $(ZIG) cc -target $(firstword $(subst ., ,$(TARGET))).2.34 -fsanitize=thread -g \
		$(filter-out -fno-sanitize=all,$(CFLAGS)) -o $@ $(filter %.c,$^) -ldl -lpthread
