# SPDX-License-Identifier: Apache-2.0
# Workloads of the integration tests: make -C native OUT=dir workloads [WORKLOADS=dir]

WORKLOADS ?= $(OUT)/workloads
WORKLOAD_DIR := ../integration/workloads
WORKLOAD_NAMES := $(sort $(patsubst $(WORKLOAD_DIR)/%.c,%,$(wildcard $(WORKLOAD_DIR)/*.c)))
WORKLOAD_FILES := $(patsubst %,$(WORKLOADS)/%,counter $(WORKLOAD_NAMES))

.PHONY: workloads
workloads: $(WORKLOAD_FILES)

$(O)/workloads/%.o: $(WORKLOAD_DIR)/%.c Makefile
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) -Idemo -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(WORKLOADS)/counter: $(call objects,demo/counter.c $(DEMO_SHARED))
$(patsubst %,$(WORKLOADS)/%,$(WORKLOAD_NAMES)): $(WORKLOADS)/%: $(O)/workloads/%.o $(call objects,$(DEMO_SHARED))

$(WORKLOAD_FILES):
	$(call say,CC,workloads/$(@F))
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $(filter %.o,$^) $(LDFLAGS) -ldl -lpthread

DEPENDS += $(patsubst %,$(O)/workloads/%.d,$(WORKLOAD_NAMES))
