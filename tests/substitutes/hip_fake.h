/* SPDX-License-Identifier: Apache-2.0
 *
 * A HIP runtime for tests: cuda_fake.h is what HIP shares with CUDA, and here
 * is the rest. It has two devices; the first is current.
 */
#ifndef TESTS_SUBSTITUTES_HIP_FAKE_H
#define TESTS_SUBSTITUTES_HIP_FAKE_H

#include "tests/substitutes/cuda_fake.h"

typedef struct hip_fake {
	/* What it is; the test may change it. */
	const char *arch; /* "gfx942:sramecc+:xnack-" */
	int width;        /* of a subgroup */
	/* What happened. */
	int current; /* device */
} hip_fake;

extern hip_fake fake_hip;

/* It has the functions of a runtime that has all three of
 * SPMLA_HIP_PROPERTIES; the test may take some away. */
extern spmla_i_hip_driver hip_fake_driver;

/* As cuda_fake_reset, for ROCm 6.2 and devices of this architecture, whose
 * subgroups the emulator takes. cuda_fake_backend and its rig are of HIP. */
void hip_fake_reset(const char *arch);

#endif
