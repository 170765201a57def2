// SPDX-License-Identifier: Apache-2.0
/* The program's handles by the name it knows them by, and its mappings by address.
 *
 * A handle that was brought back is another one to the driver, but not to the program: its name stays
 * what the driver called it first. When a later handle would get a name that is taken, it gets one
 * that no driver gives. */
#include "memory.h"

#define BUCKETS 4096
#define INVENTED 0xd1a0000000000000ull
#define MINIMUM 512 /* places */

static struct backing *buckets[BUCKETS];

static struct mapping **places; /* by address */
static size_t n_places, room;

static struct backing **bucket_of(driver_handle name)
{
	return &buckets[name * 0x9e3779b97f4a7c15ull >> 52];
}

struct backing *name_find(driver_handle name)
{
	struct backing *backing = *bucket_of(name);

	while (backing && backing->name != name)
		backing = backing->same_bucket;
	return backing;
}

void name_add(struct backing *backing)
{
	struct backing **bucket;

	backing->name = backing->real;
	if (!backing->name || name_find(backing->name))
		backing->name = INVENTED | backing->id;
	bucket = bucket_of(backing->name);
	backing->same_bucket = *bucket;
	*bucket = backing;
}

void name_remove(struct backing *backing)
{
	struct backing **at = bucket_of(backing->name);

	while (*at && *at != backing)
		at = &(*at)->same_bucket;
	if (*at)
		*at = backing->same_bucket;
}

/* Index of the first mapping that ends above `address`. */
static size_t position(uint64_t address)
{
	size_t low = 0, high = n_places;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (places[middle]->address + places[middle]->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool grow(void)
{
	size_t wanted = room ? 2 * room : MINIMUM;
	struct mapping **more = pages_take(wanted * sizeof(*more));

	if (!more)
		return false;
	if (room) {
		__builtin_memcpy(more, places, n_places * sizeof(*more));
		pages_give(places, room * sizeof(*places));
	}
	places = more;
	room = wanted;
	return true;
}

bool place_add(struct mapping *mapping)
{
	size_t at;

	if (n_places == room && !grow())
		return false;
	at = position(mapping->address);
	__builtin_memmove(&places[at + 1], &places[at], (n_places - at) * sizeof(*places));
	places[at] = mapping;
	n_places++;
	return true;
}

struct mapping *place_next(uint64_t address, uint64_t end)
{
	size_t at = position(address);

	return at < n_places && places[at]->address < end ? places[at] : NULL;
}

struct mapping *place_find(uint64_t address)
{
	return place_next(address, address + 1);
}

void place_remove(struct mapping *mapping)
{
	size_t at = position(mapping->address);

	__builtin_memmove(&places[at], &places[at + 1], (n_places - at - 1) * sizeof(*places));
	n_places--;
}

void names_forget(void)
{
	__builtin_memset(buckets, 0, sizeof(buckets));
	n_places = 0;
}
