/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of Level Zero that is used: its functions as a table, so that a test
 * may substitute its own, the structs that they take, and the embedded kernels.
 * The declarations are our own, with the types and numbers of the documentation
 * of Level Zero 1.3.
 */
#ifndef SPMLA_PLATFORM_LEVEL_ZERO_DRIVER_H
#define SPMLA_PLATFORM_LEVEL_ZERO_DRIVER_H

#include "spmla/platform/gpu/driver/library_gpu.h"

typedef struct spmla_ze_driver_st *spmla_ze_driver;
typedef struct spmla_ze_device_st *spmla_ze_device;
typedef struct spmla_ze_context_st *spmla_ze_context;
typedef struct spmla_ze_module_st *spmla_ze_module;
typedef struct spmla_ze_log_st *spmla_ze_log; /* of a module's build */
typedef struct spmla_ze_kernel_st *spmla_ze_kernel;
typedef struct spmla_ze_list_st *spmla_ze_list; /* of commands */
typedef struct spmla_ze_queue_st *spmla_ze_queue;
typedef struct spmla_ze_fence_st *spmla_ze_fence;
typedef struct spmla_ze_event_st *spmla_ze_event;

enum {
	SPMLA_ZE_OLDEST = 0x10003, /* major << 16 | minor */
	SPMLA_ZE_INIT_GPU_ONLY = 1,
	/* results */
	SPMLA_ZE_NOT_READY = 1,
	SPMLA_ZE_BUILD_FAILURE = 0x70000004,
	/* stype of the structs */
	SPMLA_ZE_DEVICE_PROPERTIES = 0x3,
	SPMLA_ZE_COMPUTE_PROPERTIES = 0x4,
	SPMLA_ZE_QUEUE_GROUP_PROPERTIES = 0x6,
	SPMLA_ZE_MEMORY_ACCESS_PROPERTIES = 0x8,
	SPMLA_ZE_QUEUE_DESC = 0xe,
	SPMLA_ZE_LIST_DESC = 0xf,
	SPMLA_ZE_FENCE_DESC = 0x12,
	SPMLA_ZE_MODULE_DESC = 0x1b,
	SPMLA_ZE_KERNEL_DESC = 0x1d,
	SPMLA_ZE_KERNEL_PROPERTIES = 0x1e,
	/* values of their fields */
	SPMLA_ZE_DEVICE_GPU = 1,
	SPMLA_ZE_QUEUE_GROUP_COMPUTE = 1,
	SPMLA_ZE_ACCESS_CONCURRENT = 4,
	SPMLA_ZE_QUEUE_SYNCHRONOUS = 1,
	SPMLA_ZE_FORMAT_SPIRV = 0,
	SPMLA_ZE_INDIRECT_ALL = 7, /* host, device and shared memory */
	SPMLA_ZE_NAME_BYTES = 256,
	SPMLA_ZE_SUBGROUP_SIZES = 8
};

/* ze_device_properties_t */
typedef struct spmla_ze_device_properties {
	uint32_t stype;
	void *next;
	uint32_t type;
	uint32_t vendor_id;
	uint32_t device_id; /* of PCI */
	uint32_t flags;
	uint32_t subdevice_id;
	uint32_t core_clock_rate;
	uint64_t max_alloc_bytes;
	uint32_t max_hardware_contexts;
	uint32_t max_queue_priority;
	uint32_t threads_per_eu;
	uint32_t simd_width;
	uint32_t eus_per_subslice;
	uint32_t subslices_per_slice;
	uint32_t slices;
	uint64_t timer_resolution;
	uint32_t timestamp_bits;
	uint32_t kernel_timestamp_bits;
	uint8_t uuid[16];
	char name[SPMLA_ZE_NAME_BYTES];
} spmla_ze_device_properties;

/* ze_device_compute_properties_t */
typedef struct spmla_ze_compute_properties {
	uint32_t stype;
	void *next;
	uint32_t max_group_items;
	uint32_t max_group_size[3];
	uint32_t max_group_count[3];
	uint32_t max_shared_bytes;
	uint32_t subgroup_size_count;
	uint32_t subgroup_sizes[SPMLA_ZE_SUBGROUP_SIZES];
} spmla_ze_compute_properties;

/* ze_command_queue_group_properties_t */
typedef struct spmla_ze_queue_group_properties {
	uint32_t stype;
	void *next;
	uint32_t flags;
	size_t max_fill_pattern_bytes;
	uint32_t queues;
} spmla_ze_queue_group_properties;

/* ze_device_memory_access_properties_t */
typedef struct spmla_ze_memory_access_properties {
	uint32_t stype;
	void *next;
	uint32_t host;
	uint32_t device;
	uint32_t shared_single;
	uint32_t shared_cross;
	uint32_t shared_system;
} spmla_ze_memory_access_properties;

/* ze_command_queue_desc_t */
typedef struct spmla_ze_queue_desc {
	uint32_t stype;
	const void *next;
	uint32_t ordinal; /* of the queue group */
	uint32_t index;
	uint32_t flags;
	uint32_t mode;
	uint32_t priority;
} spmla_ze_queue_desc;

/* ze_command_list_desc_t */
typedef struct spmla_ze_list_desc {
	uint32_t stype;
	const void *next;
	uint32_t ordinal;
	uint32_t flags;
} spmla_ze_list_desc;

/* ze_fence_desc_t */
typedef struct spmla_ze_fence_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
} spmla_ze_fence_desc;

/* ze_module_desc_t */
typedef struct spmla_ze_module_desc {
	uint32_t stype;
	const void *next;
	uint32_t format;
	size_t bytes;
	const uint8_t *data;
	const char *flags;
	const void *constants;
} spmla_ze_module_desc;

/* ze_kernel_desc_t */
typedef struct spmla_ze_kernel_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
	const char *name;
} spmla_ze_kernel_desc;

/* ze_kernel_properties_t */
typedef struct spmla_ze_kernel_properties {
	uint32_t stype;
	void *next;
	uint32_t args;
	uint32_t required_group[3];
	uint32_t required_subgroups;
	uint32_t required_subgroup_size;
	uint32_t max_subgroup_size;
	uint32_t max_subgroups;
	uint32_t shared_bytes;
	uint32_t private_bytes;
	uint32_t spill_bytes;
	uint8_t uuid[32];
} spmla_ze_kernel_properties;

/* ze_group_count_t */
typedef struct spmla_ze_group_count {
	uint32_t x, y, z;
} spmla_ze_group_count;

/* F(field, symbol, parameters) */
#define SPMLA_ZE_FUNCTIONS(F)                                               \
	F(init, "zeInit", (uint32_t flags))                                 \
	F(driver_get, "zeDriverGet",                                        \
	  (uint32_t * count, spmla_ze_driver * drivers))                    \
	F(driver_version, "zeDriverGetApiVersion",                          \
	  (spmla_ze_driver driver, uint32_t * version))                     \
	F(device_get, "zeDeviceGet",                                        \
	  (spmla_ze_driver driver, uint32_t * count,                        \
	   spmla_ze_device * devices))                                      \
	F(sub_devices, "zeDeviceGetSubDevices",                             \
	  (spmla_ze_device device, uint32_t * count,                        \
	   spmla_ze_device * devices))                                      \
	F(device_properties, "zeDeviceGetProperties",                       \
	  (spmla_ze_device device, spmla_ze_device_properties * to))        \
	F(compute_properties, "zeDeviceGetComputeProperties",               \
	  (spmla_ze_device device, spmla_ze_compute_properties * to))       \
	F(memory_access, "zeDeviceGetMemoryAccessProperties",               \
	  (spmla_ze_device device, spmla_ze_memory_access_properties * to)) \
	F(queue_groups, "zeDeviceGetCommandQueueGroupProperties",           \
	  (spmla_ze_device device, uint32_t * count,                        \
	   spmla_ze_queue_group_properties * to))                           \
	F(device_status, "zeDeviceGetStatus", (spmla_ze_device device))     \
	F(module_create, "zeModuleCreate",                                  \
	  (spmla_ze_context context, spmla_ze_device device,                \
	   const spmla_ze_module_desc *desc, spmla_ze_module *module,       \
	   spmla_ze_log *log))                                              \
	F(module_destroy, "zeModuleDestroy", (spmla_ze_module module))      \
	F(log_text, "zeModuleBuildLogGetString",                            \
	  (spmla_ze_log log, size_t * bytes, char *text))                   \
	F(log_destroy, "zeModuleBuildLogDestroy", (spmla_ze_log log))       \
	F(kernel_create, "zeKernelCreate",                                  \
	  (spmla_ze_module module, const spmla_ze_kernel_desc *desc,        \
	   spmla_ze_kernel *kernel))                                        \
	F(kernel_destroy, "zeKernelDestroy", (spmla_ze_kernel kernel))      \
	F(kernel_properties, "zeKernelGetProperties",                       \
	  (spmla_ze_kernel kernel, spmla_ze_kernel_properties * to))        \
	F(group_size, "zeKernelSetGroupSize",                               \
	  (spmla_ze_kernel kernel, uint32_t x, uint32_t y, uint32_t z))     \
	F(indirect_access, "zeKernelSetIndirectAccess",                     \
	  (spmla_ze_kernel kernel, uint32_t flags))                         \
	F(resident_groups, "zeKernelSuggestMaxCooperativeGroupCount",       \
	  (spmla_ze_kernel kernel, uint32_t * count))                       \
	F(set_argument, "zeKernelSetArgumentValue",                         \
	  (spmla_ze_kernel kernel, uint32_t index, size_t bytes,            \
	   const void *value))                                              \
	F(list_create, "zeCommandListCreate",                               \
	  (spmla_ze_context context, spmla_ze_device device,                \
	   const spmla_ze_list_desc *desc, spmla_ze_list *list))            \
	F(list_immediate, "zeCommandListCreateImmediate",                   \
	  (spmla_ze_context context, spmla_ze_device device,                \
	   const spmla_ze_queue_desc *desc, spmla_ze_list *list))           \
	F(list_close, "zeCommandListClose", (spmla_ze_list list))           \
	F(list_destroy, "zeCommandListDestroy", (spmla_ze_list list))       \
	F(append_barrier, "zeCommandListAppendBarrier",                     \
	  (spmla_ze_list list, spmla_ze_event signal, uint32_t count,       \
	   spmla_ze_event * wait))                                          \
	F(append_kernel, "zeCommandListAppendLaunchKernel",                 \
	  (spmla_ze_list list, spmla_ze_kernel kernel,                      \
	   const spmla_ze_group_count *groups, spmla_ze_event signal,       \
	   uint32_t count, spmla_ze_event *wait))                           \
	F(append_fill, "zeCommandListAppendMemoryFill",                     \
	  (spmla_ze_list list, void *to, const void *pattern,               \
	   size_t pattern_bytes, size_t bytes, spmla_ze_event signal,       \
	   uint32_t count, spmla_ze_event *wait))                           \
	F(queue_execute, "zeCommandQueueExecuteCommandLists",               \
	  (spmla_ze_queue queue, uint32_t count, spmla_ze_list * lists,     \
	   spmla_ze_fence fence))                                           \
	F(fence_create, "zeFenceCreate",                                    \
	  (spmla_ze_queue queue, const spmla_ze_fence_desc *desc,           \
	   spmla_ze_fence *fence))                                          \
	F(fence_destroy, "zeFenceDestroy", (spmla_ze_fence fence))          \
	F(fence_query, "zeFenceQueryStatus", (spmla_ze_fence fence))        \
	F(fence_reset, "zeFenceReset", (spmla_ze_fence fence))

typedef struct spmla_i_ze_driver {
#define FIELD(field, symbol, parameters) spmla_gpu_result(*field) parameters;
	SPMLA_ZE_FUNCTIONS(FIELD)
#undef FIELD
} spmla_i_ze_driver;

extern const spmla_i_gpu_library spmla_i_ze_library;

/* Starts the drivers and looks for *device among their GPUs and parts of GPUs;
 * NULL becomes the first GPU. Errors: E_NO_DRIVER with the function that is
 * missing; E_RANGE if no driver has the device; E_DRIVER_OLD; E_DEVICE. */
spmla_status spmla_i_ze_start(const spmla_i_ze_driver *driver,
			      spmla_ze_device *device, spmla_diag *diag);

/* The facts of a device, except ops. Errors: E_UNSUPPORTED, E_DEVICE. */
spmla_status spmla_i_ze_facts(const spmla_i_ze_driver *driver,
			      spmla_ze_device device, spmla_device *to,
			      spmla_diag *diag);

/* The embedded kernels, as two SPIR-V modules: the portable ones, and those
 * that use tile.h; no bytes if the library was built without the tools for it.
 * They are in spmla_level_zero_blob.o, which the build makes with
 * platform/level_zero/blob.sh. */
extern const uint8_t spmla_i_level_zero_blob[];
extern const uint64_t spmla_i_level_zero_blob_bytes;
extern const uint8_t spmla_i_level_zero_tiles[];
extern const uint64_t spmla_i_level_zero_tiles_bytes;

/* The modules of a context. */
enum { SPMLA_ZE_PORTABLE, SPMLA_ZE_TILES, SPMLA_ZE_MODULES };

typedef struct spmla_i_ze_image {
	const uint8_t *spirv;
	uint64_t bytes;
} spmla_i_ze_image;

#endif
