/* SPDX-License-Identifier: Apache-2.0
 *
 * See fiber.h. A switch saves what a call keeps and takes the other's stack.
 */
#include "tests/emulator/fiber.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	STACK_BYTES = 1 << 16,
	GUARD_BYTES = 1 << 12, /* below each stack: no access */
	/* Where stacks begin differs by this much, in a round. Else what the
	 * fibers of a block use would all lie in a few sets of the cache. */
	SHIFT_BYTES = 1 << 6,
	SHIFTS = 1 << 6
};

static struct {
	void *stack_pointer[FIBERS];
	uint8_t *stacks;
	uint32_t count; /* of stacks that may be used */
	void *home;
} fibers;

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
	return fibers.stacks + (size_t)i * (GUARD_BYTES + STACK_BYTES) +
	       GUARD_BYTES;
}

/* Memory is taken for as many stacks as have been begun. */
static void
make_stacks(uint32_t count)
{
	if (!fibers.stacks)
		fibers.stacks =
			mmap(NULL, (size_t)FIBERS * (GUARD_BYTES + STACK_BYTES),
			     PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fibers.stacks == MAP_FAILED || count > FIBERS)
		abort();
	for (; fibers.count < count; fibers.count++)
		if (mprotect(stack_of(fibers.count), STACK_BYTES,
			     PROT_READ | PROT_WRITE))
			abort();
}

/* Where a fiber begins, on its stack; never returned from. */
static void (*begin)(void);

static void
enter(void)
{
	begin();
	abort();
}

void
fiber_begin(uint32_t i, void (*start)(void))
{
	void **top;

	make_stacks(i + 1);
	begin = start;
	/* What emulator_switch pops: six registers, then the return address, so
	 * that the stack is 8 off 16 as after a call. */
	top = (void **)(void *)(stack_of(i) + STACK_BYTES -
				i * 11 % SHIFTS * SHIFT_BYTES);
	top -= 2;
	*top = (void *)(uintptr_t)enter;
	top -= 6;
	memset(top, 0, 6 * sizeof *top);
	fibers.stack_pointer[i] = top;
}

void
fiber_go(uint32_t i)
{
	emulator_switch(&fibers.home, fibers.stack_pointer[i]);
}

void
fiber_back(uint32_t i)
{
	emulator_switch(&fibers.stack_pointer[i], fibers.home);
}

void
fiber_pass(uint32_t i, uint32_t to)
{
	emulator_switch(&fibers.stack_pointer[i], fibers.stack_pointer[to]);
}

void
fiber_end(uint32_t i)
{
	emulator_switch(&fibers.stack_pointer[i], fibers.home);
	abort(); /* an ended fiber never goes on */
}
