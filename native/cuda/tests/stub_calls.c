// SPDX-License-Identifier: Apache-2.0
/* More functions for the stub, which do what a test says (stub.call), and nothing without one. */
#include "stub.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct stub stub;

#define CALL(name, parameters, first, second, third)                                               \
	EXPORT int name parameters;                                                                \
	EXPORT int name parameters                                                                 \
	{                                                                                          \
		stub_call *call = __atomic_load_n(&stub.call, __ATOMIC_ACQUIRE);                   \
                                                                                                   \
		return call ? call(#name, (void *)(first), (void *)(second), (void *)(third)) : 0; \
	}

CALL(cuCtxSynchronize, (void), 0, 0, 0)
CALL(cuEventQuery, (void *event), event, 0, 0)
CALL(cuGraphHostNodeGetParams, (void *node, void *params), node, params, 0)
CALL(cuLaunchHostFunc, (void *stream, void *function, void *argument), stream, function, argument)
CALL(cuStreamAddCallback, (void *stream, void *function, void *argument, unsigned int flags), stream,
     function, argument)
CALL(cuStreamBeginCapture_v2, (void *stream, int mode), stream, (intptr_t)mode, 0)
CALL(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode), stream, (intptr_t)mode, 0)
CALL(cuStreamDestroy_v2, (void *stream), stream, 0, 0)
CALL(cuStreamEndCapture, (void *stream, void *graph), stream, graph, 0)
CALL(cuStreamEndCapture_ptsz, (void *stream, void *graph), stream, graph, 0)
CALL(cuStreamGetCtx, (void *stream, void *context), stream, context, 0)
CALL(cuStreamIsCapturing, (void *stream, int *status), stream, status, 0)
CALL(cuStreamSynchronize, (void *stream), stream, 0, 0)
