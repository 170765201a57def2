# SPDX-License-Identifier: Apache-2.0
# Tests that are about no single part. The contract runs on the software GPU in `make check`, and by
# hand on a driver: OUT/tests/contract --expected tests/contract/contract.expected

$(eval $(call test,contract,$(wildcard tests/contract/*.c) demo/kernels.c,-ldl -lpthread))
