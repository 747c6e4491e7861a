/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes that host and device share: a record, the counters, the status.
 * All fields are fixed-width and naturally aligned, so that a kernel reads a
 * record with wide independent loads.
 *
 * A record: header (64 B), spmla_request [requests], spmla_i_store [stores],
 * int32 pages [pages]. Behind the used bytes lies room for one bit a row that
 * spmla_step_encode needs; it is never copied or read on the device.
 */
#ifndef SPMLA_INTERNAL_STEP_LAYOUT_H
#define SPMLA_INTERNAL_STEP_LAYOUT_H

#include "spmla/spmla.h"

#define SPMLA_I_RECORD_MAGIC 0x534c4d53u

typedef struct spmla_i_record {
	uint64_t ticket; /* in a slot: stored last, release; 0 never matches */
	uint32_t magic;
	uint32_t bytes; /* in use, header included */
	uint32_t flags; /* spmla_step_flag bits */
	uint32_t requests;
	uint32_t stores;
	uint32_t pages;
	uint32_t tokens;
	uint32_t next_n;
	uint32_t live_context;
	uint32_t bucket;
	uint64_t key; /* of the plan that it was checked against */
	uint32_t reserved[2];
} spmla_i_record;

/* Each says where its pages lie, so that stores of different rows can be
 * applied side by side. */
typedef struct spmla_i_store {
	uint32_t group_row; /* group << 24 | row */
	uint32_t first_col;
	uint32_t count;
	uint32_t first_page; /* of the record's pages */
} spmla_i_store;

SPMLA_STATIC_ASSERT(sizeof(spmla_i_record) == 64, "record header");
SPMLA_STATIC_ASSERT(sizeof(spmla_i_store) == 16, "one wide load");
SPMLA_STATIC_ASSERT(sizeof(spmla_request) == 16, "one wide load");
SPMLA_STATIC_ASSERT(sizeof(spmla_step_device) == 64, "requests at 64");

/* STEP_STATE, device memory. */
typedef struct spmla_i_step_state {
	uint64_t done; /* records that a prologue has finished */
	uint64_t step; /* the current step's ticket, for reports */
	uint64_t
		serial; /* prologues so far, of any source: tells steps apart */
	uint32_t requests; /* of the current step; 0 for an empty one */
	/* On a GPU: the bad step and what was found of it, see fault_device.h. */
	uint32_t fault_step;
	uint32_t fault_count;
	uint32_t fault_rows[10];
	uint32_t reserved;
} spmla_i_step_state;

/* DEVICE_STATUS, pinned memory. Row and fault are one word, so that a reader
 * never sees a pair that was not reported, and the smaller pair is the smaller
 * word. */
typedef struct spmla_i_device_status {
	uint64_t key;    /* row << 32 | fault */
	uint64_t step;   /* ticket, for the reader */
	uint64_t serial; /* of the prologue of that step */
	uint32_t count;
	uint32_t reserved;
} spmla_i_device_status;

enum { SPMLA_I_LINE_BYTES = 128 }; /* a counter has a line of its own */

#endif
