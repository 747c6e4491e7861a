/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the CUDA driver's interface that is used, in our own words, with
 * the types and constants of its documentation. The functions are a table, so
 * that a test may substitute its own.
 */
#ifndef SPMLA_PLATFORM_CUDA_DRIVER_H
#define SPMLA_PLATFORM_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "spmla/spmla.h"

typedef int spmla_cu_result; /* 0 is success */
typedef int spmla_cu_device;
typedef uint64_t spmla_cu_ptr;
typedef struct spmla_cu_context_st *spmla_cu_context;
typedef struct spmla_cu_module_st *spmla_cu_module;
typedef struct spmla_cu_function_st *spmla_cu_function;
typedef struct spmla_cu_stream_st *spmla_cu_stream;
typedef struct spmla_cu_event_st *spmla_cu_event;
typedef struct spmla_cu_graph_st *spmla_cu_graph;
typedef struct spmla_cu_exec_st *spmla_cu_exec;

enum {
	SPMLA_CU_ATTRIBUTE_WARP_SIZE = 10,
	SPMLA_CU_ATTRIBUTE_SM_COUNT = 16,
	SPMLA_CU_ATTRIBUTE_MAJOR = 75,
	SPMLA_CU_ATTRIBUTE_MINOR = 76,
	SPMLA_CU_INVALID_VALUE = 1, /* a result */
	SPMLA_CU_NOT_FOUND = 500,   /* another */
	SPMLA_CU_FUNCTION_LOCAL_BYTES = 3,
	/* the limit of dynamic shared memory */
	SPMLA_CU_FUNCTION_DYNAMIC_BYTES = 8,
	SPMLA_CU_STREAM_NON_BLOCKING = 1,
	SPMLA_CU_CAPTURE_THREAD_LOCAL = 1,
	SPMLA_CU_CAPTURE_NONE = 0,
	SPMLA_CU_CAPTURE_ACTIVE = 1,
	SPMLA_CU_WRONG_THREAD = 908, /* CUDA_ERROR_STREAM_CAPTURE_.. */
	SPMLA_CU_STREAM_LEGACY = 1   /* as a handle */
};

/* F(field, symbol, parameters); the symbols are of one version for good. */
#define SPMLA_CU_FUNCTIONS(F)                                               \
	F(init, "cuInit", (unsigned flags))                                 \
	F(driver_version, "cuDriverGetVersion", (int *version))             \
	F(ctx_current, "cuCtxGetCurrent", (spmla_cu_context * ctx))         \
	F(ctx_push, "cuCtxPushCurrent_v2", (spmla_cu_context ctx))          \
	F(ctx_pop, "cuCtxPopCurrent_v2", (spmla_cu_context * ctx))          \
	F(ctx_device, "cuCtxGetDevice", (spmla_cu_device * device))         \
	F(attribute, "cuDeviceGetAttribute",                                \
	  (int *value, int attribute, spmla_cu_device device))              \
	F(module_load, "cuModuleLoadData",                                  \
	  (spmla_cu_module * module, const void *image))                    \
	F(module_unload, "cuModuleUnload", (spmla_cu_module module))        \
	F(module_function, "cuModuleGetFunction",                           \
	  (spmla_cu_function * function, spmla_cu_module module,            \
	   const char *name))                                               \
	F(function_attribute, "cuFuncGetAttribute",                         \
	  (int *value, int attribute, spmla_cu_function function))          \
	F(set_function_attribute, "cuFuncSetAttribute",                     \
	  (spmla_cu_function function, int attribute, int value))           \
	F(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",         \
	  (int *blocks, spmla_cu_function function, int items,              \
	   size_t shared_bytes))                                            \
	F(launch_kernel, "cuLaunchKernel",                                  \
	  (spmla_cu_function function, unsigned grid_x, unsigned grid_y,    \
	   unsigned grid_z, unsigned block_x, unsigned block_y,             \
	   unsigned block_z, unsigned shared_bytes, spmla_cu_stream stream, \
	   void **params, void **extra))                                    \
	F(memset_async, "cuMemsetD8Async",                                  \
	  (spmla_cu_ptr to, unsigned char byte, size_t count,               \
	   spmla_cu_stream stream))                                         \
	F(stream_create, "cuStreamCreate",                                  \
	  (spmla_cu_stream * stream, unsigned flags))                       \
	F(stream_destroy, "cuStreamDestroy_v2", (spmla_cu_stream stream))   \
	F(stream_sync, "cuStreamSynchronize", (spmla_cu_stream stream))     \
	F(stream_wait, "cuStreamWaitEvent",                                 \
	  (spmla_cu_stream stream, spmla_cu_event event, unsigned flags))   \
	F(event_record, "cuEventRecord",                                    \
	  (spmla_cu_event event, spmla_cu_stream stream))                   \
	F(stream_capturing, "cuStreamIsCapturing",                          \
	  (spmla_cu_stream stream, int *status))                            \
	F(capture_begin, "cuStreamBeginCapture_v2",                         \
	  (spmla_cu_stream stream, int mode))                               \
	F(capture_end, "cuStreamEndCapture",                                \
	  (spmla_cu_stream stream, spmla_cu_graph * graph))                 \
	F(graph_destroy, "cuGraphDestroy", (spmla_cu_graph graph))          \
	F(graph_instantiate, "cuGraphInstantiateWithFlags",                 \
	  (spmla_cu_exec * exec, spmla_cu_graph graph, uint64_t flags))     \
	F(exec_destroy, "cuGraphExecDestroy", (spmla_cu_exec exec))         \
	F(graph_upload, "cuGraphUpload",                                    \
	  (spmla_cu_exec exec, spmla_cu_stream stream))                     \
	F(graph_launch, "cuGraphLaunch",                                    \
	  (spmla_cu_exec exec, spmla_cu_stream stream))

typedef struct spmla_i_cuda_driver {
#define FIELD(field, symbol, parameters) spmla_cu_result(*field) parameters;
	SPMLA_CU_FUNCTIONS(FIELD)
#undef FIELD
} spmla_i_cuda_driver;

/* Fills the table from libcuda.so.1, which then stays loaded. A function that
 * the library lacks is NULL. Errors: E_NO_DRIVER. */
spmla_status spmla_i_cuda_open(spmla_i_cuda_driver *driver, spmla_diag *diag);

/* Starts the driver, once its version is at least `version` (1000 * major) and
 * every function is there. Errors: E_DRIVER_OLD; E_NO_DRIVER, with the function
 * that is missing; E_DEVICE. */
spmla_status spmla_i_cuda_start(const spmla_i_cuda_driver *driver,
				uint32_t version, spmla_diag *diag);

/* E_DEVICE: `function` gave `code`. */
spmla_status spmla_i_cuda_failed(spmla_diag *diag, const char *function,
				 spmla_cu_result code);

#endif
