// SPDX-License-Identifier: Apache-2.0
/* gated_NAME for every function of gates.def: through the gate and on to the real one, by the same slot
 * that a forwarded function jumps through, so that the first call loads the real library. */
#include "gate.h"
#include "library.h"

/* What the headers hand over by value: IPC handles and EGL frames, locations. */
struct bytes64 {
	uint64_t words[8];
};

struct location {
	int type, id;
};

/* Names with a `_` behind them: the parameters have theirs from the headers. */
#define GATE(name, parameters, arguments)                                                          \
	CUresult gated_##name parameters;                                                          \
	CUresult gated_##name parameters                                                           \
	{                                                                                          \
		CUresult(*real_) parameters;                                                       \
		CUresult result_;                                                                  \
                                                                                                   \
		gate_enter();                                                                      \
		real_ = atomic_load_explicit(&diapause_slots[ENTRY_##name], memory_order_relaxed); \
		result_ = real_ arguments;                                                         \
		gate_leave();                                                                      \
		return result_;                                                                    \
	}
#include "gates.def"
