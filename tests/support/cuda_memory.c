/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes all memory of a test program readable and writable by the device, at
 * the same address. Where the device reads pageable memory there is nothing to
 * do. Elsewhere: static data is replaced by anonymous pages of the same content,
 * which can be registered; main runs on a stack, and malloc takes from a heap,
 * that the driver has allocated; small maps are registered one by one. Maps of
 * more address space than memory (MAP_NORESERVE) fail: tests leave those cases
 * out then.
 */
#include "tests/support/cuda_memory.h"
#include "tests/support/cuda_world.h"

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

enum { PAGEABLE = 88, SAME_ADDRESS = 91 }; /* attributes of a device */
enum { PORTABLE_AND_MAPPED = 3 };          /* flags of allocation */
enum { STACK_BYTES = 32 << 20 };
#define ARENA_BYTES (UINT64_C(1) << 29)

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);

static struct {
	int (*init)(unsigned);
	int (*device)(int *, int);
	int (*attribute)(int *, int, int);
	int (*retain)(void **, int);
	int (*set_current)(void *);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*host_register)(void *, size_t, unsigned);
	int (*host_unregister)(void *);
	int (*stream_create)(void **, unsigned);
	int (*stream_sync)(void *);
} cu;

static void *stream;
static uint32_t mapped; /* memory needs to be registered */

void *
cuda_memory_stream(void)
{
	return stream;
}

int
cuda_memory_sync(void *of)
{
	return cu.stream_sync(of);
}

static void
must(int code, const char *what)
{
	if (code == 0)
		return;
	fprintf(stderr, "cuda_memory: %s gives %d\n", what, code);
	_Exit(1);
}

/* Whether there is a device; then it is current. */
static uint32_t
open_device(void)
{
	static const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"cuInit", &cu.init},
		{"cuDeviceGet", &cu.device},
		{"cuDeviceGetAttribute", &cu.attribute},
		{"cuDevicePrimaryCtxRetain", &cu.retain},
		{"cuCtxSetCurrent", &cu.set_current},
		{"cuMemHostAlloc", &cu.host_alloc},
		{"cuMemHostRegister_v2", &cu.host_register},
		{"cuMemHostUnregister", &cu.host_unregister},
		{"cuStreamCreate", &cu.stream_create},
		{"cuStreamSynchronize", &cu.stream_sync},
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int device, pageable = 0, same = 0;
	size_t i;

	for (i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(library, symbols[i].name);

		if (!found)
			return 0;
		memcpy(symbols[i].to, &found, sizeof found);
	}
	if (!library || cu.init(0) || cu.device(&device, 0))
		return 0;
	must(cu.retain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cu.set_current(context), "cuCtxSetCurrent");
	must(cu.stream_create(&stream, 1), "cuStreamCreate");
	(void)cu.attribute(&pageable, PAGEABLE, device);
	(void)cu.attribute(&same, SAME_ADDRESS, device);
	mapped = !pageable || getenv("SPMLA_TEST_CUDA_MAP") != NULL;
	if (mapped && !same)
		must(1, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, wanted:");
	return 1;
}

/* ---- Static data -------------------------------------------------------- */

/* Pages [first, past) become anonymous ones of the same content. The copy and
 * the exchange are all that runs in between. */
static void
take_pages(uintptr_t first, uintptr_t past, int executable)
{
	const size_t bytes = past - first;
	int r;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE | executable,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		must(errno, "mmap");
	memcpy(copy, (const void *)first, bytes);
	if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (void *)first) == MAP_FAILED)
		must(errno, "mremap");
	r = cu.host_register((void *)first, bytes, PORTABLE_AND_MAPPED);
	if (r)
		fprintf(stderr,
			"cuda_memory: cuMemHostRegister of static data gives "
			"%d; suites that use it will fail\n",
			r);
}

/* The program's segments but for what the loader protects: constants may lie in
 * that of the code, as the linker likes. */
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
	return 1; /* the program comes first; no library is looked at */
}

/* ---- The heap ----------------------------------------------------------- */

/* Blocks are powers of two, aligned to themselves; the class of each is noted
 * by its first granule. */
enum { GRANULE = 6, CLASSES = 31 };
static uint8_t *arena;
static uint8_t *class_of;
static uint64_t arena_used;
static void *free_blocks[CLASSES];

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void __real_free(void *);
void *__real_mmap(void *, size_t, int, int, int, off_t);
int __real_munmap(void *, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
void __wrap_free(void *);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);
int __wrap_munmap(void *, size_t);

static uint32_t
in_arena(const void *p)
{
	return arena && (uintptr_t)p - (uintptr_t)arena < ARENA_BYTES;
}

static uint8_t *
class_at(const void *p)
{
	return &class_of[((uintptr_t)p - (uintptr_t)arena) >> GRANULE];
}

static void *
take(size_t bytes, size_t align)
{
	uint32_t c = GRANULE;
	uint64_t at;
	void *p;

	if (bytes < align)
		bytes = align;
	while (c < CLASSES && (UINT64_C(1) << c) < bytes)
		c++;
	if (c == CLASSES)
		return NULL;
	p = free_blocks[c];
	if (p) {
		memcpy(&free_blocks[c], p, sizeof p);
		return p;
	}
	at = (arena_used + (UINT64_C(1) << c) - 1) >> c << c;
	if (at + (UINT64_C(1) << c) > ARENA_BYTES) {
		fprintf(stderr, "cuda_memory: the heap is full\n");
		_Exit(1);
	}
	arena_used = at + (UINT64_C(1) << c);
	p = arena + at;
	*class_at(p) = (uint8_t)c;
	return p;
}

void *
__wrap_malloc(size_t bytes)
{
	return arena ? take(bytes, 16) : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t count, size_t each)
{
	size_t bytes;
	void *p;

	if (!arena)
		return __real_calloc(count, each);
	if (__builtin_mul_overflow(count, each, &bytes))
		return NULL;
	p = take(bytes, 16);
	return p ? memset(p, 0, bytes) : NULL;
}

void
__wrap_free(void *p)
{
	const uint32_t c = in_arena(p) ? *class_at(p) : 0;

	if (c == 0) {
		__real_free(p);
		return;
	}
	memcpy(p, &free_blocks[c], sizeof p);
	free_blocks[c] = p;
}

void *
__wrap_realloc(void *p, size_t bytes)
{
	size_t before;
	void *to;

	if (!p)
		return __wrap_malloc(bytes);
	if (!in_arena(p))
		return __real_realloc(p, bytes);
	before = (size_t)1 << *class_at(p);
	to = take(bytes, 16);
	if (!to)
		return NULL;
	memcpy(to, p, before < bytes ? before : bytes);
	__wrap_free(p);
	return to;
}

void *
__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return arena ? take(bytes, align) : __real_aligned_alloc(align, bytes);
}

int
__wrap_posix_memalign(void **to, size_t align, size_t bytes)
{
	if (!arena)
		return __real_posix_memalign(to, align, bytes);
	*to = take(bytes, align);
	return *to ? 0 : ENOMEM;
}

void *
__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file,
	    off_t offset)
{
	void *p;

	if (arena && flags & MAP_NORESERVE) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	p = __real_mmap(at, bytes, protection, flags, file, offset);
	if (arena && p != MAP_FAILED && protection & PROT_WRITE)
		must(cu.host_register(p, bytes, PORTABLE_AND_MAPPED),
		     "cuMemHostRegister");
	return p;
}

int
__wrap_munmap(void *at, size_t bytes)
{
	if (arena)
		(void)cu.host_unregister(at); /* or it never was */
	return __real_munmap(at, bytes);
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
	void *stack = NULL, *heap = NULL;

	class_of = calloc(1, ARENA_BYTES >> GRANULE);
	if (!class_of)
		must(ENOMEM, "calloc");
	dl_iterate_phdr(take_segments, NULL);
	must(cu.host_alloc(&stack, STACK_BYTES, PORTABLE_AND_MAPPED),
	     "cuMemHostAlloc of a stack");
	must(cu.host_alloc(&heap, ARENA_BYTES, PORTABLE_AND_MAPPED),
	     "cuMemHostAlloc of a heap");
	getcontext(&start.there);
	start.there.uc_stack.ss_sp = stack;
	start.there.uc_stack.ss_size = STACK_BYTES;
	start.there.uc_link = &start.here;
	makecontext(&start.there, run_main, 0);
	arena = heap;
}

static uint32_t
wanted(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--backend=cuda") == 0)
			return 1;
	return getenv("SPMLA_TEST_CUDA") != NULL;
}

int
__wrap_main(int argc, char **argv, char **envp)
{
	if (!wanted(argc, argv))
		return __real_main(argc, argv, envp);
	setenv("CK_FORK", "no", 1);
	if (!open_device()) {
		printf("SKIPPED: no CUDA device\n");
		return CUDA_WORLD_SKIPPED;
	}
	start.argc = argc;
	start.argv = argv;
	start.envp = envp;
	if (!mapped) {
		run_main();
		return start.status;
	}
	take_memory();
	swapcontext(&start.here, &start.there);
	return start.status;
}
