/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend. It opens the driver, libcuda.so.1, when it is first called.
 * Nothing of CUDA is linked. A program that does not name &spmla_cuda contains
 * neither its kernels nor dlopen. A program that does must link with -ldl if
 * its C library is older than glibc 2.34.
 *
 * Terms of the other headers, on CUDA:
 *
 * native.context: a CUcontext; NULL is the calling thread's current one. It
 * also says which device is used; native.device and native.queue are ignored.
 * If it is a primary context, the engine keeps it alive from query to fini.
 * native.flags: 0.
 * plan.device.arch: the device's architecture or an older one, whose kernels
 * are then used.
 * Regions: PINNED is host memory that the device can access at the same address
 * (cuMemAllocHost, cuMemHostRegister), cached, not write-combined. DEVICE and
 * CACHE are device addresses; the host never touches them.
 * spmla_stream: a CUstream of the context; a cudaStream_t is one. NULL and
 * CU_STREAM_LEGACY, the stream that waits for all others, are refused (E_RANGE,
 * "stream").
 * Current context: calls that take a stream need the context to be current on
 * the calling thread, as the engine's own launches do. All other calls make it
 * current and restore the old one.
 * spmla_graph_begin: starts a capture of the stream for the calling thread.
 * Whatever is enqueued until _end must go to that stream or to one that joined
 * its capture. The same thread must call _end or _abort. In another thread the
 * driver returns 908 (E_DEVICE) and the capture stays open; if the thread has
 * ended, nobody can close it. The engine's own capture needs no call of SpMLA:
 * operations enqueued on its stream become its nodes.
 * spmla_event, of spmla_v4_branches: a CUevent; a cudaEvent_t is one. The
 * streams of branches are spmla_streams. In a capture they join the capture
 * of the call's stream.
 * spmla_graph_replay: one cuGraphLaunch, and nothing else is enqueued. It first
 * asks the driver whether the stream is capturing.
 * spmla_fini: the caller has drained the streams, not only the ring.
 * Driver memory: modules, graphs and one stream. init and _end make them, fini
 * destroys them.
 *
 * Errors besides the ones that each call names. query and init: E_NO_DRIVER,
 * E_DRIVER_OLD, E_NULL ("native.context": there is none), E_UNSUPPORTED (a
 * device older than sm_80, a plan for another device or a newer one, a kernel
 * that does not fit). init: E_NO_BLOB. All: E_DEVICE, the driver refused; the
 * diag has its function and its code.
 */
#ifndef SPMLA_CUDA_H
#define SPMLA_CUDA_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CUDA backend, for spmla_init. */
extern const spmla_backend spmla_cuda;

#ifdef __cplusplus
}
#endif
#endif
