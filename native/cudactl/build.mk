# SPDX-License-Identifier: Apache-2.0
$(eval $(call program,diapause-cudactl,cudactl/main.c cudactl/driver.c,-ldl -lpthread))
