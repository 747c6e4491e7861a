/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a GPU driver's interface that CUDA and HIP share: the same
 * functions under other names, with the same numbers. A platform gives the
 * names, the functions that only it has, and what it does in its own way. The
 * functions are a table, so that a test may substitute its own.
 */
#ifndef SPMLA_PLATFORM_GPU_DRIVER_DRIVER_GPU_H
#define SPMLA_PLATFORM_GPU_DRIVER_DRIVER_GPU_H

#include "spmla/platform/gpu/driver/library_gpu.h"

typedef uint64_t spmla_gpu_ptr; /* HIP declares a pointer: the same register */
typedef struct spmla_gpu_module_st *spmla_gpu_module;
typedef struct spmla_gpu_function_st *spmla_gpu_function;
typedef struct spmla_gpu_stream_st *spmla_gpu_stream;
typedef struct spmla_gpu_event_st *spmla_gpu_event;
typedef struct spmla_gpu_graph_st *spmla_gpu_graph;
typedef struct spmla_gpu_exec_st *spmla_gpu_exec;

enum {
	SPMLA_GPU_INVALID_VALUE = 1,  /* results */
	SPMLA_GPU_NOT_FOUND = 500,    /* no such kernel */
	SPMLA_GPU_WRONG_THREAD = 908, /* ERROR_STREAM_CAPTURE_WRONG_THREAD */
	SPMLA_GPU_FUNCTION_LOCAL_BYTES = 3,
	/* the limit of dynamic shared memory */
	SPMLA_GPU_FUNCTION_DYNAMIC_BYTES = 8,
	SPMLA_GPU_STREAM_NON_BLOCKING = 1,
	SPMLA_GPU_CAPTURE_THREAD_LOCAL = 1,
	SPMLA_GPU_CAPTURE_RELAXED = 2,
	SPMLA_GPU_CAPTURE_NONE = 0,
	SPMLA_GPU_CAPTURE_ACTIVE = 1,
	SPMLA_GPU_STREAM_LEGACY = 1 /* as a handle */
};

/* F(field, parameters) */
#define SPMLA_GPU_FUNCTIONS(F)                                               \
	F(init, (unsigned flags))                                            \
	F(driver_version, (int *version))                                    \
	F(module_load, (spmla_gpu_module * module, const void *image))       \
	F(module_unload, (spmla_gpu_module module))                          \
	F(module_function, (spmla_gpu_function * function,                   \
			    spmla_gpu_module module, const char *name))      \
	F(function_attribute,                                                \
	  (int *value, int attribute, spmla_gpu_function function))          \
	F(set_function_attribute,                                            \
	  (spmla_gpu_function function, int attribute, int value))           \
	F(occupancy, (int *blocks, spmla_gpu_function function, int items,   \
		      size_t shared_bytes))                                  \
	F(launch_kernel,                                                     \
	  (spmla_gpu_function function, unsigned grid_x, unsigned grid_y,    \
	   unsigned grid_z, unsigned block_x, unsigned block_y,              \
	   unsigned block_z, unsigned shared_bytes, spmla_gpu_stream stream, \
	   void **params, void **extra))                                     \
	F(memset_async, (spmla_gpu_ptr to, unsigned char byte, size_t count, \
			 spmla_gpu_stream stream))                           \
	F(stream_create, (spmla_gpu_stream * stream, unsigned flags))        \
	F(stream_destroy, (spmla_gpu_stream stream))                         \
	F(stream_sync, (spmla_gpu_stream stream))                            \
	F(stream_wait,                                                       \
	  (spmla_gpu_stream stream, spmla_gpu_event event, unsigned flags))  \
	F(event_record, (spmla_gpu_event event, spmla_gpu_stream stream))    \
	F(stream_capturing, (spmla_gpu_stream stream, int *status))          \
	F(capture_begin, (spmla_gpu_stream stream, int mode))                \
	F(capture_end, (spmla_gpu_stream stream, spmla_gpu_graph * graph))   \
	F(graph_destroy, (spmla_gpu_graph graph))                            \
	F(graph_instantiate,                                                 \
	  (spmla_gpu_exec * exec, spmla_gpu_graph graph, uint64_t flags))    \
	F(exec_destroy, (spmla_gpu_exec exec))                               \
	F(graph_upload, (spmla_gpu_exec exec, spmla_gpu_stream stream))      \
	F(graph_launch, (spmla_gpu_exec exec, spmla_gpu_stream stream))

typedef enum spmla_i_gpu_call {
#define CALL(field, parameters) SPMLA_GPU_CALL_##field,
	SPMLA_GPU_FUNCTIONS(CALL)
#undef CALL
		SPMLA_GPU_CALLS
} spmla_i_gpu_call;

typedef struct spmla_i_gpu_platform spmla_i_gpu_platform;

/* A platform's table begins with this one; its own functions follow. */
typedef struct spmla_i_gpu_driver {
	const spmla_i_gpu_platform *platform;
#define FIELD(field, parameters) spmla_gpu_result(*field) parameters;
	SPMLA_GPU_FUNCTIONS(FIELD)
#undef FIELD
} spmla_i_gpu_driver;

/* What is a platform's own. A context is what makes its device current. */
struct spmla_i_gpu_platform {
	uint32_t kind;      /* spmla_backend_kind */
	uint32_t arch_rule; /* SPMLA_WANT_..: the plan's to the device's */
	int capture_mode;   /* SPMLA_GPU_CAPTURE_.. */
	const char *stream_field; /* of a diag about a stream */
	const char *const *names; /* [SPMLA_GPU_CALLS], as diags say them */
	spmla_i_gpu_library library;
	size_t driver_bytes; /* of the table */
	/* The context that `native` (may be NULL) names, or the current one.
	 * Errors: E_NULL if there is none, E_UNSUPPORTED for flags, E_DEVICE.
	 */
	spmla_status (*context)(const spmla_i_gpu_driver *driver,
				const spmla_native *native, void **context,
				spmla_diag *diag);
	/* Makes a context current until `leave`, which gets *before. */
	spmla_status (*enter)(const spmla_i_gpu_driver *driver, void *context,
			      void **before, spmla_diag *diag);
	void (*leave)(const spmla_i_gpu_driver *driver, void *before);
	/* The facts of the current device, except kind and ops. Errors:
	 * E_UNSUPPORTED, E_DEVICE. */
	spmla_status (*facts)(const spmla_i_gpu_driver *driver,
			      spmla_device *device, spmla_diag *diag);
};

/* The name of a call, for diags. */
#define SPMLA_I_GPU_NAME(driver, field) \
	((driver)->platform->names[SPMLA_GPU_CALL_##field])

/* Fills the platform's table from its library, which then stays loaded. A
 * function that the library lacks is NULL. Errors: E_NO_DRIVER. */
spmla_status spmla_i_gpu_open(spmla_i_gpu_driver *driver,
			      const spmla_i_gpu_platform *platform,
			      spmla_diag *diag);

/* Starts the driver, once its version is at least `version`, in the platform's
 * own count, and every function is there. Errors: E_DRIVER_OLD; E_NO_DRIVER,
 * with the function that is missing; E_DEVICE. */
spmla_status spmla_i_gpu_start(const spmla_i_gpu_driver *driver,
			       uint32_t version, spmla_diag *diag);

#endif
