/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers and their schedule. One block runs at a time. An item runs until it
 * waits at a barrier, waits for the words of its subgroup, or ends. When none
 * can run, every subgroup whose items all gave theirs goes on, and if there is
 * none, the block goes on from the barrier that all its items wait at.
 */
#include "tests/emulator/emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

enum {
	MAX_ITEMS = 1024,
	STACK_BYTES = 1 << 16,
	GUARD_BYTES = 1 << 12, /* below each stack: no access */
	MAX_LOCALS = 64,
	MAX_WORDS = 6
};

typedef enum state { READY, AT_BARRIER, AT_EXCHANGE, ENDED } state;

typedef struct item {
	void *stack_pointer;
	void *fake_stack; /* ASan's */
	const char *file; /* of the barrier */
	int line;
	state state;
	const uint32_t *words; /* of the exchange */
	uint32_t word_count;
} item;

static struct {
	item items[MAX_ITEMS];
	/* By the subgroups that went on last. */
	uint32_t given[MAX_ITEMS * MAX_WORDS];
	uint32_t count;
	uint32_t current;
	uint32_t width;
	uint32_t block;
	uint32_t blocks;
	uint64_t seed;
	uint8_t *stacks;
	void *scheduler;
	void *scheduler_fake;
	const void *scheduler_bottom;
	size_t scheduler_bytes;
	spmla_i_kernel kernel;
	const void *params;
	const void *locals[MAX_LOCALS]; /* arrays that this block has met */
	uint32_t local_count;
} emu = {.width = 32, .seed = 1};

/* Saves the registers that a call keeps, and the stack, and goes on with
 * another's. */
void emulator_switch(void **save, void *to);
#if !defined(__x86_64__)
#error "the emulator switches stacks of x86-64"
#endif
__asm__(".text\n"
	".globl emulator_switch\n"
	".type emulator_switch, @function\n"
	"emulator_switch:\n"
	"	pushq %rbx\n	pushq %rbp\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n"
	"	popq %r12\n	popq %rbp\n	popq %rbx\n"
	"	ret\n"
	".size emulator_switch, .-emulator_switch\n");

static uint8_t *
stack_of(uint32_t i)
{
	return emu.stacks + (size_t)i * (GUARD_BYTES + STACK_BYTES) +
	       GUARD_BYTES;
}

static void
make_stacks(void)
{
	uint32_t i;

	emu.stacks = mmap(NULL, (size_t)MAX_ITEMS * (GUARD_BYTES + STACK_BYTES),
			  PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (emu.stacks == MAP_FAILED)
		abort();
	for (i = 0; i < MAX_ITEMS; i++)
		if (mprotect(stack_of(i), STACK_BYTES, PROT_READ | PROT_WRITE))
			abort();
}

static void
to_scheduler(void)
{
	item *self = &emu.items[emu.current];

#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(
		self->state == ENDED ? NULL : &self->fake_stack,
		emu.scheduler_bottom, emu.scheduler_bytes);
#endif
	emulator_switch(&self->stack_pointer, emu.scheduler);
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(emu.items[emu.current].fake_stack,
					&emu.scheduler_bottom,
					&emu.scheduler_bytes);
#endif
}

static void
start(void)
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(NULL, &emu.scheduler_bottom,
					&emu.scheduler_bytes);
#endif
	emulator_call(emu.kernel, emu.params);
	emu.items[emu.current].state = ENDED;
	to_scheduler();
	abort(); /* an ended item never goes on */
}

static void
to_item(uint32_t i)
{
	emu.current = i;
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(&emu.scheduler_fake, stack_of(i),
				       STACK_BYTES);
#endif
	emulator_switch(&emu.scheduler, emu.items[i].stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(emu.scheduler_fake, NULL, NULL);
#endif
}

static uint32_t
draw(uint32_t bound)
{
	uint64_t z = emu.seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z >> 32) * bound >> 32);
}

static void
fail(const char *what)
{
	static const char *const names[] = {"ready", "at a barrier",
					    "in a subgroup call", "ended"};
	uint32_t i;

	fprintf(stderr, "emulator: %s, block %u: %s\n",
		spmla_i_gpu_kernels[emu.kernel].name, emu.block, what);
	for (i = 0; i < emu.count; i++)
		if (i == 0 || emu.items[i].state != emu.items[i - 1].state ||
		    emu.items[i].line != emu.items[i - 1].line)
			fprintf(stderr, "  from item %u on: %s %s:%d\n", i,
				names[emu.items[i].state],
				emu.items[i].file ? emu.items[i].file : "",
				emu.items[i].line);
	abort();
}

/* Runs every item that can run, in a random order. */
static uint32_t
run_ready(void)
{
	static uint32_t order[MAX_ITEMS];
	uint32_t n = 0, i;

	for (i = 0; i < emu.count; i++)
		if (emu.items[i].state == READY)
			order[n++] = i;
	for (i = n; i > 1; i--) {
		const uint32_t j = draw(i), x = order[j];

		order[j] = order[i - 1];
		order[i - 1] = x;
	}
	for (i = 0; i < n; i++)
		to_item(order[i]);
	return n;
}

/* What the subgroup of an item gave. */
static uint32_t *
given_by(uint32_t i)
{
	return emu.given + (size_t)(i / emu.width * emu.width) * MAX_WORDS;
}

/* Lets subgroups go on whose items all gave their words. */
static uint32_t
run_exchanges(void)
{
	uint32_t first, i, w, went = 0;

	for (first = 0; first < emu.count; first += emu.width) {
		uint32_t waiting = 0;

		for (i = first; i < first + emu.width; i++)
			waiting += emu.items[i].state == AT_EXCHANGE;
		if (waiting < emu.width)
			continue;
		for (i = 0; i < emu.width; i++) {
			item *from = &emu.items[first + i];

			if (from->word_count != emu.items[first].word_count)
				fail("items give different numbers of words");
			for (w = 0; w < from->word_count; w++)
				given_by(first)[w * emu.width + i] =
					from->words[w];
			from->state = READY;
		}
		went++;
	}
	return went;
}

/* Lets the block go on from its barrier; 0 when it has ended. */
static uint32_t
run_barrier(void)
{
	uint32_t ended = 0, waiting = 0, i;

	for (i = 0; i < emu.count; i++) {
		ended += emu.items[i].state == ENDED;
		waiting += emu.items[i].state == AT_BARRIER;
	}
	if (ended == emu.count)
		return 0;
	if (waiting < emu.count)
		fail("items wait for others that do not come");
	for (i = 0; i < emu.count; i++) {
		const char *file = emu.items[i].file;

		if (emu.items[i].line != emu.items[0].line ||
		    (file != emu.items[0].file &&
		     strcmp(file, emu.items[0].file) != 0))
			fail("items wait at different barriers");
		emu.items[i].state = READY;
	}
	return 1;
}

static void
run_block(void)
{
	uint32_t i;

	emu.local_count = 0;
	for (i = 0; i < emu.count; i++) {
		void **top = (void **)(void *)(stack_of(i) + STACK_BYTES);

		/* What emulator_switch pops: six registers, then the return
		 * address, so that the stack is 8 off 16 as after a call. */
		top -= 2;
		*top = (void *)(uintptr_t)start;
		top -= 6;
		memset(top, 0, 6 * sizeof *top);
		memset(&emu.items[i], 0, sizeof emu.items[i]);
		emu.items[i].stack_pointer = top;
	}
	do
		while (run_ready() || run_exchanges())
			;
	while (run_barrier());
}

/* Says that the kernel has run, to who asked for the names. */
static void
tell(spmla_i_kernel kernel)
{
	static uint8_t told[SPMLA_KERNEL_COUNT];
	const char *path = getenv("SPMLA_TEST_KERNELS");
	FILE *to;

	if (!path || told[kernel])
		return;
	told[kernel] = 1;
	to = fopen(path, "a");
	if (!to)
		abort();
	fprintf(to, "%s\n", spmla_i_gpu_kernels[kernel].name);
	fclose(to);
}

void
emulator_run(spmla_i_kernel kernel, uint32_t blocks, const void *params)
{
	uint32_t first, i;

	tell(kernel);
	if (!emu.stacks)
		make_stacks();
	emu.kernel = kernel;
	emu.params = params;
	emu.count = emulator_items[kernel];
	emu.blocks = blocks;
	first = draw(blocks);
	for (i = 0; i < blocks; i++) {
		emu.block = (first + i) % blocks;
		run_block();
	}
}

void
emulator_set(uint32_t width, uint64_t seed)
{
	emu.width = width;
	emu.seed = seed;
}

uint32_t
spmla_i_emu_item(void)
{
	return emu.current;
}

uint32_t
spmla_i_emu_block(void)
{
	return emu.block;
}

uint32_t
spmla_i_emu_blocks(void)
{
	return emu.blocks;
}

uint32_t
spmla_i_emu_width(void)
{
	return emu.width;
}

/* The first item that meets an array finds what the last block left: it is
 * made worthless. */
void
spmla_i_emu_local(void *array, uint32_t bytes)
{
	uint32_t i;

	for (i = 0; i < emu.local_count; i++)
		if (emu.locals[i] == array)
			return;
	if (emu.local_count == MAX_LOCALS)
		fail("too many local arrays");
	emu.locals[emu.local_count++] = array;
	memset(array, 0xC9, bytes);
}

void
spmla_i_emu_barrier(const char *file, int line)
{
	item *self = &emu.items[emu.current];

	self->file = file;
	self->line = line;
	self->state = AT_BARRIER;
	to_scheduler();
}

const uint32_t *
spmla_i_emu_exchange(const uint32_t *words, uint32_t count)
{
	item *self = &emu.items[emu.current];

	if (count > MAX_WORDS)
		fail("an item gives too many words");
	self->words = words;
	self->word_count = count;
	self->state = AT_EXCHANGE;
	to_scheduler();
	return given_by(emu.current);
}
