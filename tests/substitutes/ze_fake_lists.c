/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's commands, lists, queue and fences; see ze_fake.h. A list
 * that was submitted waits here until somebody wants to know its end.
 */
#include "tests/substitutes/ze_fake_state.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RUNNING = 256 };

/* Lists that were submitted to the queue and did not run, in order. */
static struct {
	handle *list, *fence;
} running[MOST_RUNNING];
static uint32_t running_count;

static uint64_t seed;

static uint32_t
draw(uint32_t bound)
{
	seed = seed * UINT64_C(6364136223846793005) +
	       UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % bound);
}

/* ---- Commands ----------------------------------------------------------- */

static void
run_one(const command *c)
{
	switch (c->order) {
	case LAUNCH:
		fake_ze.run(&c->kernel, c->groups, &c->args);
		fake_ze.ran++;
		break;
	case FILL:
		memset(c->to, c->byte, c->bytes);
		break;
	case COPY:
		memmove(c->to, c->from, c->bytes);
		break;
	default:
		break;
	}
}

/* Runs commands that no barrier separates, in a drawn order. */
static void
run_unordered(const command **commands, uint32_t count)
{
	uint32_t i;

	fake_ze.shuffled += count > 1;
	for (; count; count--) {
		i = draw(count);
		run_one(commands[i]);
		commands[i] = commands[count - 1];
	}
}

static command *
append(spmla_ze_list list, order order_of, const char *function)
{
	handle *h = ze_fake_known(list, LIST, function);

	ze_fake_must(!h->closed && !h->running, function, "a closed list");
	if (h->count == h->room) {
		h->room = h->room ? 2 * h->room : 16;
		h->commands =
			realloc(h->commands, h->room * sizeof *h->commands);
		ze_fake_must(h->commands != NULL, function, "memory");
	}
	memset(&h->commands[h->count], 0, sizeof *h->commands);
	h->commands[h->count].order = order_of;
	return &h->commands[h->count++];
}

/* Runs the commands of an immediate list once a barrier ends them; of a
 * synchronous list always. */
static void
flush(spmla_ze_list list)
{
	handle *h = KNOWN(list, LIST);
	const command **unordered;
	uint32_t i, count = 0;

	if (!h->immediate || !h->count ||
	    (!h->synchronous && h->commands[h->count - 1].order != BARRIER))
		return;
	unordered = malloc(h->count * sizeof *unordered);
	ze_fake_must(unordered != NULL, __func__, "memory");
	for (i = 0; i < h->count; i++)
		if (h->commands[i].order != BARRIER)
			unordered[count++] = &h->commands[i];
	run_unordered(unordered, count);
	free(unordered);
	h->count = 0;
}

static void
no_events(const void *signal, uint32_t count, const char *function)
{
	ze_fake_must(!signal && !count, function, "there are no events");
}

int
ze_fake_f_append_barrier(spmla_ze_list list, spmla_ze_event signal,
			 uint32_t count, spmla_ze_event *wait)
{
	const int r = ze_fake_enter(ZE_FAKE_append_barrier);

	(void)wait;
	no_events(signal, count, __func__);
	append(list, BARRIER, __func__);
	flush(list);
	return r;
}

int
ze_fake_f_append_kernel(spmla_ze_list list, spmla_ze_kernel kernel,
			const spmla_ze_group_count *groups,
			spmla_ze_event signal, uint32_t count,
			spmla_ze_event *wait)
{
	const int r = ze_fake_enter(ZE_FAKE_append_kernel);
	const handle *h = KNOWN(kernel, KERNEL);
	command *c;

	(void)wait;
	no_events(signal, count, __func__);
	ze_fake_must(h->grouped &&
			     h->set == (UINT64_C(1) << h->kernel.args) - 1,
		     __func__, "arguments");
	ze_fake_must(h->indirect || !h->kernel.indirect, __func__,
		     "a kernel reads where it was not said to");
	ze_fake_must(groups->x && groups->y == 1 && groups->z == 1, __func__,
		     "groups");
	if (r)
		return r;
	c = append(list, LAUNCH, __func__);
	c->kernel = h->kernel;
	c->groups = groups->x;
	c->args = h->args;
	flush(list);
	return 0;
}

int
ze_fake_f_append_fill(spmla_ze_list list, void *to, const void *pattern,
		      size_t pattern_bytes, size_t bytes, spmla_ze_event signal,
		      uint32_t count, spmla_ze_event *wait)
{
	const int r = ze_fake_enter(ZE_FAKE_append_fill);
	command *c;

	(void)wait;
	no_events(signal, count, __func__);
	ze_fake_must(pattern_bytes == 1, __func__, "pattern");
	if (r)
		return r;
	c = append(list, FILL, __func__);
	c->to = to;
	c->bytes = bytes;
	memcpy(&c->byte, pattern, 1);
	flush(list);
	return 0;
}

int
ze_fake_f_append_copy(spmla_ze_list list, void *to, const void *from,
		      size_t bytes, spmla_ze_event signal, uint32_t count,
		      spmla_ze_event *wait)
{
	const int r = ze_fake_enter(ZE_FAKE_append_copy);
	command *c;

	(void)wait;
	no_events(signal, count, __func__);
	if (r)
		return r;
	c = append(list, COPY, __func__);
	c->to = to;
	c->from = from;
	c->bytes = bytes;
	flush(list);
	return 0;
}

/* ---- Lists, queues and fences ------------------------------------------- */

int
ze_fake_f_list_create(spmla_ze_context in, spmla_ze_device on,
		      const spmla_ze_list_desc *desc, spmla_ze_list *list)
{
	const int r = ze_fake_enter(ZE_FAKE_list_create);
	handle *h;

	KNOWN(in, CONTEXT);
	ze_fake_of_device(on, __func__);
	ze_fake_must(desc->stype == SPMLA_ZE_LIST_DESC, __func__, "stype");
	if (r)
		return r;
	h = ze_fake_make(LIST);
	h->ordinal = desc->ordinal;
	*list = (void *)h;
	return 0;
}

int
ze_fake_f_list_immediate(spmla_ze_context in, spmla_ze_device on,
			 const spmla_ze_queue_desc *desc, spmla_ze_list *list)
{
	const int r = ze_fake_enter(ZE_FAKE_list_immediate);
	handle *h;

	KNOWN(in, CONTEXT);
	ze_fake_of_device(on, __func__);
	ze_fake_must(desc->stype == SPMLA_ZE_QUEUE_DESC &&
			     desc->ordinal == ORDINAL,
		     __func__, "desc");
	if (r)
		return r;
	h = ze_fake_make(LIST);
	h->immediate = 1;
	h->synchronous = desc->mode == SPMLA_ZE_QUEUE_SYNCHRONOUS;
	*list = (void *)h;
	return 0;
}

int
ze_fake_f_list_close(spmla_ze_list list)
{
	const int r = ze_fake_enter(ZE_FAKE_list_close);
	handle *h = KNOWN(list, LIST);

	ze_fake_must(!h->immediate, __func__, "an immediate list");
	ze_fake_must(!h->closed, __func__, "twice");
	if (r == 0)
		h->closed = 1;
	return r;
}

int
ze_fake_f_list_destroy(spmla_ze_list list)
{
	ze_fake_end(list, LIST, __func__);
	return ze_fake_enter(ZE_FAKE_list_destroy);
}

/* Runs the first `count` lists that were submitted: their commands are one
 * stream, which only its barriers divide. */
static void
run_lists(uint32_t count)
{
	const command **unordered;
	uint32_t i, k, all = 0, n = 0;

	for (i = 0; i < count; i++)
		all += running[i].list->count;
	unordered = calloc(all + 1, sizeof *unordered);
	ze_fake_must(unordered != NULL, __func__, "memory");
	for (i = 0; i < count; i++)
		for (k = 0; k < running[i].list->count; k++) {
			const command *c = &running[i].list->commands[k];

			if (c->order != BARRIER) {
				unordered[n++] = c;
				continue;
			}
			run_unordered(unordered, n);
			n = 0;
		}
	run_unordered(unordered, n);
	free(unordered);
	for (i = 0; i < count; i++) {
		handle *list = running[i].list;

		list->running = 0;
		if (++list->runs > fake_ze.most_runs)
			fake_ze.most_runs = list->runs;
		if (running[i].fence) {
			running[i].fence->running = 0;
			running[i].fence->signalled = 1;
		}
	}
	running_count -= count;
	memmove(running, running + count, running_count * sizeof *running);
}

int
ze_fake_f_queue_execute(spmla_ze_queue on, uint32_t count, spmla_ze_list *which,
			spmla_ze_fence fence)
{
	const int r = ze_fake_enter(ZE_FAKE_queue_execute);
	handle *f = fence ? KNOWN(fence, FENCE) : NULL;
	uint32_t i;

	KNOWN(on, QUEUE);
	ze_fake_must(!f || (!f->running && !f->signalled), __func__,
		     "a fence that was not reset");
	for (i = 0; r == 0 && i < count; i++) {
		handle *h = KNOWN(which[i], LIST);

		ze_fake_must(h->closed, __func__, "an open list");
		ze_fake_must(!h->running, __func__,
			     "a list is submitted while it runs");
		ze_fake_must(h->ordinal == ORDINAL, __func__,
			     "another queue group's");
		ze_fake_must(running_count < MOST_RUNNING, __func__, "room");
		h->running = 1;
		running[running_count].list = h;
		running[running_count++].fence = i + 1 == count ? f : NULL;
	}
	if (f && r == 0) {
		f->running = 1;
		f->asked = 0;
	}
	return r;
}

int
ze_fake_f_fence_create(spmla_ze_queue of, const spmla_ze_fence_desc *desc,
		       spmla_ze_fence *fence)
{
	const int r = ze_fake_enter(ZE_FAKE_fence_create);

	KNOWN(of, QUEUE);
	ze_fake_must(desc->stype == SPMLA_ZE_FENCE_DESC && !desc->flags,
		     __func__, "desc");
	if (r == 0)
		*fence = (void *)ze_fake_make(FENCE);
	return r;
}

int
ze_fake_f_fence_destroy(spmla_ze_fence fence)
{
	ze_fake_end(fence, FENCE, __func__);
	return ze_fake_enter(ZE_FAKE_fence_destroy);
}

/* After enough queries the list ends. */
int
ze_fake_f_fence_query(spmla_ze_fence fence)
{
	const int r = ze_fake_enter(ZE_FAKE_fence_query);
	handle *f = KNOWN(fence, FENCE);
	uint32_t i = 0;

	if (r)
		return r;
	if (f->running && ++f->asked >= fake_ze.patience) {
		while (running[i].fence != f)
			i++;
		run_lists(i + 1);
	}
	return f->signalled ? 0 : SPMLA_ZE_NOT_READY;
}

int
ze_fake_f_fence_reset(spmla_ze_fence fence)
{
	const int r = ze_fake_enter(ZE_FAKE_fence_reset);
	handle *f = KNOWN(fence, FENCE);

	ze_fake_must(!f->running, __func__, "it still runs");
	if (r == 0)
		f->signalled = 0;
	return r;
}

int
ze_fake_f_queue_sync(spmla_ze_queue which, uint64_t timeout)
{
	KNOWN(which, QUEUE);
	ze_fake_must(timeout == UINT64_MAX, __func__, "timeout");
	run_lists(running_count);
	return ze_fake_enter(ZE_FAKE_queue_sync);
}

/* ---- The caller --------------------------------------------------------- */

void
ze_fake_reset_lists(uint64_t of)
{
	running_count = 0;
	seed = of;
}

uint32_t
ze_fake_running(void)
{
	return running_count;
}

void
ze_fake_wait(void)
{
	run_lists(running_count);
}

void
ze_fake_wait_first(void)
{
	run_lists(1);
}
