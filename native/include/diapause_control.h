/* SPDX-License-Identifier: Apache-2.0
 *
 * The control channel between libdiapause-cuda.so in a process and the tools on the host.
 *
 * The library holds a sealed memfd called DIAPAUSE_PAGE_NAME, one struct diapause_page long, and
 * both ends of a SOCK_SEQPACKET pair. A tool finds the memfd among the file descriptors of the
 * process, takes the end whose number the page tells (pidfd_getfd), sends one frame a request and
 * gets one frame an answer. The same layout is in runtime/engine/control.
 *
 * Everything is little endian. The major number changes when an older side would misunderstand; a
 * tool speaks its own major and the one before. New ops and counters only raise the minor number.
 */
#ifndef DIAPAUSE_CONTROL_H
#define DIAPAUSE_CONTROL_H

#include <stdint.h>

#define DIAPAUSE_MAJOR 1
#define DIAPAUSE_MAJOR_OLDEST 1 /* the oldest that this side answers */
#define DIAPAUSE_MINOR 1

#define DIAPAUSE_PAGE_NAME "diapause-control-v1"
#define DIAPAUSE_PAGE_SIZE 4096
#define DIAPAUSE_PAGE_MAGIC 0x3153554150414944ull /* "DIAPAUS1" */

enum diapause_counter {
	DIAPAUSE_COUNT_INIT,	  /* successful cuInit calls */
	DIAPAUSE_COUNT_RESOLVED,  /* cuGetProcAddress answers that lead to an entry of ours */
	DIAPAUSE_COUNT_LOOKED_UP, /* dlsym answers that were exchanged for an entry of ours */
	DIAPAUSE_COUNT_REFUSED,	  /* unknown variants of replaced functions: not found */
	DIAPAUSE_COUNT_ANSWERED,  /* requests answered with status 0 */
	DIAPAUSE_COUNT_REJECTED,  /* requests answered with another status */
	DIAPAUSE_COUNT_DROPPED,	  /* messages that were no request at all */
	DIAPAUSE_COUNT_FOREIGN,	  /* cuGetProcAddress answers that are no exported function: passed on */
	/* since minor 1: allocations with DIAPAUSE_MEMORY_IMPORTED that the process let go of. Its low half
	 * is a futex that is woken then: whoever has the fd of one keeps its memory from being free. */
	DIAPAUSE_COUNT_RELEASED,
	DIAPAUSE_COUNTERS
};

/* A tool may write CLOSING over OPEN in the page of a process that is frozen, so that no call of it
 * begins when it is thawed; everything else is the library's to write. */
enum diapause_gate {
	DIAPAUSE_GATE_OPEN,
	DIAPAUSE_GATE_CLOSING, /* calls from inside a callback of the driver pass, others wait */
	DIAPAUSE_GATE_CLOSED,  /* all wait */
};

struct diapause_page {
	uint64_t magic; /* written last */
	uint32_t major;
	uint32_t minor;
	int32_t pid;   /* the owner as it sees itself; a child that inherited the page differs */
	int32_t peer;  /* number of the tool's end, -1: nobody answers any more */
	uint32_t gate; /* enum diapause_gate; a futex that a tool may wake */
	uint32_t reserved;
	uint64_t counters[DIAPAUSE_COUNTERS];
};

#define DIAPAUSE_FRAME_MAGIC 0x46504944u /* "DIPF" */
#define DIAPAUSE_FRAME_MAX 65536	 /* header and payload */
#define DIAPAUSE_FRAME_FDS 16

/* An epoch is one use of the channel by one tool: hello begins it, and a request of another epoch
 * is refused. A request that comes twice with the same epoch and seq gets the same answer twice; the
 * ops that move memory can be repeated with any seq: what is done already is not done again. */
struct diapause_frame {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint16_t op;
	uint16_t nfds; /* file descriptors that travel with the frame */
	uint32_t epoch;
	uint32_t seq;
	uint32_t len;	   /* bytes after the header */
	uint32_t status;   /* 0 in a request */
	uint32_t reserved; /* 0 */
};

enum diapause_op {
	DIAPAUSE_OP_HELLO = 1,	  /* → struct diapause_hello */
	DIAPAUSE_OP_COUNTERS = 2, /* → uint64_t[], as many as the library has */
	/* since minor 1: */
	DIAPAUSE_OP_QUIESCE = 3, /* struct diapause_quiesce → struct diapause_quiet: gates closed, GPU idle */
	DIAPAUSE_OP_MEMORY = 4,	 /* uint64_t first id → struct diapause_memory[], empty: no more */
	DIAPAUSE_OP_DEVICES = 5, /* → struct diapause_device[] */
	DIAPAUSE_OP_EXPORT = 6,	 /* uint64_t id[] → the same, and an fd for each */
	DIAPAUSE_OP_DROP = 7,	 /* → struct diapause_dropped: memory unmapped and released */
	DIAPAUSE_OP_ATTACH = 8,	 /* uint64_t id[], and an fd for each → nothing: mapped as it was */
	DIAPAUSE_OP_OPEN = 9,	 /* → nothing: gates open; every allocation has to be attached */
	DIAPAUSE_OP_STATS = 10,	 /* → struct diapause_stats */
	DIAPAUSE_OP_REHOME = 11, /* uint64_t id[] → nothing: in memory of our own again, to be exported */
};

enum diapause_status {
	DIAPAUSE_OK = 0,
	DIAPAUSE_BAD_FRAME = 1, /* lengths, fds or ids that do not fit the op */
	DIAPAUSE_BAD_MAJOR = 2, /* the header of the answer tells the newest that is spoken */
	DIAPAUSE_BAD_OP = 3,
	DIAPAUSE_BAD_EPOCH = 4,
	DIAPAUSE_BUSY = 5,  /* not quiet before the timeout, gates open again: struct diapause_quiet */
	DIAPAUSE_GPU = 6,   /* the driver refused: struct diapause_failure */
	DIAPAUSE_STATE = 7, /* the gates, or the allocations that were named, are in another state */
};

#define DIAPAUSE_HELLO_SOFTWARE 1u /* the real library is the software GPU */

struct diapause_hello {
	int32_t pid;
	uint32_t flags;
	int32_t driver;	      /* cuDriverGetVersion, 0: unknown */
	uint32_t functions;   /* entries of the table that the real library has */
	uint64_t real_path;   /* FNV-1a of the path of the real library */
	uint8_t build_id[20]; /* of this library, zero when it has none */
	uint8_t reserved[4];
	uint32_t thread; /* since minor 1: the control thread as the process sees it */
	uint32_t gate;	 /* since minor 1: enum diapause_gate */
};

struct diapause_quiesce {
	uint32_t timeout_ms;
	uint32_t flags; /* 0 */
};

/* What there is to wait for, or was when the time was over. */
struct diapause_quiet {
	uint32_t captures; /* streams that capture a graph */
	uint32_t inside;   /* threads inside a call */
	uint32_t contexts; /* drained */
	uint32_t reserved;
};

#define DIAPAUSE_IDS 16 /* at most in one request */

#define DIAPAUSE_MEMORY_ATTACHED 1u /* it has memory now */
#define DIAPAUSE_MEMORY_IMPORTED \
	2u /* we brought it back: it can be exported by whoever has its fd, or REHOME */
#define DIAPAUSE_MEMORY_FOREIGN 4u  /* the program imported it: it cannot be taken away */
#define DIAPAUSE_MEMORY_SHARED 8u   /* the program exported it */
#define DIAPAUSE_MEMORY_SLAB 16u    /* small allocations share it */
#define DIAPAUSE_MEMORY_PROGRAM 32u /* made by the program with cuMemCreate */

struct diapause_memory {
	uint64_t id;	  /* counts up, never used again */
	uint64_t address; /* of its first mapping, 0: nowhere */
	uint64_t size;	  /* bytes of device memory */
	uint64_t used;	  /* bytes that the program asked for */
	uint32_t device;  /* ordinal in the process */
	uint32_t flags;
};

struct diapause_device {
	uint8_t uuid[16];
	uint32_t ordinal;
	uint32_t contexts; /* that live on it */
};

/* Everything that is away at the moment, this request's doing or not. */
struct diapause_dropped {
	uint64_t bytes;
	uint32_t count;
	uint32_t reserved;
};

struct diapause_failure {
	int32_t result; /* CUresult */
	uint32_t reserved;
	uint64_t id; /* of the allocation, 0: of none */
};

/* Bytes of device memory by the way they took, then numbers of things. A newer minor appends. */
struct diapause_stats {
	uint64_t tracked;	/* cuMemAlloc, in handles of their own */
	uint64_t slab;		/* cuMemAlloc, in shared handles */
	uint64_t program;	/* cuMemCreate by the program */
	uint64_t foreign;	/* imported by the program */
	uint64_t async;		/* stream-ordered: the driver's to save */
	uint64_t managed;	/* the driver refuses to checkpoint it */
	uint64_t pinned;	/* host memory that the program made with the driver */
	uint64_t native;	/* cuMemAlloc that we left to the driver */
	uint64_t allocations;	/* of cuMemAlloc, in ours */
	uint64_t ipc_given;	/* legacy IPC handles asked for */
	uint64_t ipc_opened;	/* and opened: memory of other processes */
	uint64_t multicast;	/* live multicast objects: the driver's checkpoint hangs */
	uint64_t managed_count; /* live managed allocations */
	uint64_t foreign_count; /* live imports of the program */
};

_Static_assert(sizeof(struct diapause_page) <= DIAPAUSE_PAGE_SIZE, "the page is one page");
_Static_assert(sizeof(struct diapause_frame) == 32, "the header has no padding");
_Static_assert(sizeof(struct diapause_hello) == 56, "the answer has no padding");
_Static_assert(sizeof(struct diapause_memory) == 40, "the answer has no padding");
_Static_assert(sizeof(struct diapause_device) == 24, "the answer has no padding");
_Static_assert(sizeof(struct diapause_stats) == 14 * 8, "the answer has no padding");

#endif
