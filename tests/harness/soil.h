/* SPDX-License-Identifier: Apache-2.0
 *
 * Arbitrary bytes in the buffers of a plan, for tests that no contents can make
 * a step fault.
 */
#ifndef TESTS_HARNESS_SOIL_H
#define TESTS_HARNESS_SOIL_H

#include "tests/harness/fixture.h"

/* Words of every kind: small, limits, anything. */
void soil(void *bytes, uint64_t count, uint64_t *rng);

/* Soils one in `one_in` of the DEVICE and CACHE buffers, except STEP_STATE. */
void soil_buffers(const fixture *f, uint64_t *rng, uint32_t one_in);

/* _begin returns the device's counter of finished records. _end restores it, so
 * that the ring continues whatever the steps in between did to it. */
uint64_t soil_begin(const fixture *f);
void soil_end(const fixture *f, uint64_t done);

#endif
