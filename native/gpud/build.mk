# SPDX-License-Identifier: Apache-2.0
# What the GPU controller computes with: the hash of a block, for the GPU and for the CPU.

GPUD_BLOCKS := gpud/block_hash.c gpud/library.c
$(eval $(call library,lib/libdiapause-blocks.so,$(GPUD_BLOCKS),,,))

ARTIFACTS += $(OUT)/lib/block_hash.ptx
$(OUT)/lib/block_hash.ptx: gpud/block_hash.ptx
	$(Q)mkdir -p $(@D) && cp $< $@

# A loop over 64-bit words that is worth every unrolling.
$(call objects,gpud/block_hash.c): CFLAGS += -O3
