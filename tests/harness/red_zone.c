/* SPDX-License-Identifier: Apache-2.0
 *
 * See red_zone.h.
 */
#include "tests/harness/red_zone.h"

/* gcc and clang each have their own way to say that ASan is on. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RED_ZONES 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RED_ZONES 1
#endif

#ifdef RED_ZONES
#include <sanitizer/asan_interface.h>

uint32_t
red_zone_is_seen(void)
{
	return 1;
}

void
red_zone_lay(const void *from, uint64_t bytes)
{
	__asan_poison_memory_region(from, (size_t)bytes);
}

void
red_zone_lift(const void *from, uint64_t bytes)
{
	__asan_unpoison_memory_region(from, (size_t)bytes);
}

uint32_t
red_zone_at(const void *byte)
{
	return __asan_address_is_poisoned(byte) != 0;
}
#else
uint32_t
red_zone_is_seen(void)
{
	return 0;
}

void
red_zone_lay(const void *from, uint64_t bytes)
{
	(void)from;
	(void)bytes;
}

void
red_zone_lift(const void *from, uint64_t bytes)
{
	(void)from;
	(void)bytes;
}

uint32_t
red_zone_at(const void *byte)
{
	(void)byte;
	return 0;
}
#endif

void
red_zone_lay_between(const spmla_plan *plan, uint32_t memory, const void *base)
{
	const uint8_t *at = base;
	uint32_t i;

	red_zone_lay(base, plan->region_bytes[memory]);
	for (i = 0; i < plan->row_count; i++)
		if (plan->extents[i].memory == memory)
			red_zone_lift(at + plan->extents[i].offset_bytes,
				      plan->extents[i].bytes);
}
