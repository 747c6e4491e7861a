/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver and the device. Like the library, the bench opens libcuda.so.1
 * itself, so that it starts, and says SKIPPED, where there is none.
 */
#include "bench/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLOCK_KHZ = 13, /* attributes of a device */
	SM_COUNT = 16,
	L2_BYTES = 38,
	MAJOR = 75,
	MINOR = 76,
	NON_BLOCKING = 1, /* of a stream */
	SM_CLOCK = 1      /* of libnvidia-ml */
};

/* Reads are folded into one value. It is stored only if it is a value that does
 * not occur; so the loads stay. Four are on their way at a time. */
static const char ptx[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .entry bench_empty() { ret; }\n"
	".visible .entry bench_read(.param .u64 at, .param .u64 vectors)\n"
	"{\n"
	".reg .pred p;\n.reg .b32 r<20>;\n.reg .b64 d<16>;\n"
	"ld.param.u64 d0, [at];\nld.param.u64 d1, [vectors];\n"
	"mov.u32 r0, %ctaid.x;\nmov.u32 r1, %ntid.x;\n"
	"mov.u32 r2, %tid.x;\nmov.u32 r3, %nctaid.x;\n"
	"mad.wide.u32 d2, r0, r1, 0;\ncvt.u64.u32 d3, r2;\n"
	"add.u64 d2, d2, d3;\n"      /* the first vector */
	"mul.wide.u32 d4, r1, r3;\n" /* from one to the next */
	"cvta.to.global.u64 d0, d0;\n"
	"shl.b64 d5, d2, 4;\nadd.u64 d5, d0, d5;\n"
	"shl.b64 d6, d4, 4;\nshl.b64 d7, d4, 2;\n"
	"mov.u32 r19, 0;\n"
	"LOOP:\n"
	"setp.ge.u64 p, d2, d1;\n@p bra DONE;\n"
	"add.u64 d8, d5, d6;\nadd.u64 d9, d8, d6;\nadd.u64 d10, d9, d6;\n"
	"ld.global.v4.u32 {r3, r4, r5, r6}, [d5];\n"
	"ld.global.v4.u32 {r7, r8, r9, r10}, [d8];\n"
	"ld.global.v4.u32 {r11, r12, r13, r14}, [d9];\n"
	"ld.global.v4.u32 {r15, r16, r17, r18}, [d10];\n"
	"xor.b32 r3, r3, r4;\nxor.b32 r5, r5, r6;\n"
	"xor.b32 r7, r7, r8;\nxor.b32 r9, r9, r10;\n"
	"xor.b32 r11, r11, r12;\nxor.b32 r13, r13, r14;\n"
	"xor.b32 r15, r15, r16;\nxor.b32 r17, r17, r18;\n"
	"xor.b32 r3, r3, r5;\nxor.b32 r7, r7, r9;\n"
	"xor.b32 r11, r11, r13;\nxor.b32 r15, r15, r17;\n"
	"xor.b32 r3, r3, r7;\nxor.b32 r11, r11, r15;\n"
	"xor.b32 r3, r3, r11;\nxor.b32 r19, r19, r3;\n"
	"add.u64 d5, d10, d6;\nadd.u64 d2, d2, d7;\n"
	"bra LOOP;\n"
	"DONE:\n"
	"setp.ne.u32 p, r19, 0x13579bdf;\n@p bra OUT;\n"
	"st.global.u32 [d0], r19;\n"
	"OUT:\nret;\n}\n";

void
cu_must(int code, const char *what)
{
	if (code == 0)
		return;
	fflush(stdout);
	fprintf(stderr, "bench_cuda: %s gives %d\n", what, code);
	exit(1);
}

void
lib_must(const spmla_ctx *ctx, spmla_status s, const char *what)
{
	char text[256] = "";

	if (s == SPMLA_OK)
		return;
	if (ctx)
		spmla_diag_text(spmla_ctx_diag(ctx), text, sizeof text);
	fflush(stdout);
	fprintf(stderr, "bench_cuda: %s: %s (%s)\n", what, spmla_status_name(s),
		text);
	exit(1);
}

/* 0 if the driver is not there or lacks a function. */
static int
open_driver(bench_cu *cu)
{
	static const struct {
		const char *name;
		size_t offset;
	} symbols[] = {
#define SYMBOL(field, symbol, parameters) {symbol, offsetof(bench_cu, field)},
		BENCH_CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	size_t i;

	for (i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
		void *const found = dlsym(library, symbols[i].name);

		if (!found) {
			fprintf(stderr, "bench_cuda: libcuda.so.1 has no %s\n",
				symbols[i].name);
			return 0;
		}
		memcpy((uint8_t *)cu + symbols[i].offset, &found, sizeof found);
	}
	return library != NULL;
}

/* Without our kernels nothing is flushed: for --tiny, on a substitute. */
static void
load_kernels(gpu *g)
{
	void *module;

	CU(g, module_load, (&module, ptx));
	if (g->cu.module_function(&g->empty, module, "bench_empty") ||
	    g->cu.module_function(&g->read, module, "bench_read")) {
		g->empty = g->read = NULL;
		if (!g->tiny)
			cu_must(-1, "bench_read");
	}
}

int
gpu_open(gpu *g)
{
	void *context;

	if (!open_driver(&g->cu) || g->cu.init(0) ||
	    g->cu.device_get(&g->device, 0))
		return 0;
	CU(g, retain, (&context, g->device));
	CU(g, set_current, (context));
	CU(g, stream_create, (&g->stream, NON_BLOCKING));
	CU(g, event_create, (&g->events[0], 0));
	CU(g, event_create, (&g->events[1], 0));
	CU(g, attribute, (&g->sm_count, SM_COUNT, g->device));
	load_kernels(g);
	return 1;
}

unsigned
gpu_sm_mhz(gpu *g)
{
	static void *library;
	int (*init)(void) = NULL;
	int (*find)(const char *, void **) = NULL;
	int (*clock)(void *, int, unsigned *) = NULL;
	char bus[32];
	void *found, *device = NULL;
	unsigned mhz = 0;

	if (!library)
		library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return 0;
	found = dlsym(library, "nvmlInit_v2");
	memcpy(&init, &found, sizeof found);
	found = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	memcpy(&find, &found, sizeof found);
	found = dlsym(library, "nvmlDeviceGetClockInfo");
	memcpy(&clock, &found, sizeof found);
	if (!init || !find || !clock || init() ||
	    g->cu.pci_bus_id(bus, (int)sizeof bus, g->device) ||
	    find(bus, &device) || clock(device, SM_CLOCK, &mhz))
		return 0;
	return mhz;
}

/* 0 where the driver does not tell. */
static int
attribute(gpu *g, int which)
{
	int value = 0;

	return g->cu.attribute(&value, which, g->device) ? 0 : value;
}

void
gpu_describe(gpu *g)
{
	int version = 0;

	CU(g, device_name, (g->name, (int)sizeof g->name, g->device));
	CU(g, driver_version, (&version));
	printf("%s, sm_%d%d, %d SMs, L2 %.0f MiB, CUDA driver %d.%d, clock "
	       "rate %d MHz\n",
	       g->name, attribute(g, MAJOR), attribute(g, MINOR), g->sm_count,
	       attribute(g, L2_BYTES) / 1048576.0, version / 1000,
	       version % 1000 / 10, attribute(g, CLOCK_KHZ) / 1000);
}
