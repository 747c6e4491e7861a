/* SPDX-License-Identifier: Apache-2.0
 *
 * A context for tests. It is planned, gets exactly the planned memory, and this
 * is filled with 0xAB first, so that nothing may rely on zeros.
 */
#ifndef TESTS_HARNESS_FIXTURE_H
#define TESTS_HARNESS_FIXTURE_H

#include "spmla/spmla.h"
#include "spmla/spmla_cpu.h"

#include "tests/harness/lent.h"
#include "tests/harness/rng.h"

typedef struct fixture {
	const spmla_backend *backend;
	spmla_config config;
	spmla_device device;
	spmla_plan plan;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	uint32_t region_count;
	void *memory[SPMLA_MEMORY_COUNT];
	uint32_t in_room; /* DEVICE and CACHE are, see fixture_room */
	uint32_t guarded; /* regions have holes; cuda_guard.c */
	spmla_ctx *ctx;
} fixture;

/* A small V3.2: 4 heads, 4 index heads, top-k 8, 8 rows, 512 tokens of
 * context, pages of 16, 64 pages, buckets {4,4,1} {8,4,2} {16,8,4}. */
void fixture_config(spmla_config *config);

/* Contexts opened from now on have that many workers, unless the config names a
 * number, and this loop (NULL: none). 0 and NULL restore the default:
 * SPMLA_TEST_WORKERS threads if that is set, else none. */
void fixture_lend(uint32_t workers, lent *loop);

/* Contexts opened from now on have DEVICE and CACHE in the device's own memory
 * (cuda_room.c), which only kernels can read. 0: no more. */
void fixture_room(uint32_t on);

/* Contexts opened from now on in the emulator are planned for that many SMs; 0:
 * for the emulator's own number. */
void fixture_multiprocessors(uint32_t count);

/* Plans and inits, on the CPU backend, or on the emulator if
 * SPMLA_TEST_EMULATOR is set (emulator.h), or on a CUDA or HIP device in a
 * program that can (cuda_world.h); fails the test on any error. native_flags as
 * spmla_native.flags. */
void fixture_open(fixture *f, const spmla_config *config,
		  uint32_t native_flags);

/* The same, on the CPU with scalar loops and one thread, whatever is asked for:
 * what the other platforms answer to. */
void fixture_open_plain(fixture *f, const spmla_config *config);
void fixture_close(fixture *f);

/* Whether contexts are opened on the CPU, or on a CUDA or HIP device. */
uint32_t fixture_on_cpu(void);
uint32_t fixture_on_gpu(void);

/* Whether the device is fast: one with fewer than 40 multiprocessors stands in
 * for one, and takes minutes for the shapes of models. */
static inline uint32_t
fixture_on_real_gpu(const fixture *f)
{
	return fixture_on_gpu() && f->plan.device.sm_count >= 40;
}

/* Whether mqa_logits_gathered multiplies e4m3, of up to 64 heads to f32, by
 * Hopper's matrix instructions, which cut what they add. */
uint32_t fixture_cuts(const fixture *f);

/* Whether attention multiplies tiles (tile.h), with weights that are rounded to
 * bf16 relative to a power of two: SPMLA_TEST_UNPROVEN is set, on a GPU that
 * has the kernels. */
uint32_t fixture_tiles(const fixture *f);

/* Whether kernels are the debug build (debug.h). */
uint32_t fixture_kernel_debug(void);

/* Kernels that run from now on pause by this seed, until a prologue runs, and
 * block 0 of each loses its `lost`-th arrival at an mbarrier; 0: none. Both are
 * for the debug build. In the emulator the seed is the schedule's, too. */
void fixture_disturb(fixture *f, uint32_t seed, uint32_t lost);

/* The repetitions of a test that is slow on fibers: `most`, or `few` on the
 * emulator; or SPMLA_TEST_STEPS, if that is fewer. */
uint32_t fixture_rounds(uint32_t most, uint32_t few);

/* Runs `count` entries of the deferred queue; returns how many it ran. */
uint32_t fixture_run(fixture *f, uint32_t count);

uint32_t fixture_pending(const fixture *f);

/* Runs everything that is queued; a no-op without the deferred queue. */
void fixture_drain(fixture *f);

/* The sticky status. */
spmla_device_status fixture_status(const fixture *f);

/* Text of a diag, and of the context's last one. Static buffer. */
const char *test_diag_text(const spmla_diag *diag);
const char *fixture_diag(const fixture *f);

/* SPMLA_TEST_SEED, or a fixed number. It is printed once, so that a failure can
 * be run again. */
uint64_t test_seed(void);

/* f32 to bf16 bits by value (round to nearest even), and back. */
uint16_t test_bf16(float x);
float test_bf16_value(uint16_t h);

/* Memory aligned to 256 bytes (under guard, cuda_guard.c, to the 16 that caches
 * need), filled with `byte`. Fails the test if there is none. */
void *test_alloc(uint64_t bytes, uint8_t byte);

/* Moves the pages of a cache together, so that no bytes are between them. */
void test_close_gaps(spmla_cache *cache);

/* Zeroed address space, for munmap(); only touched pages take memory. Fails the
 * test if there is not enough: data far apart was then not tested. */
void *test_map(uint64_t bytes);

#endif
