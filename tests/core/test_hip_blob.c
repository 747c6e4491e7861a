/* SPDX-License-Identifier: Apache-2.0
 *
 * The embedded kernels for HIP, as the loader will see them: a code object for
 * each architecture, with every portable kernel in it. Where the library was
 * built without a compiler for AMD GPUs: SKIPPED.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "spmla/platform/gpu/launch.h"
#include "spmla/platform/hip/driver_hip.h"

#include "tests/harness/themes.h"

enum { OS_ABI_HSA = 64, VERSION_4 = 2, BYTES_A_KERNEL = 24 * 1024 };

static uint32_t
skipped(void)
{
	if (spmla_i_hip_part_count)
		return 0;
	printf("SKIPPED: built without a compiler for AMD GPUs\n");
	return 1;
}

START_TEST(each_architecture_has_a_code_object_of_its_own)
{
	/* EF_AMDGPU_MACH_.. */
	static const struct {
		uint32_t arch, mach;
	} known[] = {{0x90a, 0x3f},
		     {0x942, 0x4c},
		     {0x950, 0x4f},
		     {0x1100, 0x41},
		     {0x1201, 0x4e}};
	uint64_t i, end = 0;
	uint32_t j;

	if (skipped())
		return;
	ck_assert_uint_eq((uintptr_t)spmla_i_hip_blob % 4096, 0);
	for (i = 0; i < spmla_i_hip_part_count; i++) {
		const spmla_i_hip_part *p = &spmla_i_hip_parts[i];
		Elf64_Ehdr head;

		ck_assert_uint_ge(p->offset, end);
		ck_assert_uint_eq(p->offset % 4096, 0);
		ck_assert_uint_lt(p->bytes, (uint64_t)SPMLA_KERNEL_COUNT *
						    BYTES_A_KERNEL);
		end = p->offset + p->bytes;
		memcpy(&head, spmla_i_hip_blob + p->offset, sizeof head);
		ck_assert_mem_eq(head.e_ident, ELFMAG, SELFMAG);
		ck_assert_uint_eq(head.e_ident[EI_OSABI], OS_ABI_HSA);
		ck_assert_uint_eq(head.e_ident[EI_ABIVERSION], VERSION_4);
		ck_assert_uint_eq(head.e_machine, EM_AMDGPU);
		for (j = 0; known[j].arch != p->arch; j++)
			ck_assert_uint_lt(j, sizeof known / sizeof *known - 1);
		ck_assert_uint_eq(head.e_flags & 0xff, known[j].mach);
		printf("gfx%" PRIx64 ": %" PRIu64 " bytes\n", p->arch,
		       p->bytes);
	}
}
END_TEST

START_TEST(every_kernel_for_amd_is_in_each)
{
	uint64_t i;
	uint32_t k;

	if (skipped())
		return;
	for (i = 0; i < spmla_i_hip_part_count; i++)
		for (k = 0; k < SPMLA_KERNEL_COUNT; k++) {
			const spmla_i_hip_part *p = &spmla_i_hip_parts[i];
			const spmla_i_gpu_kernel *kernel =
				&spmla_i_gpu_kernels[k];
			char symbol[128];
			/* With the 0 that ends it in the table of strings. */
			const int length = snprintf(symbol, sizeof symbol,
						    "%s.kd", kernel->name);

			if (kernel->needs == SPMLA_GPU_NEEDS_NOTHING ||
			    kernel->needs == SPMLA_GPU_NEEDS_TILE ||
			    (kernel->needs == SPMLA_GPU_NEEDS_MFMA &&
			     p->arch >> 8 == 9))
				ck_assert_ptr_nonnull(memmem(
					spmla_i_hip_blob + p->offset, p->bytes,
					symbol, (size_t)length + 1));
		}
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{each_architecture_has_a_code_object_of_its_own, 1},
		{every_kernel_for_amd_is_in_each, 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
