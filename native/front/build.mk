# SPDX-License-Identifier: Apache-2.0
FRONT := front/args.c front/fail.c front/python.c

$(eval $(call program,diapause-runc,front/main.c front/config.c front/runtime.c front/scan.c $(FRONT)))
$(eval $(call program,diapause-hook,front/hook.c front/register.c front/told.c front/tree.c $(FRONT)))

$(call objects,front/python.c): front/start.py
