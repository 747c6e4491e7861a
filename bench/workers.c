/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads to lend to the CPU backend: they are made once and wait for the next
 * loop, as an engine's threads do.
 */
#include "bench/bench.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct pool {
	pthread_mutex_t lock;
	pthread_cond_t start;
	pthread_cond_t end;
	uint64_t loop;    /* counts them */
	uint32_t indices; /* of this loop that nobody has taken */
	uint32_t open;    /* bodies that have not returned */
	spmla_parallel_body body;
	void *arg;
} pool;

static pool p = {.lock = PTHREAD_MUTEX_INITIALIZER,
		 .start = PTHREAD_COND_INITIALIZER,
		 .end = PTHREAD_COND_INITIALIZER};

/* Runs bodies until all are taken; the lock is held outside of them. */
static void
take(void)
{
	while (p.indices > 0) {
		const uint32_t index = --p.indices;

		pthread_mutex_unlock(&p.lock);
		p.body(p.arg, index);
		pthread_mutex_lock(&p.lock);
		if (--p.open == 0)
			pthread_cond_signal(&p.end);
	}
}

static void *
serve(void *unused)
{
	uint64_t seen = 0;

	(void)unused;
	pthread_mutex_lock(&p.lock);
	for (;;) {
		while (p.loop == seen)
			pthread_cond_wait(&p.start, &p.lock);
		seen = p.loop;
		take();
	}
	return NULL;
}

void
bench_for(void *user, uint32_t count, spmla_parallel_body body, void *arg)
{
	(void)user;
	pthread_mutex_lock(&p.lock);
	p.body = body;
	p.arg = arg;
	p.indices = p.open = count;
	p.loop++;
	pthread_cond_broadcast(&p.start);
	take();
	while (p.open > 0)
		pthread_cond_wait(&p.end, &p.lock);
	pthread_mutex_unlock(&p.lock);
}

void
bench_start_workers(uint32_t workers)
{
	pthread_t thread;
	uint32_t i;

	for (i = 1; i < workers; i++) {
		if (pthread_create(&thread, NULL, serve, NULL))
			abort();
		pthread_detach(thread);
	}
}
