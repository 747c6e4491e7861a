/* SPDX-License-Identifier: Apache-2.0
 *
 * libamdhip64.so.7 for a machine without an AMD GPU: the HIP runtime on the
 * CUDA driver, so that the HIP backend's own code runs to its end. On an NVIDIA
 * device its captures and replays are the driver's; on the libcuda.so.1 of
 * libcuda.c kernels run in the emulator. A code object for an AMD GPU is looked
 * at and then replaced by the library's kernels for CUDA, which are of
 * the same source.
 *
 * It is a gfx1100, or what SPMLA_TEST_HIP_ARCH names. An architecture with
 * subgroups of 64 runs only on the emulator, with SPMLA_TEST_EMULATOR=64.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/platform/cuda/driver_cuda.h"
#include "spmla/platform/hip/driver_hip.h"

#define PUBLIC __attribute__((visibility("default")))

enum {
	VERSION = 60241134, /* ROCm 6.2 */
	DEVICES = 16,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	NO_BINARY = 209,
	/* of host memory: portable, mapped, .., and one that only HIP has */
	FLAGS_OF_CUDA = 7,
	COHERENT = 0x40000000
};

static spmla_i_cuda_driver cu;
static void *contexts[DEVICES];
static __thread int current;

/* The driver's functions that HIP has under another name: F(CUDA's name, HIP's,
 * parameters, arguments). */
#define FORWARDED(F)                                                           \
	F(cuDeviceGet, hipDeviceGet, (int *to, int number), (to, number))      \
	F(cuDeviceGetName, hipDeviceGetName,                                   \
	  (char *to, int bytes, int number), (to, bytes, number))              \
	F(cuEventCreate, hipEventCreateWithFlags, (void **to, unsigned flags), \
	  (to, flags))                                                         \
	F(cuEventDestroy_v2, hipEventDestroy, (void *event), (event))          \
	F(cuMemAlloc_v2, hipMalloc, (void **to, size_t bytes), (to, bytes))    \
	F(cuMemAllocManaged, hipMallocManaged,                                 \
	  (void **to, size_t bytes, unsigned flags), (to, bytes, flags))       \
	F(cuMemFree_v2, hipFree, (void *at), (at))                             \
	F(cuMemFreeHost, hipHostFree, (void *at), (at))                        \
	F(cuMemGetInfo_v2, hipMemGetInfo, (size_t * available, size_t * all),  \
	  (available, all))                                                    \
	F(cuMemHostRegister_v2, hipHostRegister,                               \
	  (void *at, size_t bytes, unsigned flags),                            \
	  (at, bytes, flags & FLAGS_OF_CUDA))                                  \
	F(cuMemHostUnregister, hipHostUnregister, (void *at), (at))            \
	F(cuMemsetD8_v2, hipMemsetD8,                                          \
	  (void *to, unsigned char byte, size_t bytes), (to, byte, bytes))

static struct {
#define FIELD(name, hip, parameters, arguments) int(*name) parameters;
	FORWARDED(FIELD)
#undef FIELD
	int (*cuDevicePrimaryCtxRetain)(void **to, int number);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuMemHostAlloc)(void **to, size_t bytes, unsigned flags);
	int (*cuMemcpy)(void *to, const void *from, size_t bytes);
} more;

static void
find(void *library, const char *name, void *to)
{
	void *const found = dlsym(library, name);

	memcpy(to, &found, sizeof found);
}

/* Whether there is a driver; its functions, once. */
static int
is_open(void)
{
	static int opened;
	void *library;

	if (opened)
		return 1;
	if (spmla_i_gpu_open(&cu.gpu, &spmla_i_cuda_platform, NULL) != SPMLA_OK)
		return 0;
	library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name, hip, parameters, arguments) find(library, #name, &more.name);
	FORWARDED(FIND)
#undef FIND
	find(library, "cuDevicePrimaryCtxRetain",
	     &more.cuDevicePrimaryCtxRetain);
	find(library, "cuCtxSetCurrent", &more.cuCtxSetCurrent);
	find(library, "cuMemHostAlloc", &more.cuMemHostAlloc);
	find(library, "cuMemcpy", &more.cuMemcpy);
	opened = 1;
	return 1;
}

/* ---- The same on both --------------------------------------------------- */

#define FORWARD(name, hip, parameters, arguments) \
	PUBLIC int hip parameters;                \
	int hip parameters                        \
	{                                         \
		return more.name arguments;       \
	}
FORWARDED(FORWARD)
#undef FORWARD

#define SHARED(field, name, parameters, arguments)          \
	PUBLIC int shared_##field parameters __asm__(name); \
	int shared_##field parameters                       \
	{                                                   \
		return cu.gpu.field arguments;              \
	}

SHARED(module_unload, "hipModuleUnload", (spmla_gpu_module module), (module))
SHARED(module_function, "hipModuleGetFunction",
       (spmla_gpu_function * function, spmla_gpu_module module,
	const char *name),
       (function, module, name))
SHARED(function_attribute, "hipFuncGetAttribute",
       (int *value, int attribute, spmla_gpu_function function),
       (value, attribute, function))
SHARED(set_function_attribute, "hipFuncSetAttribute",
       (spmla_gpu_function function, int attribute, int value),
       (function, attribute, value))
SHARED(occupancy, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
       (int *blocks, spmla_gpu_function function, int items,
	size_t shared_bytes),
       (blocks, function, items, shared_bytes))
SHARED(launch_kernel, "hipModuleLaunchKernel",
       (spmla_gpu_function function, unsigned grid_x, unsigned grid_y,
	unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
	unsigned shared_bytes, spmla_gpu_stream stream, void **params,
	void **extra),
       (function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
	shared_bytes, stream, params, extra))
SHARED(memset_async, "hipMemsetD8Async",
       (spmla_gpu_ptr to, unsigned char byte, size_t count,
	spmla_gpu_stream stream),
       (to, byte, count, stream))
SHARED(stream_create, "hipStreamCreateWithFlags",
       (spmla_gpu_stream * stream, unsigned flags), (stream, flags))
SHARED(stream_destroy, "hipStreamDestroy", (spmla_gpu_stream stream), (stream))
SHARED(stream_sync, "hipStreamSynchronize", (spmla_gpu_stream stream), (stream))
SHARED(stream_wait, "hipStreamWaitEvent",
       (spmla_gpu_stream stream, spmla_gpu_event event, unsigned flags),
       (stream, event, flags))
SHARED(event_record, "hipEventRecord",
       (spmla_gpu_event event, spmla_gpu_stream stream), (event, stream))
SHARED(stream_capturing, "hipStreamIsCapturing",
       (spmla_gpu_stream stream, int *status), (stream, status))
SHARED(capture_begin, "hipStreamBeginCapture",
       (spmla_gpu_stream stream, int mode), (stream, mode))
SHARED(capture_end, "hipStreamEndCapture",
       (spmla_gpu_stream stream, spmla_gpu_graph *graph), (stream, graph))
SHARED(graph_destroy, "hipGraphDestroy", (spmla_gpu_graph graph), (graph))
SHARED(graph_instantiate, "hipGraphInstantiateWithFlags",
       (spmla_gpu_exec * exec, spmla_gpu_graph graph, uint64_t flags),
       (exec, graph, flags))
SHARED(exec_destroy, "hipGraphExecDestroy", (spmla_gpu_exec exec), (exec))
SHARED(graph_upload, "hipGraphUpload",
       (spmla_gpu_exec exec, spmla_gpu_stream stream), (exec, stream))
SHARED(graph_launch, "hipGraphLaunch",
       (spmla_gpu_exec exec, spmla_gpu_stream stream), (exec, stream))

/* ---- What HIP does in its own way --------------------------------------- */

PUBLIC int hipInit(unsigned flags);
PUBLIC int hipRuntimeGetVersion(int *version);
PUBLIC int hipGetDevice(int *number);
PUBLIC int hipSetDevice(int number);
PUBLIC int hipDeviceGetAttribute(int *value, int attribute, int number);
PUBLIC int hipModuleLoadData(spmla_gpu_module *module, const void *image);
PUBLIC int hipHostMalloc(void **to, size_t bytes, unsigned flags);
PUBLIC int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
PUBLIC int hipGetDevicePropertiesR0600(void *to, int number);
PUBLIC int hipGetDevicePropertiesR0000(void *to, int number);
PUBLIC int hipGetDeviceProperties(void *to, int number);

int
hipInit(unsigned flags)
{
	return is_open() ? cu.gpu.init(flags) : NO_DEVICE;
}

int
hipRuntimeGetVersion(int *version)
{
	*version = VERSION;
	return is_open() ? 0 : NO_DEVICE;
}

int
hipGetDevice(int *number)
{
	*number = current;
	return 0;
}

int
hipSetDevice(int number)
{
	int r = 0;

	if (!is_open() || number < 0 || number >= DEVICES)
		return INVALID_DEVICE;
	if (!contexts[number])
		r = more.cuDevicePrimaryCtxRetain(&contexts[number], number);
	if (r == 0)
		r = more.cuCtxSetCurrent(contexts[number]);
	if (r == 0)
		current = number;
	return r;
}

/* Values of hipDeviceAttribute_t in ROCm 6, as far as tests ask for them. */
int
hipDeviceGetAttribute(int *value, int attribute, int number)
{
	switch (attribute) {
	case 4: /* CanUseHostPointerForRegisteredMem */
		return cu.attribute(value, 91, number);
	case 65: /* PageableMemoryAccess */
		return cu.attribute(value, 88, number);
	default:
		return SPMLA_GPU_INVALID_VALUE;
	}
}

/* Without the flag, a kernel need not see what the host writes meanwhile. */
int
hipHostMalloc(void **to, size_t bytes, unsigned flags)
{
	if (!(flags & COHERENT)) {
		fprintf(stderr, "libamdhip64: host memory is not coherent\n");
		return SPMLA_GPU_INVALID_VALUE;
	}
	return more.cuMemHostAlloc(to, bytes, flags & FLAGS_OF_CUDA);
}

int
hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	(void)kind;
	return more.cuMemcpy(to, from, bytes);
}

/* A code object for the architecture that the device names. */
int
hipModuleLoadData(spmla_gpu_module *module, const void *image)
{
	Elf64_Ehdr head;

	memcpy(&head, image, sizeof head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_machine != EM_AMDGPU)
		return NO_BINARY;
	if (spmla_i_cuda_blob_bytes)
		image = spmla_i_cuda_blob;
	return cu.gpu.module_load(module, image);
}

/* In the layout that has these bytes: warpSize, multiProcessorCount,
 * gcnArchName. */
static int
properties(uint8_t *to, int number, size_t width_at, size_t count_at,
	   size_t name_at)
{
	const char *arch = getenv("SPMLA_TEST_HIP_ARCH");
	int32_t width = 32, count = 0;
	int r;

	arch = arch ? arch : "gfx1100";
	if (strlen(arch) == strlen("gfx942"))
		width = 64;
	if (width == 64 && !getenv("SPMLA_TEST_EMULATOR")) {
		fprintf(stderr, "libamdhip64: no device has subgroups of 64\n");
		abort();
	}
	r = cu.attribute(&count, SPMLA_CU_ATTRIBUTE_SM_COUNT, number);
	memset(to, 0, SPMLA_HIP_PROPERTIES_BYTES);
	memcpy(to + width_at, &width, sizeof width);
	memcpy(to + count_at, &count, sizeof count);
	memcpy(to + name_at, arch, strlen(arch) + 1);
	return r;
}

int
hipGetDevicePropertiesR0600(void *to, int number)
{
	return properties(to, number, 308, 388, 1160);
}

int
hipGetDevicePropertiesR0000(void *to, int number)
{
	return properties(to, number, 276, 336, 396);
}

int
hipGetDeviceProperties(void *to, int number)
{
	return hipGetDevicePropertiesR0000(to, number);
}
