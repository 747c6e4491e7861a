/* SPDX-License-Identifier: Apache-2.0
 *
 * See emulator_rig.h.
 */
#include "tests/core/emulator_rig.h"

#include "tests/harness/fixture.h"

#include <string.h>

void
rig_run(emulator_kernel kernel, uint32_t width, uint32_t blocks,
	const void *params, uint32_t number)
{
	emulator_set(width, test_seed() + number);
	emulator_run_kernel(&kernel, blocks, params);
}

uint32_t
rig_count(emulator_kernel kernel, uint32_t width, uint32_t blocks,
	  const void *params, void *out, const void *want, size_t bytes)
{
	uint32_t right = 0, i;

	for (i = 0; i < RIG_SEEDS; i++) {
		memset(out, 0xAB, bytes);
		rig_run(kernel, width, blocks, params, i);
		right += memcmp(out, want, bytes) == 0;
	}
	return right;
}
