/* SPDX-License-Identifier: Apache-2.0
 *
 * The Level Zero backend. It opens the loader, libze_loader.so.1, when it is
 * first called, and wants a driver of 1.3 or later behind it. Nothing of Level
 * Zero is linked. A program that does not name &spmla_level_zero contains
 * neither its kernels nor dlopen. A program that does must link with -ldl if
 * its C library is older than glibc 2.34.
 *
 * It has not run on an Intel GPU yet. It ran on a test driver behind the real
 * loader, which runs the embedded SPIR-V on the CPU. This tests the host's
 * calls and the kernels' arithmetic, but not Intel's memory ordering.
 *
 * Terms of the other headers, on Level Zero:
 *
 * native.context: a ze_context_handle_t; all memory belongs to it. query does
 * not need it.
 * native.device: a ze_device_handle_t, a GPU or a subdevice of one. query takes
 * NULL for the first GPU.
 * native.queue: the ze_command_queue_handle_t that graphs are replayed on, of
 * the first queue group that computes. NULL: this context makes no graphs.
 * native.graph_copies: a command list must not be submitted while it runs, so
 * each graph is recorded in this many lists.
 * native.flags: 0.
 * plan.device.arch: the PCI device ID (deviceId), such as 0xe20b for a B580.
 * Subgroups have 16 threads. The driver compiles the kernels in init.
 * Regions: PINNED is host memory (zeMemAllocHost). DEVICE and CACHE are device
 * addresses (zeMemAllocDevice); the host never touches them. For a region of
 * more than 4 GiB, set the driver's relaxed allocation limits.
 * Consumed records: where device and host may not access host memory at the
 * same time (ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT is missing), the library
 * reads the ring's counter only while no graph runs. A record is then consumed
 * when the list that read it has ended, so E_RING_FULL may come a little
 * earlier. Records are written while graphs run, into slots that no running
 * graph reads. spmla_status_read is E_BUSY there while a graph runs, and is for
 * the context's thread alone.
 *
 * spmla_stream: an immediate command list, for every call that enqueues except
 * spmla_graph_replay. The call appends its kernels, with a barrier before the
 * first and after each. spmla_graph_replay takes native.queue. NULL is refused
 * (E_RANGE, "stream"), and so is native.queue in place of a list. Nothing
 * orders lists and queue: before a replay, wait for the list's work that it
 * needs, and the other way round.
 * spmla_graph_begin: from here to _end, what is enqueued with that list is
 * recorded, not run. Other lists are refused (E_STATE). The recording has
 * barriers between the kernels and at both ends. The engine appends kernels of
 * its own to the lists of spmla_level_zero_list. The library does not know of
 * lists that the engine records by itself.
 * spmla_v4_branches: not used; there is one timeline.
 * spmla_graph_replay: one zeCommandQueueExecuteCommandLists with a fence, and
 * nothing else. It never waits: E_BUSY if every copy of the graph still runs,
 * or if 64 replays do.
 * spmla_fini: E_BUSY while a graph runs. The caller has drained the lists.
 * Driver memory: modules, their kernels, lists and fences. init and
 * spmla_graph_begin make them, fini destroys them.
 *
 * Errors besides the ones that each call names. query and init: E_NO_DRIVER,
 * E_DRIVER_OLD, E_RANGE ("native.device": neither a GPU that zeDeviceGet lists
 * nor a subdevice of one), E_UNSUPPORTED (a device without blocks of 1024
 * threads or subgroups of 16, a plan for another device, a kernel that does not
 * fit). init: E_NULL ("native.context", "native.device"), E_NO_BLOB.
 * spmla_graph_begin: E_NULL ("native.queue"). All: E_DEVICE, the driver
 * refused; the diag has its function and its code. If the driver could not
 * build the kernels, the first 4 KB of its compiler's message follow the
 * function; this text lies in the HOST region. A message of more than 22 KB is
 * left out.
 */
#ifndef SPMLA_LEVEL_ZERO_H
#define SPMLA_LEVEL_ZERO_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The Level Zero backend, for spmla_init. */
extern const spmla_backend spmla_level_zero;

/* The ze_command_list_handle_t of a copy of the graph that is being recorded,
 * copy of [0, native.graph_copies); NULL if there is none. The engine may
 * append kernels of its own, the same to each copy, and a barrier after
 * them. */
void *spmla_level_zero_list(const spmla_ctx *ctx, uint32_t copy);

#ifdef __cplusplus
}
#endif
#endif
