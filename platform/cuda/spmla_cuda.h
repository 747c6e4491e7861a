/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend. The driver, libcuda.so.1, is opened when the backend is
 * first asked; nothing of CUDA is linked, and a program that does not name
 * &spmla_cuda has neither its kernels nor dlopen in it. With a C library older
 * than glibc 2.34, one that does links with -ldl.
 *
 * What the general words mean here:
 * native.context: a CUcontext; NULL = the calling thread's current one. The
 *   device is that of the context; native.device and .queue are not looked at.
 *   The primary context is kept alive by the engine, from query to fini.
 * native.flags: 0.
 * plan.device.arch: that of the device, or an older one, whose kernels are
 *   then taken.
 * Regions: PINNED is host memory that the device can access at the same
 *   address (cuMemAllocHost, cuMemHostRegister), cached, not write-combined;
 *   DEVICE and CACHE are device addresses, which the host never touches.
 * spmla_stream: a CUstream, which a cudaStream_t is, of the context. NULL and
 *   CU_STREAM_LEGACY, the stream that waits for all others, are refused
 *   (E_RANGE, "stream").
 * Calls that take a stream want the context current on the calling thread, as
 *   the engine's own launches do; all others make it so, and undo it.
 * spmla_graph_begin starts a capture of the stream for the calling thread;
 *   what is enqueued until _end goes to that stream or to one that joined its
 *   capture. That thread calls _end or _abort too: to another one the driver
 *   says 907, E_DEVICE, and the capture stays open; if it is gone before,
 *   nobody can. The engine's own capture needs no call of SpMLA: ops that are
 *   enqueued on its stream become its nodes.
 * spmla_event, of spmla_v4_branches: a CUevent, which a cudaEvent_t is; its
 *   streams are spmla_streams. In a capture they join that of the call's stream.
 * spmla_graph_replay is one cuGraphLaunch; asking first whether the stream
 *   captures, it enqueues nothing else.
 * spmla_fini: the caller has drained the streams, not only the ring.
 * Memory: modules, graphs and one stream are the driver's; made by init and
 *   _end, gone with fini.
 *
 * Errors, besides those that each call names: query and init: E_NO_DRIVER,
 * E_DRIVER_OLD, E_NULL ("native.context": there is none), E_UNSUPPORTED (a
 * device older than sm_80, a plan for another device or a newer one, a kernel
 * that does not fit); init: E_NO_BLOB. E_DEVICE: the driver refused; the diag
 * has its function and its code.
 */
#ifndef SPMLA_CUDA_H
#define SPMLA_CUDA_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const spmla_backend spmla_cuda;

#ifdef __cplusplus
}
#endif
#endif
