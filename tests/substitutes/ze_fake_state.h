/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the fake driver of Level Zero share: its handles.
 */
#ifndef TESTS_SUBSTITUTES_ZE_FAKE_STATE_H
#define TESTS_SUBSTITUTES_ZE_FAKE_STATE_H

#include "tests/substitutes/ze_fake.h"

/* The queue group that computes. */
enum { ORDINAL = 1 };

typedef enum kind {
	FREE,
	DRIVER,
	DEVICE,
	PART, /* of the device */
	CONTEXT,
	QUEUE,
	MODULE,
	LOG,
	KERNEL,
	LIST,
	FENCE
} kind;

typedef enum order { BARRIER, LAUNCH, FILL, COPY } order;

typedef struct command {
	order order;
	ze_fake_kernel kernel;
	uint32_t groups;
	ze_fake_args args;
	void *to;
	const void *from;
	size_t bytes;
	uint8_t byte;
} command;

typedef struct handle {
	kind kind;
	uint32_t immediate, synchronous, closed; /* of a list */
	uint32_t running;                        /* of a list, a fence */
	uint32_t asked;                          /* of a fence: how often */
	uint32_t signalled;
	uint32_t runs; /* of a list */
	uint32_t ordinal;
	uint32_t count, room;
	command *commands;
	uint32_t grouped;  /* of a kernel: its block was set */
	uint32_t indirect; /* of a kernel: it may read at any address */
	ze_fake_kernel kernel;
	uint64_t set; /* bit i: argument i was set */
	ze_fake_args args;
} handle;

/* Ends a program that breaks the driver's rules. It may be no test. */
void ze_fake_must(uint32_t kept, const char *function, const char *what);

handle *ze_fake_make(kind k);
handle *ze_fake_known(const void *p, kind k, const char *function);
#define KNOWN(p, k) ze_fake_known(p, k, __func__)
void ze_fake_end(void *p, kind k, const char *function);
void ze_fake_of_device(const void *p, const char *function);

/* Counts a call, and returns the code that the call must give. */
int ze_fake_enter(ze_fake_call call);

/* Nothing is submitted; the seed of the order of commands. */
void ze_fake_reset_lists(uint64_t seed);
/* The lists that were submitted and did not run. */
uint32_t ze_fake_running(void);

/* The functions of the table. */
#define FIELD(field, symbol, parameters) int ze_fake_f_##field parameters;
SPMLA_ZE_FUNCTIONS(FIELD)
ZE_FAKE_MORE(FIELD)
#undef FIELD

#endif
