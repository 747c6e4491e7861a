/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts of public structs against numbers that a test spells out. The list of
 * a struct is its size and then every field in order, so a field that appears,
 * moves, grows or leaves a hole is noticed.
 */
#ifndef TESTS_HARNESS_PINS_H
#define TESTS_HARNESS_PINS_H

#include <stddef.h>
#include <stdint.h>

typedef enum pin_kind {
	PIN_STRUCT = 0,
	PIN_FIELD = 1,
	PIN_GAP = 2 /* known padding */
} pin_kind;

typedef struct pin {
	pin_kind kind;
	const char *name;
	size_t got_offset;
	size_t got_bytes;
	size_t offset; /* 0 for a struct */
	size_t bytes;
} pin;

#define PIN_S(type, size)                                   \
	{                                                   \
		PIN_STRUCT, #type, 0, sizeof(type), 0, size \
	}
#define PIN_F(type, field, at, size)                                \
	{                                                           \
		PIN_FIELD, #type "." #field, offsetof(type, field), \
			sizeof(((type *)0)->field), at, size        \
	}
#define PIN_G(type, at, size)                                   \
	{                                                       \
		PIN_GAP, #type " (padding)", at, size, at, size \
	}

/* Fails the test at the first wrong pin, or if the fields of a struct are not
 * contiguous. */
void pins_check(const pin *pins, size_t count);

typedef struct pin_value {
	const char *name;
	uint64_t got;
	uint64_t want;
} pin_value;

#define PIN_V(name, want)                     \
	{                                     \
#name, (uint64_t)(name), want \
	}

void pins_check_values(const pin_value *values, size_t count);

#endif
