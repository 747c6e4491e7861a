/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that belong to no buffer, in a build with ASan: touching them ends the
 * program. A region is one allocation, so ASan by itself does not notice a
 * kernel that strays from one buffer of a step into the next.
 */
#ifndef TESTS_HARNESS_RED_ZONE_H
#define TESTS_HARNESS_RED_ZONE_H

#include "spmla/spmla.h"

/* Whether this build detects such accesses. */
uint32_t red_zone_is_seen(void);

/* Marks these bytes until their block is freed or lifted. */
void red_zone_lay(const void *from, uint64_t bytes);
void red_zone_lift(const void *from, uint64_t bytes);

/* Marks all bytes of the region at `base` that are in no extent of the plan.
 * With SPMLA_CONFIG_APART there are some between any two. */
void red_zone_lay_between(const spmla_plan *plan, uint32_t memory,
			  const void *base);

/* Whether touching the byte ends the program. */
uint32_t red_zone_at(const void *byte);

#endif
