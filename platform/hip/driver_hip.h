/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP runtime as a platform of driver_gpu.h: its names, the functions that
 * only it has, the two layouts of its properties, and the embedded kernels. The
 * declarations are our own, with the types and constants of its documentation.
 */
#ifndef SPMLA_PLATFORM_HIP_DRIVER_H
#define SPMLA_PLATFORM_HIP_DRIVER_H

#include "spmla/platform/gpu/driver/init_gpu.h"

/* The version of ROCm 5.4, the first with all functions: 10^7 * major + 10^5 *
 * minor + patch. */
enum { SPMLA_HIP_OLDEST = 50400000 };

/* F(field, name): the runtime's names of SPMLA_GPU_FUNCTIONS. driver_version is
 * the runtime's version, as the kernel driver numbers its versions
 * differently. */
#define SPMLA_HIP_NAMES(F)                                                 \
	F(init, "hipInit")                                                 \
	F(driver_version, "hipRuntimeGetVersion")                          \
	F(module_load, "hipModuleLoadData")                                \
	F(module_unload, "hipModuleUnload")                                \
	F(module_function, "hipModuleGetFunction")                         \
	F(function_attribute, "hipFuncGetAttribute")                       \
	F(set_function_attribute, "hipFuncSetAttribute")                   \
	F(occupancy, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor") \
	F(launch_kernel, "hipModuleLaunchKernel")                          \
	F(memset_async, "hipMemsetD8Async")                                \
	F(stream_create, "hipStreamCreateWithFlags")                       \
	F(stream_destroy, "hipStreamDestroy")                              \
	F(stream_sync, "hipStreamSynchronize")                             \
	F(stream_wait, "hipStreamWaitEvent")                               \
	F(event_record, "hipEventRecord")                                  \
	F(stream_capturing, "hipStreamIsCapturing")                        \
	F(capture_begin, "hipStreamBeginCapture")                          \
	F(capture_end, "hipStreamEndCapture")                              \
	F(graph_destroy, "hipGraphDestroy")                                \
	F(graph_instantiate, "hipGraphInstantiateWithFlags")               \
	F(exec_destroy, "hipGraphExecDestroy")                             \
	F(graph_upload, "hipGraphUpload")                                  \
	F(graph_launch, "hipGraphLaunch")

/* F(field, symbol, parameters): the functions that only HIP has. */
#define SPMLA_HIP_OWN(F)                             \
	F(get_device, "hipGetDevice", (int *number)) \
	F(set_device, "hipSetDevice", (int number))

/* The same for three functions; the runtime must have one of them. The first
 * gives the properties of ROCm 6 and later. The other two give the older
 * properties, under their name in ROCm 6 and under their name before it. */
#define SPMLA_HIP_PROPERTIES(F)                           \
	F(properties_0600, "hipGetDevicePropertiesR0600", \
	  (spmla_hip_properties_0600 * to, int number))   \
	F(properties_0000, "hipGetDevicePropertiesR0000", \
	  (spmla_hip_properties_0000 * to, int number))   \
	F(properties_before, "hipGetDeviceProperties",    \
	  (spmla_hip_properties_0000 * to, int number))

enum { SPMLA_HIP_PROPERTIES_BYTES = 1472, SPMLA_HIP_NAME_BYTES = 256 };

/* hipDeviceProp_tR0600; what is not read has no name. */
typedef struct spmla_hip_properties_0600 {
	char name[SPMLA_HIP_NAME_BYTES];
	uint8_t reserved0[308 - 256];
	int32_t warp_size;
	uint8_t reserved1[388 - 312];
	int32_t multiprocessors;
	uint8_t reserved2[1160 - 392];
	char arch_name[SPMLA_HIP_NAME_BYTES]; /* "gfx90a:sramecc+:xnack-" */
	uint8_t reserved3[1472 - 1416];
} spmla_hip_properties_0600;

/* hipDeviceProp_tR0000 */
typedef struct spmla_hip_properties_0000 {
	char name[SPMLA_HIP_NAME_BYTES];
	uint8_t reserved0[276 - 256];
	int32_t warp_size;
	uint8_t reserved1[336 - 280];
	int32_t multiprocessors;
	uint8_t reserved2[396 - 340];
	char arch_name[SPMLA_HIP_NAME_BYTES];
	uint8_t reserved3[1472 - 652];
} spmla_hip_properties_0000;

typedef struct spmla_i_hip_driver {
	spmla_i_gpu_driver gpu;
#define FIELD(field, symbol, parameters) spmla_gpu_result(*field) parameters;
	SPMLA_HIP_OWN(FIELD)
	SPMLA_HIP_PROPERTIES(FIELD)
#undef FIELD
} spmla_i_hip_driver;

extern const spmla_i_gpu_platform spmla_i_hip_platform;

/* The embedded kernels: a code object for each architecture for which the build
 * had a compiler. They are in spmla_hip_blob.o, which the build makes with
 * platform/hip/blob.sh. */
typedef struct spmla_i_hip_part {
	uint64_t arch;   /* spmla_device.arch */
	uint64_t offset; /* in the blob, a multiple of 4096 */
	uint64_t bytes;
} spmla_i_hip_part;

extern const uint8_t spmla_i_hip_blob[];
extern const spmla_i_hip_part spmla_i_hip_parts[];
extern const uint64_t spmla_i_hip_part_count;

/* The code object for an architecture; no bytes if there is none. */
spmla_i_gpu_image spmla_i_hip_image(const uint8_t *blob,
				    const spmla_i_hip_part *parts,
				    uint64_t count, uint32_t arch);

#endif
