// SPDX-License-Identifier: Apache-2.0
/* Memory that stays the driver's: stream-ordered, managed, pinned, and what we could not make. It is
 * only counted, so that a checkpoint can be refused, or its cost told, before anything was touched. */
#include "memory.h"

#define FIRST_ROOM 1024 /* a power of two */

struct other_record {
	uint64_t address; /* 0: free */
	uint64_t size;
	CUcontext context;
	enum other kind;
};

static struct other_record *table;
static size_t room, used;
static uint64_t bytes[OTHERS], counts[OTHERS];

static size_t home(uint64_t address, size_t size)
{
	return (address >> 8) * 0x9e3779b97f4a7c15ull >> 20 & (size - 1);
}

static void insert(struct other_record *into, size_t size, struct other_record record)
{
	size_t at = home(record.address, size);

	while (into[at].address)
		at = (at + 1) & (size - 1);
	into[at] = record;
}

static bool grow(void)
{
	size_t wanted = room ? 2 * room : FIRST_ROOM;
	struct other_record *more = pages_take(wanted * sizeof(*more));

	if (!more)
		return false;
	for (size_t i = 0; i < room; i++)
		if (table[i].address)
			insert(more, wanted, table[i]);
	if (room)
		pages_give(table, room * sizeof(*table));
	table = more;
	room = wanted;
	return true;
}

static struct other_record *find(uint64_t address)
{
	if (!room)
		return NULL;
	for (size_t at = home(address, room); table[at].address; at = (at + 1) & (room - 1))
		if (table[at].address == address)
			return &table[at];
	return NULL;
}

/* Close the gap, so that no search ends too early. */
static void take_out(struct other_record *record)
{
	size_t gap = record - table, at = gap;

	bytes[record->kind] -= record->size;
	counts[record->kind]--;
	used--;
	for (;;) {
		size_t wanted;

		at = (at + 1) & (room - 1);
		if (!table[at].address)
			break;
		wanted = home(table[at].address, room);
		if (((at - wanted) & (room - 1)) < ((at - gap) & (room - 1)))
			continue;
		table[gap] = table[at];
		gap = at;
	}
	table[gap] = (struct other_record){ 0 };
}

/* Of memory that cannot be recorded the count is lost, which is told as none. */
void other_add(uint64_t address, uint64_t size, enum other kind)
{
	struct other_record record = { .address = address, .size = size, .kind = kind }, *there;

	if (!address)
		return;
	driver_CtxGetCurrent(&record.context);
	memory_lock();
	there = find(address);
	if (there)
		take_out(there); /* the driver gave that address again: it went without our knowing */
	if (2 * (used + 1) <= room || grow()) {
		insert(table, room, record);
		used++;
		bytes[kind] += size;
		counts[kind]++;
	}
	memory_unlock();
}

bool other_remove(uint64_t address)
{
	struct other_record *record;

	memory_lock();
	record = find(address);
	if (record)
		take_out(record);
	memory_unlock();
	return record;
}

/* Memory of pools and memory of other processes do not go with a context. */
void others_of_context_remove(CUcontext context)
{
	memory_lock();
	for (size_t i = 0; i < room;) {
		if (table[i].address && table[i].context == context && table[i].kind != OTHER_ASYNC)
			take_out(&table[i]); /* another one may have moved here */
		else
			i++;
	}
	memory_unlock();
}

uint64_t other_bytes(enum other kind)
{
	return bytes[kind];
}

uint64_t other_count(enum other kind)
{
	return counts[kind];
}

void others_forget(void)
{
	if (room)
		__builtin_memset(table, 0, room * sizeof(*table));
	used = 0;
	__builtin_memset(bytes, 0, sizeof(bytes));
	__builtin_memset(counts, 0, sizeof(counts));
}
