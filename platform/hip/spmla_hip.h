/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP backend. It opens the runtime, libamdhip64.so.7, .6 or .5, when it is
 * first called: ROCm 5.4 or later. Nothing of ROCm is linked. A program that
 * does not name &spmla_hip contains neither its kernels nor dlopen. A program
 * that does must link with -ldl if its C library is older than glibc 2.34.
 *
 * It has not run on an AMD GPU yet, only on substitutes for the runtime. They
 * test the host's calls and the kernels' arithmetic, but not HIP's capture or
 * AMD's memory ordering.
 *
 * Terms of the other headers, on HIP:
 *
 * native.device: the address of an int, the number of the device; NULL is the
 * calling thread's current device. native.context and native.queue are ignored.
 * native.flags: 0.
 * plan.device.arch: the device's architecture, 0x942 for gfx942. Kernels exist
 * for gfx90a, gfx942 and gfx950 (subgroups of 64), gfx1100 and gfx1201 (of 32),
 * each if a compiler for it was there at build time. A code object runs on its
 * own architecture only.
 * Regions: PINNED is coherent host memory that the device can access at the
 * same address (hipHostMalloc with hipHostMallocCoherent), cached, not
 * write-combined. DEVICE and CACHE are device addresses; the host never touches
 * them.
 * spmla_stream: a hipStream_t of the device. NULL and hipStreamLegacy, the
 * stream that waits for all others, are refused (E_RANGE, "stream").
 * Current device: calls that take a stream need the device to be current on the
 * calling thread, as the engine's own launches do. All other calls make it
 * current and restore the old one.
 * spmla_graph_begin: starts a capture of the stream, in the relaxed mode:
 * another thread may end it, and calls of other threads do not invalidate it.
 * Whatever is enqueued until _end must go to that stream or to one that joined
 * its capture. The engine's own capture needs no call of SpMLA: operations
 * enqueued on its stream become its nodes, which are kernels only.
 * spmla_event, of spmla_v4_branches: a hipEvent_t. The streams of branches are
 * spmla_streams. In a capture they join the capture of the call's stream.
 * spmla_graph_replay: one hipGraphLaunch, and nothing else is enqueued. It
 * first asks the runtime whether the stream is capturing.
 * spmla_fini: the caller has drained the streams, not only the ring.
 * Memory of the runtime: modules, graphs and one stream. init and _end make
 * them, fini destroys them.
 *
 * Errors besides the ones that each call names. query and init: E_NO_DRIVER,
 * E_DRIVER_OLD, E_UNSUPPORTED (a device without kernels here, a plan for
 * another device, a kernel that does not fit). init: E_NO_BLOB. All: E_DEVICE,
 * the runtime refused; the diag has its function and its code.
 */
#ifndef SPMLA_HIP_H
#define SPMLA_HIP_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The HIP backend, for spmla_init. */
extern const spmla_backend spmla_hip;

#ifdef __cplusplus
}
#endif
#endif
