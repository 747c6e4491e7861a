/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes that host and device share: a record, the counters, the status. All
 * fields are fixed-width and naturally aligned, so that a kernel reads a record
 * with wide independent loads.
 *
 * A record: header (64 B), spmla_request [requests], spmla_i_store [stores],
 * int32 pages [pages]. Behind the used bytes lies one bit per row for
 * spmla_step_encode. It is never copied, nor read on the device.
 */
#ifndef SPMLA_INTERNAL_STEP_LAYOUT_H
#define SPMLA_INTERNAL_STEP_LAYOUT_H

#include "spmla/spmla.h"

#define SPMLA_I_RECORD_MAGIC 0x534c4d53u

typedef struct spmla_i_record {
	/* in a slot: stored last, with release; 0 never matches */
	uint64_t ticket;
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
	uint64_t key; /* of the plan that checked it */
	uint32_t reserved[2];
} spmla_i_record;

/* A store says where its pages lie, so stores of different rows can be applied
 * in parallel. */
typedef struct spmla_i_store {
	uint32_t group_row; /* group << 24 | row */
	uint32_t first_col;
	uint32_t count;
	uint32_t first_page; /* first of the record's pages */
} spmla_i_store;

SPMLA_STATIC_ASSERT(sizeof(spmla_i_record) == 64, "record header");
SPMLA_STATIC_ASSERT(sizeof(spmla_i_store) == 16, "one wide load");
SPMLA_STATIC_ASSERT(sizeof(spmla_request) == 16, "one wide load");
SPMLA_STATIC_ASSERT(sizeof(spmla_step_device) == 64, "requests at 64");

/* STEP_STATE, device memory. */
typedef struct spmla_i_step_state {
	uint64_t done; /* records that a prologue has finished */
	uint64_t step; /* the current step's ticket, for reports */
	/* number of prologues of any source: identifies a step */
	uint64_t serial;
	uint32_t requests; /* of the current step; 0 for an empty one */
	/* GPU: the bad step and its faults, see fault_device.h. A clear of the
	 * status clears all from here on. */
	uint32_t fault_step;
	uint32_t fault_count;
	uint32_t fault_rows[11];
} spmla_i_step_state;

/* DEVICE_STATUS, pinned memory. Row and fault are one word, so a reader never
 * sees a pair that was not reported, and the smaller pair is the smaller word.
 */
typedef struct spmla_i_device_status {
	uint64_t key;    /* row << 32 | fault */
	uint64_t step;   /* ticket, for the reader */
	uint64_t serial; /* of the prologue of that step */
	uint32_t count;
	uint32_t reserved;
} spmla_i_device_status;

enum { SPMLA_I_LINE_BYTES = 128 }; /* each counter has its own line */

#endif
