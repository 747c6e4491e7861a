/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver for Level Zero's loader, on a machine without an Intel GPU: the fake
 * driver, with kernels of the library's own SPIR-V. spirv_object.sh compiled
 * that very module, byte for byte, for the CPU. This file has OpenCL's built-in
 * functions, on the emulator's threads and subgroups. The loader takes it by
 * ZE_ENABLE_ALT_DRIVERS=libze_spmla.so. With SPMLA_TEST_CONCURRENT the host may
 * access host memory while the device does.
 */
#include "tests/substitutes/ze_fake.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/tile.h"
#include "tests/emulator/machine.h"

#define PUBLIC __attribute__((visibility("default")))

/* What spirv_object.sh made. */
extern const ze_fake_kernel spirv_kernels[];
extern uint8_t __start_spirv_local[] __attribute__((weak));
extern uint8_t __stop_spirv_local[] __attribute__((weak));

enum { WIDTH = 16, IN_REGISTERS = 6, POISON = 0xC9 };

/* ---- A kernel ----------------------------------------------------------- */

typedef struct launch {
	const ze_fake_kernel *kernel;
	uint64_t registers[IN_REGISTERS];
	uint64_t stack[ZE_FAKE_MAX_ARGS + ZE_FAKE_MAX_SCALARS / 8];
	uint64_t stack_count;
} launch;

static const launch *now;

/* Calls code with six arguments in registers and `count` words on the stack, as
 * x86-64 passes pointers, and last a struct by its value. */
void spirv_call(void (*code)(void), const uint64_t *stack, uint64_t count,
		const uint64_t *registers);
__asm__(".text\n"
	".globl spirv_call\n"
	".type spirv_call, @function\n"
	"spirv_call:\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	movq %rdi, %r11\n"
	"	movq %rcx, %rax\n"
	"	leaq (,%rdx,8), %r10\n"
	"	subq %r10, %rsp\n"
	"	andq $-16, %rsp\n"
	"1:	testq %rdx, %rdx\n"
	"	jz 2f\n"
	"	decq %rdx\n"
	"	movq (%rsi,%rdx,8), %r10\n"
	"	movq %r10, (%rsp,%rdx,8)\n"
	"	jmp 1b\n"
	"2:	movq (%rax), %rdi\n"
	"	movq 8(%rax), %rsi\n"
	"	movq 16(%rax), %rdx\n"
	"	movq 24(%rax), %rcx\n"
	"	movq 32(%rax), %r8\n"
	"	movq 40(%rax), %r9\n"
	"	call *%r11\n"
	"	leave\n"
	"	ret\n"
	".size spirv_call, .-spirv_call\n");

static void
item(const void *params)
{
	(void)params;
	spirv_call(now->kernel->code, now->stack, now->stack_count,
		   now->registers);
}

static uint32_t
find(const char *name, ze_fake_kernel *kernel)
{
	const ze_fake_kernel *k = spirv_kernels;

	while (k->name && strcmp(k->name, name) != 0)
		k++;
	if (!k->name)
		return 0;
	*kernel = *k;
	return 1;
}

/* What the last launch left in shared memory is worthless. */
static void
run(const ze_fake_kernel *kernel, uint32_t groups, const ze_fake_args *args)
{
	const emulator_kernel as = {kernel->name, item, kernel->items, 0, 1, 0};
	const uint32_t pointers = kernel->args - 1;
	launch l = {.kernel = kernel};
	uint32_t i;

	for (i = 0; i < pointers; i++) {
		const uint64_t word = (uint64_t)(uintptr_t)args->pointers[i];

		if (i < IN_REGISTERS)
			l.registers[i] = word;
		else
			l.stack[l.stack_count++] = word;
	}
	memcpy(l.stack + l.stack_count, args->scalars, args->scalar_bytes);
	l.stack_count += (args->scalar_bytes + 7) / 8;
	if (__start_spirv_local)
		memset(__start_spirv_local, POISON,
		       (size_t)(__stop_spirv_local - __start_spirv_local));
	now = &l;
	emulator_run_kernel(&as, groups, NULL);
}

/* ---- What OpenCL has built in ------------------------------------------- */

/* F(name as C++ mangles it, result, parameters, value) */
#define BUILT_IN(name, result, parameters, value)      \
	result spirv_##name parameters __asm__(#name); \
	result spirv_##name parameters                 \
	{                                              \
		return value;                          \
	}

void spirv_barrier(uint32_t flags) __asm__("_Z7barrierj");
void spirv_fence(uint32_t flags) __asm__("_Z9mem_fencej");
void spirv_prefetch(const int32_t *p,
		    size_t count) __asm__("_Z8prefetchPU3AS1Kim");

void
spirv_barrier(uint32_t flags)
{
	(void)flags;
	spmla_i_emu_barrier(now->kernel->name, 0);
}

/* Nothing else runs meanwhile. */
void
spirv_fence(uint32_t flags)
{
	(void)flags;
}

void
spirv_prefetch(const int32_t *p, size_t count)
{
	(void)p;
	(void)count;
}

static uint32_t
shuffle(uint32_t x, uint32_t lane)
{
	return spmla_i_emu_exchange(&x, 1)[lane];
}

/* Bits of the first 32 lanes, in the first of four words. */
typedef uint32_t four __attribute__((vector_size(16)));

static four
ballot(int32_t x)
{
	const uint32_t is = x != 0;
	const uint32_t *all = spmla_i_emu_exchange(&is, 1);
	four bits = {0, 0, 0, 0};
	uint32_t i;

	for (i = 0; i < WIDTH; i++)
		bits[0] |= all[i] << i;
	return bits;
}

/* Nothing else runs between reading and writing. */
static int32_t
exchange(int32_t *p, int32_t x)
{
	const int32_t was = *p;

	*p = x;
	return was;
}

static int32_t
compare(int32_t *p, int32_t want, int32_t x)
{
	const int32_t was = *p;

	if (was == want)
		*p = x;
	return was;
}

static uint32_t
larger(uint32_t *p, uint32_t x)
{
	const uint32_t was = *p;

	*p = was > x ? was : x;
	return was;
}

static uint32_t
smaller(uint32_t *p, uint32_t x)
{
	const uint32_t was = *p;

	*p = was < x ? was : x;
	return was;
}

static int32_t
added(int32_t *p, int32_t x)
{
	return exchange(p, (int32_t)((uint32_t)*p + (uint32_t)x));
}

BUILT_IN(_Z12get_local_idj, size_t, (uint32_t d), d ? 0 : spmla_i_emu_item())
BUILT_IN(_Z12get_group_idj, size_t, (uint32_t d), d ? 0 : spmla_i_emu_block())
BUILT_IN(_Z14get_num_groupsj, size_t, (uint32_t d),
	 d ? 1 : spmla_i_emu_blocks())
BUILT_IN(_Z22get_max_sub_group_sizev, uint32_t, (void), WIDTH)
BUILT_IN(_Z22get_sub_group_local_idv, uint32_t, (void), spmla_i_emu_lane())
BUILT_IN(_Z21sub_group_shuffle_xorij, uint32_t, (uint32_t x, uint32_t mask),
	 shuffle(x, spmla_i_emu_lane() ^ mask))
BUILT_IN(_Z19sub_group_broadcastjj, uint32_t, (uint32_t x, uint32_t lane),
	 shuffle(x, lane))
BUILT_IN(_Z16sub_group_balloti, four, (int32_t x), ballot(x))
BUILT_IN(_Z10atomic_addPU3AS1Vii, int32_t, (int32_t * p, int32_t x),
	 added(p, x))
BUILT_IN(_Z10atomic_addPU3AS3Vii, int32_t, (int32_t * p, int32_t x),
	 added(p, x))
BUILT_IN(_Z10atomic_maxPU3AS1Vjj, uint32_t, (uint32_t * p, uint32_t x),
	 larger(p, x))
BUILT_IN(_Z10atomic_maxPU3AS3Vjj, uint32_t, (uint32_t * p, uint32_t x),
	 larger(p, x))
BUILT_IN(_Z10atomic_minPU3AS3Vjj, uint32_t, (uint32_t * p, uint32_t x),
	 smaller(p, x))
BUILT_IN(_Z11atomic_xchgPU3AS1Vii, int32_t, (int32_t * p, int32_t x),
	 exchange(p, x))
BUILT_IN(_Z14atomic_cmpxchgPU3AS1Viii, int32_t,
	 (int32_t * p, int32_t want, int32_t x), compare(p, want, x))
BUILT_IN(_Z9atomic_orPU3AS1Vii, int32_t, (int32_t * p, int32_t x),
	 exchange(p, *p | x))
BUILT_IN(_Z3clzi, int32_t, (int32_t x), x ? __builtin_clz((uint32_t)x) : 32)
BUILT_IN(_Z8popcounti, int32_t, (int32_t x), __builtin_popcount((uint32_t)x))
BUILT_IN(_Z3fmafff, float, (float a, float b, float c), fmaf(a, b, c))
BUILT_IN(_Z4exp2f, float, (float x), exp2f(x))
BUILT_IN(_Z4log2f, float, (float x), log2f(x))

/* dpas. LLVM passes its vectors without AVX: a in one register; b, c and the
 * result in two each. */
void spirv_dpas(uint32_t *words);
void
spirv_dpas(uint32_t *words)
{
	float c[8];

	memcpy(c, words + 12, sizeof c);
	spmla_i_emu_dpas(c, words, words + 4);
	memcpy(words + 12, c, sizeof c);
}
#define DPAS "_Z40intel_sub_group_bf16_bf16_matrix_mad_k16Dv8_sDv8_iDv8_f"
__asm__(".text\n"
	".globl " DPAS "\n"
	".type " DPAS ", @function\n" DPAS ":\n"
	"	subq $88, %rsp\n"
	"	movups %xmm0, (%rsp)\n"
	"	movups %xmm1, 16(%rsp)\n"
	"	movups %xmm2, 32(%rsp)\n"
	"	movups %xmm3, 48(%rsp)\n"
	"	movups %xmm4, 64(%rsp)\n"
	"	movq %rsp, %rdi\n"
	"	call spirv_dpas\n"
	"	movups 48(%rsp), %xmm0\n"
	"	movups 64(%rsp), %xmm1\n"
	"	addq $88, %rsp\n"
	"	ret\n"
	".size " DPAS ", .-" DPAS "\n");

/* ---- What the loader asks for ------------------------------------------- */

/* A table of functions is pointers in the order of the loader's header: put
 * places some of them. */
typedef void any(void);

static void
put(any **table, uint32_t at, any *function)
{
	table[at] = function;
}

#define PUT(at, field) put(table, at, (any *)ze_fake_driver_table.field)

#define TABLE(of)                                                           \
	PUBLIC int zeGet##of##ProcAddrTable(uint32_t version, any **table); \
	int zeGet##of##ProcAddrTable(uint32_t version, any **table)

TABLE(Global)
{
	(void)version;
	PUT(0, own.init);
	return 0;
}

/* Newer loaders ask for these before they take a driver. */
typedef struct driver_properties {
	uint32_t stype;
	void *next;
	uint8_t uuid[16];
	uint32_t driver_version;
} driver_properties;

static int
describe_driver(void *of, driver_properties *p)
{
	(void)of;
	memset(p->uuid, 0, sizeof p->uuid);
	p->driver_version = 1;
	return 0;
}

static int
no_extensions(void *of, uint32_t *count, void *list)
{
	(void)of;
	(void)list;
	*count = 0;
	return 0;
}

TABLE(Driver)
{
	(void)version;
	PUT(0, own.driver_get);
	PUT(1, own.driver_version);
	put(table, 2, (any *)describe_driver);
	put(table, 4, (any *)no_extensions);
	return 0;
}

TABLE(Device)
{
	(void)version;
	PUT(0, own.device_get);
	PUT(1, own.sub_devices);
	PUT(2, own.device_properties);
	PUT(3, own.compute_properties);
	PUT(5, own.queue_groups);
	PUT(7, own.memory_access);
	PUT(13, own.device_status);
	return 0;
}

TABLE(Context)
{
	(void)version;
	PUT(0, context_create);
	PUT(1, context_destroy);
	return 0;
}

TABLE(CommandQueue)
{
	(void)version;
	PUT(0, queue_create);
	PUT(1, queue_destroy);
	PUT(2, own.queue_execute);
	PUT(3, queue_sync);
	return 0;
}

TABLE(CommandList)
{
	(void)version;
	PUT(0, own.list_create);
	PUT(1, own.list_immediate);
	PUT(2, own.list_destroy);
	PUT(3, own.list_close);
	PUT(6, own.append_barrier);
	PUT(8, append_copy);
	PUT(9, own.append_fill);
	PUT(22, own.append_kernel);
	return 0;
}

TABLE(Fence)
{
	(void)version;
	PUT(0, own.fence_create);
	PUT(1, own.fence_destroy);
	PUT(3, own.fence_query);
	PUT(4, own.fence_reset);
	return 0;
}

TABLE(Module)
{
	(void)version;
	PUT(0, own.module_create);
	PUT(1, own.module_destroy);
	return 0;
}

TABLE(ModuleBuildLog)
{
	(void)version;
	PUT(0, own.log_destroy);
	PUT(1, own.log_text);
	return 0;
}

TABLE(Kernel)
{
	(void)version;
	PUT(0, own.kernel_create);
	PUT(1, own.kernel_destroy);
	PUT(3, own.group_size);
	PUT(5, own.resident_groups);
	PUT(6, own.set_argument);
	PUT(7, own.indirect_access);
	PUT(10, own.kernel_properties);
	return 0;
}

TABLE(Mem)
{
	(void)version;
	PUT(1, alloc_device);
	PUT(2, alloc_host);
	PUT(3, mem_free);
	return 0;
}

/* Tables that the loader wants to exist. They stay empty. */
#define EMPTY(name)                                     \
	PUBLIC int name(uint32_t version, any **table); \
	int name(uint32_t version, any **table)         \
	{                                               \
		(void)version;                          \
		(void)table;                            \
		return 0;                               \
	}
EMPTY(zeGetDeviceExpProcAddrTable)
EMPTY(zeGetEventExpProcAddrTable)
EMPTY(zeGetEventPoolProcAddrTable)
EMPTY(zeGetEventProcAddrTable)
EMPTY(zeGetFabricEdgeExpProcAddrTable)
EMPTY(zeGetFabricVertexExpProcAddrTable)
EMPTY(zeGetImageExpProcAddrTable)
EMPTY(zeGetImageProcAddrTable)
EMPTY(zeGetKernelExpProcAddrTable)
EMPTY(zeGetPhysicalMemProcAddrTable)
EMPTY(zeGetSamplerProcAddrTable)
EMPTY(zeGetVirtualMemProcAddrTable)
EMPTY(zesGetDeviceProcAddrTable)
EMPTY(zesGetDiagnosticsProcAddrTable)
EMPTY(zesGetDriverProcAddrTable)
EMPTY(zesGetEngineProcAddrTable)
EMPTY(zesGetFabricPortProcAddrTable)
EMPTY(zesGetFanProcAddrTable)
EMPTY(zesGetFirmwareProcAddrTable)
EMPTY(zesGetFrequencyProcAddrTable)
EMPTY(zesGetLedProcAddrTable)
EMPTY(zesGetMemoryProcAddrTable)
EMPTY(zesGetPerformanceFactorProcAddrTable)
EMPTY(zesGetPowerProcAddrTable)
EMPTY(zesGetPsuProcAddrTable)
EMPTY(zesGetRasProcAddrTable)
EMPTY(zesGetSchedulerProcAddrTable)
EMPTY(zesGetStandbyProcAddrTable)
EMPTY(zesGetTemperatureProcAddrTable)
EMPTY(zetGetCommandListProcAddrTable)
EMPTY(zetGetContextProcAddrTable)
EMPTY(zetGetDebugProcAddrTable)
EMPTY(zetGetDeviceProcAddrTable)
EMPTY(zetGetKernelProcAddrTable)
EMPTY(zetGetMetricGroupExpProcAddrTable)
EMPTY(zetGetMetricGroupProcAddrTable)
EMPTY(zetGetMetricProcAddrTable)
EMPTY(zetGetMetricQueryPoolProcAddrTable)
EMPTY(zetGetMetricQueryProcAddrTable)
EMPTY(zetGetMetricStreamerProcAddrTable)
EMPTY(zetGetModuleProcAddrTable)
EMPTY(zetGetTracerExpProcAddrTable)

__attribute__((constructor)) static void
start(void)
{
	const char *text = getenv("SPMLA_TEST_SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	fake_ze.version = SPMLA_ZE_OLDEST;
	fake_ze.name = "SUBSTITUTE (SPIR-V on CPU)";
	fake_ze.type = SPMLA_ZE_DEVICE_GPU;
	fake_ze.device_id = 0xe20b;
	fake_ze.slices = 5;
	fake_ze.subslices = 4;
	fake_ze.group_items = 1024;
	fake_ze.subgroup_size = WIDTH;
	if (getenv("SPMLA_TEST_CONCURRENT"))
		fake_ze.host_access = SPMLA_ZE_ACCESS_CONCURRENT;
	fake_ze.queue_group_flags = SPMLA_ZE_QUEUE_GROUP_COMPUTE;
	fake_ze.devices = 1;
	fake_ze.resident = 20;
	fake_ze.patience = 4;
	fake_ze.modules[SPMLA_ZE_PORTABLE] = (spmla_i_ze_image){
		spmla_i_level_zero_blob, spmla_i_level_zero_blob_bytes};
	fake_ze.modules[SPMLA_ZE_TILES] = (spmla_i_ze_image){
		spmla_i_level_zero_tiles, spmla_i_level_zero_tiles_bytes};
	fake_ze.find = find;
	fake_ze.run = run;
	ze_fake_start(seed);
	emulator_set(WIDTH, seed);
}
