/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver as a platform of driver_gpu.h: its names, the functions that
 * only it has, and the embedded kernels. The declarations are our own, with the
 * types and constants of its documentation.
 */
#ifndef SPMLA_PLATFORM_CUDA_DRIVER_H
#define SPMLA_PLATFORM_CUDA_DRIVER_H

#include "spmla/platform/gpu/driver/driver_gpu.h"

typedef int spmla_cu_device;
typedef struct spmla_cu_context_st *spmla_cu_context;

enum {
	SPMLA_CU_ATTRIBUTE_WARP_SIZE = 10,
	SPMLA_CU_ATTRIBUTE_SM_COUNT = 16,
	SPMLA_CU_ATTRIBUTE_MAJOR = 75,
	SPMLA_CU_ATTRIBUTE_MINOR = 76
};

/* The oldest architecture that has kernels. */
enum { SPMLA_I_CUDA_OLDEST_ARCH = 80 };

/* F(field, name, version): the driver's names of SPMLA_GPU_FUNCTIONS. Name and
 * version together are a symbol, whose signature never changes. */
#define SPMLA_CU_NAMES(F)                                               \
	F(init, "cuInit", "")                                           \
	F(driver_version, "cuDriverGetVersion", "")                     \
	F(module_load, "cuModuleLoadData", "")                          \
	F(module_unload, "cuModuleUnload", "")                          \
	F(module_function, "cuModuleGetFunction", "")                   \
	F(function_attribute, "cuFuncGetAttribute", "")                 \
	F(set_function_attribute, "cuFuncSetAttribute", "")             \
	F(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", "") \
	F(launch_kernel, "cuLaunchKernel", "")                          \
	F(memset_async, "cuMemsetD8Async", "")                          \
	F(stream_create, "cuStreamCreate", "")                          \
	F(stream_destroy, "cuStreamDestroy", "_v2")                     \
	F(stream_sync, "cuStreamSynchronize", "")                       \
	F(stream_wait, "cuStreamWaitEvent", "")                         \
	F(event_record, "cuEventRecord", "")                            \
	F(stream_capturing, "cuStreamIsCapturing", "")                  \
	F(capture_begin, "cuStreamBeginCapture", "_v2")                 \
	F(capture_end, "cuStreamEndCapture", "")                        \
	F(graph_destroy, "cuGraphDestroy", "")                          \
	F(graph_instantiate, "cuGraphInstantiateWithFlags", "")         \
	F(exec_destroy, "cuGraphExecDestroy", "")                       \
	F(graph_upload, "cuGraphUpload", "")                            \
	F(graph_launch, "cuGraphLaunch", "")

/* F(field, symbol, parameters): the functions that only CUDA has. */
#define SPMLA_CU_OWN(F)                                             \
	F(ctx_current, "cuCtxGetCurrent", (spmla_cu_context * ctx)) \
	F(ctx_push, "cuCtxPushCurrent_v2", (spmla_cu_context ctx))  \
	F(ctx_pop, "cuCtxPopCurrent_v2", (spmla_cu_context * ctx))  \
	F(ctx_device, "cuCtxGetDevice", (spmla_cu_device * device)) \
	F(attribute, "cuDeviceGetAttribute",                        \
	  (int *value, int attribute, spmla_cu_device device))

typedef struct spmla_i_cuda_driver {
	spmla_i_gpu_driver gpu;
#define FIELD(field, symbol, parameters) spmla_gpu_result(*field) parameters;
	SPMLA_CU_OWN(FIELD)
#undef FIELD
} spmla_i_cuda_driver;

extern const spmla_i_gpu_platform spmla_i_cuda_platform;

/* The embedded kernels: a fatbin, in which the driver finds its size; no bytes
 * if the library was built without nvcc. They are in spmla_cuda_blob.o, which
 * the build makes with platform/cuda/blob.sh. */
extern const uint8_t spmla_i_cuda_blob[];
extern const uint64_t spmla_i_cuda_blob_bytes;
/* the driver version that the kernels need, such as 13000 */
extern const uint32_t spmla_i_cuda_blob_driver;

#endif
