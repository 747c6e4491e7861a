/* SPDX-License-Identifier: Apache-2.0
 *
 * See lent.h. Threads are made for each call, beside the caller's, and wait for
 * one another before they begin, so that they do meet.
 */
#include "tests/harness/lent.h"

#include "tests/harness/fixture.h"

#include <check.h>
#include <pthread.h>

enum { MAX_THREADS = 32 };

typedef struct team {
	pthread_barrier_t start;
	spmla_parallel_body body;
	void *arg;
	uint32_t bodies;
	uint32_t threads;
	uint32_t indices; /* body i has index i % indices + add */
	uint32_t add;
} team;

typedef struct member {
	pthread_t thread;
	team *t;
	uint32_t number;
} member;

static void *
run_member(void *p)
{
	const member *m = p;
	const team *t = m->t;
	uint32_t i;

	pthread_barrier_wait(&m->t->start);
	for (i = m->number; i < t->bodies; i += t->threads)
		t->body(t->arg, i % t->indices + t->add);
	return NULL;
}

static void
run_team(team *t)
{
	member members[MAX_THREADS];
	uint32_t i;

	ck_assert_uint_le(t->threads, MAX_THREADS);
	ck_assert_int_eq(pthread_barrier_init(&t->start, NULL, t->threads), 0);
	for (i = 0; i < t->threads; i++)
		members[i] = (member){.t = t, .number = i};
	for (i = 1; i < t->threads; i++)
		ck_assert_int_eq(pthread_create(&members[i].thread, NULL,
						run_member, &members[i]),
				 0);
	(void)run_member(&members[0]);
	for (i = 1; i < t->threads; i++)
		ck_assert_int_eq(pthread_join(members[i].thread, NULL), 0);
	pthread_barrier_destroy(&t->start);
}

static void
run_alone(lent *l, uint32_t count, spmla_parallel_body body, void *arg)
{
	uint32_t order[MAX_THREADS], i;

	ck_assert_uint_le(count, MAX_THREADS);
	for (i = 0; i < count; i++)
		order[i] = count - 1 - i;
	for (i = count - 1; l->way == LENT_SHUFFLED && i > 0; i--) {
		const uint32_t j = rng_below(&l->rng, i + 1);
		const uint32_t kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
	for (i = 0; i < (l->way == LENT_LAST ? 1 : count); i++)
		body(arg, order[i]);
}

void
lent_for(void *user, uint32_t count, spmla_parallel_body body, void *arg)
{
	lent *l = user;
	team t = {.body = body,
		  .arg = arg,
		  .bodies = count,
		  .threads = count,
		  .indices = count};

	l->calls++;
	l->most = count > l->most ? count : l->most;
	switch (l->way) {
	case LENT_NONE:
		return;
	case LENT_REVERSED:
	case LENT_SHUFFLED:
	case LENT_LAST:
		run_alone(l, count, body, arg);
		return;
	case LENT_TWO:
		t.threads = count < 2 ? count : 2;
		break;
	case LENT_TWICE:
		t.threads = t.bodies = 2 * count;
		break;
	case LENT_PAST:
		t.add = count;
		break;
	default:
		break;
	}
	run_team(&t);
}
