/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes all memory of a test program readable and writable by the device, at
 * the same address. A device that reads pageable memory needs nothing. For
 * others, static data is replaced by anonymous pages with the same content,
 * which can be registered; main runs on a stack that the driver allocated;
 * malloc and mmap are replaced, see cuda_heap.c and cuda_guard.c.
 */
#include "tests/harness/cuda_memory.h"
#include "tests/harness/cuda_world.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Attributes of a device, on CUDA and on HIP from ROCm 6 on. */
static const int pageable_number[] = {88, 65}, same_number[] = {91, 4};

enum { STACK_BYTES = 32 << 20, HIP_COHERENT = 0x40000000 };

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);

cuda_driver cuda_memory_driver;
#define cu cuda_memory_driver

static void *stream;
static uint32_t kind, is_hip;
uint32_t cuda_memory_mapped;

uint32_t
cuda_memory_kind(void)
{
	return kind;
}

uint32_t
cuda_memory_host_flags(void)
{
	return CUDA_PORTABLE_AND_MAPPED | (is_hip ? HIP_COHERENT : 0);
}

void *
cuda_memory_stream(void)
{
	return kind == SPMLA_BACKEND_LEVEL_ZERO ? level_zero_world_list()
						: stream;
}

int
cuda_memory_sync(void *of)
{
	return kind == SPMLA_BACKEND_LEVEL_ZERO ? level_zero_world_sync()
						: cu.stream_sync(of);
}

uint64_t
cuda_world_free_bytes(void)
{
	size_t available = 0, all = 0;

	/* Level Zero does not tell. */
	if (kind == SPMLA_BACKEND_LEVEL_ZERO)
		return 0;
	cuda_memory_must(cu.mem_info(&available, &all), "cuMemGetInfo");
	return available;
}

void
cuda_memory_must(int code, const char *what)
{
	if (code == 0)
		return;
	fprintf(stderr, "cuda_memory: %s gives %d\n", what, code);
	_Exit(1);
}

static void *
open_library(void)
{
	static const char *const names[][4] = {
		{"libcuda.so.1"},
		{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}};
	const char *const *name = names[is_hip];
	void *library = NULL;

	while (*name && !library)
		library = dlopen(*name++, RTLD_NOW);
	return library;
}

/* Returns whether there is a device, and makes it current. */
static uint32_t
open_device(void)
{
	static const struct {
		const char *names[2]; /* CUDA's, HIP's */
		void *to;
	} symbols[] = {
		{{"cuInit", "hipInit"}, &cu.init},
		{{"cuDeviceGet", "hipDeviceGet"}, &cu.device},
		{{"cuDeviceGetAttribute", "hipDeviceGetAttribute"},
		 &cu.attribute},
		{{"cuDevicePrimaryCtxRetain", NULL}, &cu.retain},
		{{"cuCtxSetCurrent", NULL}, &cu.set_current},
		{{NULL, "hipSetDevice"}, &cu.set_device},
		{{"cuMemHostAlloc", "hipHostMalloc"}, &cu.host_alloc},
		{{"cuMemHostRegister_v2", "hipHostRegister"},
		 &cu.host_register},
		{{"cuMemHostUnregister", "hipHostUnregister"},
		 &cu.host_unregister},
		{{"cuStreamCreate", "hipStreamCreateWithFlags"},
		 &cu.stream_create},
		{{"cuStreamSynchronize", "hipStreamSynchronize"},
		 &cu.stream_sync},
		{{"cuMemGetInfo_v2", "hipMemGetInfo"}, &cu.mem_info},
		{{"cuMemAllocManaged", "hipMallocManaged"}, &cu.managed_alloc},
		{{"cuMemFree_v2", "hipFree"}, &cu.mem_free},
	};
	void *library = open_library(), *context;
	int device, pageable = 0, same = 0;
	size_t i;

	for (i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
		const char *name = symbols[i].names[is_hip];
		void *found = name ? dlsym(library, name) : NULL;

		if (name && !found)
			return 0;
		memcpy(symbols[i].to, &found, sizeof found);
	}
	if (!library || cu.init(0) || cu.device(&device, 0))
		return 0;
	if (is_hip) {
		cuda_memory_must(cu.set_device(device), "hipSetDevice");
	} else {
		cuda_memory_must(cu.retain(&context, device),
				 "cuDevicePrimaryCtxRetain");
		cuda_memory_must(cu.set_current(context), "cuCtxSetCurrent");
	}
	cuda_memory_must(cu.stream_create(&stream, 1), "cuStreamCreate");
	(void)cu.attribute(&pageable, pageable_number[is_hip], device);
	(void)cu.attribute(&same, same_number[is_hip], device);
	cuda_memory_mapped = !pageable || getenv("SPMLA_TEST_CUDA_MAP") != NULL;
	if (cuda_memory_mapped && !same)
		cuda_memory_must(
			1, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, wanted:");
	return 1;
}

/* ---- Static data -------------------------------------------------------- */

/* Replaces pages [first, past) by anonymous ones with the same content. Nothing
 * else runs between the copy and the exchange. */
static void
take_pages(uintptr_t first, uintptr_t past, int executable)
{
	const size_t bytes = past - first;
	int r;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE | executable,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		cuda_memory_must(errno, "mmap");
	memcpy(copy, (const void *)first, bytes);
	if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (void *)first) == MAP_FAILED)
		cuda_memory_must(errno, "mremap");
	r = cu.host_register((void *)first, bytes, CUDA_PORTABLE_AND_MAPPED);
	if (r)
		fprintf(stderr,
			"cuda_memory: cuMemHostRegister of static data gives "
			"%d; suites that use it will fail\n",
			r);
}

/* Replaces the program's segments, except those that the loader protects. The
 * linker may put constants beside the code. */
static int
take_segments(struct dl_phdr_info *info, size_t size, void *unused)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t protected_end = 0;
	uint32_t i;

	(void)size;
	(void)unused;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
			protected_end =
				(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
				 info->dlpi_phdr[i].p_memsz) /
				page * page;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t first = info->dlpi_addr + p->p_vaddr;
		uintptr_t past = first + p->p_memsz;

		if (p->p_type != PT_LOAD)
			continue;
		first = first / page * page;
		past = (past + page - 1) / page * page;
		if (p->p_flags & PF_W && first < protected_end &&
		    protected_end <= past)
			first = protected_end;
		if (first < past)
			take_pages(first, past,
				   p->p_flags & PF_X ? PROT_EXEC : 0);
	}
	return 1; /* the program comes first; libraries are skipped */
}

/* ---- The start ---------------------------------------------------------- */

static struct {
	int argc;
	char **argv;
	char **envp;
	int status;
	ucontext_t here, there;
} start;

static void
run_main(void)
{
	start.status = __real_main(start.argc, start.argv, start.envp);
}

static void
take_memory(void)
{
	void *stack = NULL;

	dl_iterate_phdr(take_segments, NULL);
	cuda_memory_must(
		cu.host_alloc(&stack, STACK_BYTES, cuda_memory_host_flags()),
		"cuMemHostAlloc of a stack");
	getcontext(&start.there);
	start.there.uc_stack.ss_sp = stack;
	start.there.uc_stack.ss_size = STACK_BYTES;
	start.there.uc_link = &start.here;
	makecontext(&start.there, run_main, 0);
	cuda_heap_open();
}

static uint32_t
wanted(int argc, char **argv)
{
	static const struct {
		const char *variable, *option;
		uint32_t kind;
	} ways[] = {
		{"SPMLA_TEST_CUDA", "--backend=cuda", SPMLA_BACKEND_CUDA},
		{"SPMLA_TEST_HIP", "--backend=hip", SPMLA_BACKEND_HIP},
		{"SPMLA_TEST_LEVEL_ZERO", "--backend=level_zero",
		 SPMLA_BACKEND_LEVEL_ZERO},
	};
	size_t w;
	int i;

	for (w = 0; w < sizeof ways / sizeof *ways; w++) {
		if (getenv(ways[w].variable))
			kind = ways[w].kind;
		for (i = 1; i < argc; i++)
			if (strcmp(argv[i], ways[w].option) == 0)
				kind = ways[w].kind;
	}
	is_hip = kind == SPMLA_BACKEND_HIP;
	return kind != 0;
}

static uint32_t
open_any(void)
{
	return kind == SPMLA_BACKEND_LEVEL_ZERO ? level_zero_world_open()
						: open_device();
}

static const char *
platform(void)
{
	return kind == SPMLA_BACKEND_CUDA  ? "CUDA"
	       : kind == SPMLA_BACKEND_HIP ? "HIP"
					   : "Level Zero";
}

int
__wrap_main(int argc, char **argv, char **envp)
{
	if (!wanted(argc, argv))
		return __real_main(argc, argv, envp);
	setenv("CK_FORK", "no", 1);
	if (!open_any()) {
		printf("SKIPPED: no %s device\n", platform());
		return CUDA_WORLD_SKIPPED;
	}
	start.argc = argc;
	start.argv = argv;
	start.envp = envp;
	if (getenv("SPMLA_TEST_GUARD"))
		cuda_guard_open();
	if (!cuda_memory_mapped) {
		run_main();
		return start.status;
	}
	take_memory();
	swapcontext(&start.here, &start.there);
	return start.status;
}
