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

$(CUDA_LIBRARY).sha256: $(CUDA_LIBRARY)
	$(Q)sha256sum $< | cut -d' ' -f1 > $@

$(O)/cuda/%.o: cuda/%.S
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
