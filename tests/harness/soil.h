/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of any kind in the buffers of a plan, for tests that nothing which lies
 * there can make a step fault.
 */
#ifndef TESTS_HARNESS_SOIL_H
#define TESTS_HARNESS_SOIL_H

#include "tests/harness/fixture.h"

/* Words of every kind: small, limits, anything. */
void soil(void *bytes, uint64_t count, uint64_t *rng);

/* One in so many of the DEVICE and CACHE buffers, but for STEP_STATE. */
void soil_buffers(const fixture *f, uint64_t *rng, uint32_t one_in);

/* What the device has done, and that number again, so that the ring goes on
 * whatever the steps in between made of it. */
uint64_t soil_begin(const fixture *f);
void soil_end(const fixture *f, uint64_t done);

#endif
