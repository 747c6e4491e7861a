/* SPDX-License-Identifier: Apache-2.0
 *
 * The embedded kernels for CUDA, as the loader will see them: a fatbin with a
 * binary for every architecture and PTX for the oldest, none of them larger
 * than it may be. Where the library was built without nvcc: SKIPPED.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/platform/cuda/driver_cuda.h"
#include "spmla/platform/gpu/launch.h"

#include "tests/harness/themes.h"

/* What follows the header: a header of its own, then the bytes. */
typedef struct fatbin_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_bytes;
	uint64_t bytes; /* behind the header */
} fatbin_header;

typedef struct fatbin_entry {
	uint16_t kind; /* 1: PTX, 2: a binary */
	uint16_t version;
	uint32_t header_bytes;
	uint64_t bytes;
	uint32_t reserved[3];
	uint32_t arch; /* at byte 28 */
} fatbin_entry;

enum { PTX = 1, BINARY = 2, BYTES_A_KERNEL = 11 * 1024 };

static const uint32_t archs[] = {80, 89, 90, 100, 120};

static uint32_t
skipped(void)
{
	if (spmla_i_cuda_blob_bytes)
		return 0;
	printf("SKIPPED: built without nvcc\n");
	return 1;
}

START_TEST(it_is_aligned_and_asks_for_a_driver)
{
	ck_assert_uint_eq((uintptr_t)spmla_i_cuda_blob % 64, 0);
	if (skipped()) {
		ck_assert_uint_eq(spmla_i_cuda_blob_driver, 0);
		return;
	}
	ck_assert_uint_ge(spmla_i_cuda_blob_driver, 12000);
	ck_assert_uint_eq(spmla_i_cuda_blob_driver % 1000, 0);
}
END_TEST

START_TEST(every_architecture_is_there_and_within_its_budget)
{
	const uint64_t most = (uint64_t)SPMLA_KERNEL_COUNT * BYTES_A_KERNEL;
	uint32_t seen[121] = {0}, ptx = 0;
	fatbin_header head;
	fatbin_entry e;
	uint64_t at;
	uint32_t i;

	if (skipped())
		return;
	memcpy(&head, spmla_i_cuda_blob, sizeof head);
	ck_assert_uint_eq(head.magic, 0xba55ed50);
	ck_assert(head.header_bytes + head.bytes <= spmla_i_cuda_blob_bytes);
	for (at = head.header_bytes; at < head.header_bytes + head.bytes;
	     at += e.header_bytes + e.bytes) {
		memcpy(&e, spmla_i_cuda_blob + at, sizeof e);
		printf("%s %" PRIu32 ": %" PRIu64 " bytes of %" PRIu64 "\n",
		       e.kind == PTX ? "compute" : "sm", e.arch, e.bytes, most);
		ck_assert(e.kind == PTX || e.kind == BINARY);
		ck_assert(e.header_bytes >= sizeof e && e.bytes > 0);
		ck_assert(e.bytes <= most);
		ck_assert_uint_le(e.arch, 120);
		if (e.kind == PTX) {
			ck_assert_uint_eq(e.arch, archs[0]);
			ptx++;
		} else {
			seen[e.arch]++;
		}
	}
	ck_assert_uint_eq(ptx, 1);
	/* sm_90 is sm_90a. An older toolkit lacks the last two. */
	for (i = 0; i < SPMLA_I_COUNT(archs); i++)
		if (spmla_i_cuda_blob_driver >= 13000 || archs[i] < 100)
			ck_assert_uint_eq(seen[archs[i]], 1);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{it_is_aligned_and_asks_for_a_driver, 1},
		{every_architecture_is_there_and_within_its_budget, 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
