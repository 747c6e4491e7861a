/* SPDX-License-Identifier: Apache-2.0
 *
 * The debug build of kernels (debug.h), as the machine has it: an arrival that
 * a block loses, and reports of blocks that wait in vain.
 */
#include "tests/emulator/emulated.h"
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/step/fault_device.h"

#include <stdlib.h>

static uint32_t is_debug, is_told;

void
emulator_debug(uint32_t is)
{
	is_debug = is;
	is_told = 1;
}

uint32_t
emulator_is_debug(void)
{
	if (!is_told)
		emulator_debug(getenv("SPMLA_TEST_KERNEL_DEBUG") != NULL);
	return is_debug;
}

uint32_t
spmla_i_emu_debug(void)
{
	return emulator_is_debug();
}

/* Every item calls it. */
void
spmla_i_emu_debug_begin(void *state, void *status, uint64_t serial)
{
	machine_block *block = machine.here;

	if (block->state || !emulator_is_debug())
		return;
	block->state = state;
	block->status = status;
	block->arrivals = 0;
	block->lost = block->index ? 0 : (uint32_t)(serial >> 32);
}

uint32_t
machine_loses(void)
{
	machine_block *block = machine.here;

	return block->lost && ++block->arrivals == block->lost;
}

uint32_t
machine_report_late(const machine_block *block)
{
	if (!block->state)
		return 0;
	g_fault(block->state, block->status, block->index, G_FAULT_TIMEOUT);
	return 1;
}
