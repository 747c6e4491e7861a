/* SPDX-License-Identifier: Apache-2.0
 *
 * The planning of prompts: any plan and step into chunks, and lists of lengths
 * (prefill_lists.h). The hard idea: there is no other planner to compare
 * with. Each chunk is run on paper, as a step that
 * spmla_step_encode takes, and in the end every request has to be where the
 * step wants it.
 */
#include "tests/fuzz/prefill_lists.h"

enum { MOST_REQUESTS = 40, MOST_CHUNKS = 1 << 12 };

typedef struct draft {
	spmla_step step;
	spmla_request *requests; /* exactly as many as the step says */
	uint64_t tokens;
} draft;

/* A plan of prompts; 0 if there is none of that kind. */
static uint32_t
read_plan(input *in, spmla_plan *plan)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	const uint32_t kind = in_u8(in);
	spmla_config c;

	world_config(&c);
	c.max_prefill_tokens = kind & 0x80 ? in_edge(in) : 1 + in_below(in, 20);
	c.prefill_workspace_tokens =
		kind & 0x40 ? in_edge(in) : in_below(in, 60);
	if (kind & 0x20)
		c.max_context_tokens = in_edge(in) & 0x1fff;
	if (kind & 0x10)
		c.max_rows = in_edge(in) & 0x1ffff;
	if (kind & 8)
		c.buckets[2].requests = in_edge(in);
	if (kind & 4)
		c.max_prefill_tokens = 0;
	REQUIRE(spmla_backend_query(&spmla_cpu, NULL, &device, NULL) ==
		SPMLA_OK);
	return spmla_plan_make(plan, &c, &device, NULL) == SPMLA_OK;
}

/* Rows are mostly in order, and lengths such that a plan takes them. */
static void
read_step(input *in, const spmla_plan *plan, draft *d)
{
	const spmla_step step = SPMLA_STEP_INIT;
	const uint32_t kind = in_u8(in);
	uint32_t i;

	d->step = step;
	d->step.request_count = in_below(in, kind & 0x10 ? MOST_REQUESTS : 6);
	if (kind & 0x80)
		d->step.struct_bytes = in_edge(in);
	if (kind & 0x40)
		d->step.flags = in_edge(in);
	if (kind & 0x20)
		d->step.store_count = in_edge(in); /* not looked at */
	d->tokens = 0;
	d->requests = fresh(d->step.request_count * sizeof *d->requests);
	for (i = 0; i < d->step.request_count; i++) {
		spmla_request *r = &d->requests[i];
		const uint32_t odd = in_u8(in);

		r->row = (odd & 0xf0) == 0xf0 ? in_edge(in) : i;
		r->seq_len_tokens =
			odd & 8 ? in_edge(in)
				: in_u8(in) %
					  (plan->config.max_context_tokens + 1);
		r->query_tokens = odd & 4   ? in_edge(in)
				  : odd & 2 ? r->seq_len_tokens
					    : r->seq_len_tokens / 2;
		r->flags = (odd & 0x70) == 0x70 ? in_edge(in) : odd & 1;
		d->tokens += r->query_tokens;
	}
	d->step.requests = d->requests;
	if ((kind & 15) == 15)
		d->step.requests = NULL;
}

/* What the header says of a step that is refused, told anew. */
static uint32_t
is_legal(const spmla_plan *plan, const draft *d)
{
	const spmla_config *c = &plan->config;
	uint32_t i, k;

	if (d->step.struct_bytes != sizeof d->step || d->step.flags != 0 ||
	    (d->step.request_count > 0 && !d->step.requests) ||
	    c->max_prefill_tokens == 0 || d->tokens > UINT32_MAX)
		return 0;
	for (i = 0; i < d->step.request_count; i++) {
		const spmla_request *r = &d->requests[i];

		if (r->row >= c->max_rows || r->flags > SPMLA_REQUEST_JOIN ||
		    r->seq_len_tokens > c->max_context_tokens ||
		    r->query_tokens > r->seq_len_tokens)
			return 0;
		if (r->query_tokens > 0 &&
		    r->seq_len_tokens > c->prefill_workspace_tokens)
			return 0;
		for (k = 0; k < i; k++)
			if (d->requests[k].row == r->row)
				return 0;
	}
	return 1;
}

/* ---- A chunk ----------------------------------------------------------- */

/* Where each request is. */
typedef struct progress {
	uint32_t len[MOST_REQUESTS];
} progress;

/* Runs one request's part. */
static void
advance(const draft *d, progress *p, const spmla_request *part, uint32_t i)
{
	const spmla_request *whole = &d->requests[i];
	const uint32_t first = whole->seq_len_tokens - whole->query_tokens;

	REQUIRE(part->row == whole->row && part->query_tokens > 0);
	REQUIRE(part->seq_len_tokens == p->len[i] + part->query_tokens);
	REQUIRE(part->seq_len_tokens <= whole->seq_len_tokens);
	REQUIRE(part->flags == (p->len[i] == first ? whole->flags : 0));
	p->len[i] = part->seq_len_tokens;
}

/* The chunk as a step of its own is one that the plan takes. */
static void
check_encode(const spmla_plan *plan, const spmla_prefill_chunk *c,
	     const spmla_request *parts)
{
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	spmla_step step = SPMLA_STEP_INIT;
	void *record = malloc(plan->record_bytes);

	REQUIRE(record);
	step.requests = parts;
	step.request_count = c->request_count;
	REQUIRE(spmla_step_encode(plan, &step, record, plan->record_bytes,
				  &info, NULL) == SPMLA_OK);
	REQUIRE(info.tokens == c->queries.end - c->queries.first);
	REQUIRE(info.live_context == c->live_context);
	free(record);
}

static void
run_chunk(const spmla_plan *plan, const draft *d, progress *p,
	  const spmla_prefill_chunk *c)
{
	spmla_request *parts = fresh(c->request_count * sizeof *parts);
	uint32_t i, n = 0;

	REQUIRE(c->requests.first < c->requests.end);
	REQUIRE(c->requests.end <= d->step.request_count);
	REQUIRE(spmla_prefill_chunk_requests(&d->step, c, parts,
					     c->request_count - 1,
					     NULL) == SPMLA_E_SPACE);
	REQUIRE(is_fresh(parts, 0, c->request_count * sizeof *parts));
	REQUIRE(spmla_prefill_chunk_requests(&d->step, c, parts,
					     c->request_count,
					     NULL) == SPMLA_OK);
	for (i = c->requests.first; i < c->requests.end; i++)
		if (n < c->request_count && parts[n].row == d->requests[i].row)
			advance(d, p, &parts[n++], i);
	REQUIRE(n == c->request_count);
	check_encode(plan, c, parts);
	free(parts);
}

/* A chunk is closed early only where the next request finds no room. */
static void
check_full(const spmla_plan *plan, const draft *d, const progress *p,
	   const spmla_prefill_chunk *c, const spmla_prefill_chunk *next)
{
	const spmla_config *config = &plan->config;
	const uint32_t used = c->queries.end - c->queries.first;
	const uint32_t left = config->max_prefill_tokens - used;
	const uint32_t i = next->requests.first;
	uint32_t rest, context, most = 0, b;

	REQUIRE(used <= config->max_prefill_tokens);
	REQUIRE(c->live_context <= config->prefill_workspace_tokens);
	for (b = 0; b < config->bucket_count; b++)
		if (config->buckets[b].requests > most)
			most = config->buckets[b].requests;
	REQUIRE(c->request_count <= most);
	if (left == 0 || next == c)
		return;
	rest = d->requests[i].seq_len_tokens - p->len[i];
	context = p->len[i] + (rest < left ? rest : left);
	REQUIRE(i >= c->requests.end);
	REQUIRE(c->request_count == most ||
		context > config->prefill_workspace_tokens - c->live_context);
}

static void
check_chunks(const spmla_plan *plan, const draft *d,
	     const spmla_prefill_chunk *chunks, uint32_t count)
{
	uint32_t token = 0, i;
	progress p;

	for (i = 0; i < d->step.request_count; i++)
		p.len[i] = d->requests[i].seq_len_tokens -
			   d->requests[i].query_tokens;
	for (i = 0; i < count; i++) {
		REQUIRE(chunks[i].queries.first == token);
		run_chunk(plan, d, &p, &chunks[i]);
		check_full(plan, d, &p, &chunks[i],
			   &chunks[i + 1 < count ? i + 1 : i]);
		token = chunks[i].queries.end;
	}
	REQUIRE(token == d->tokens);
	for (i = 0; i < d->step.request_count; i++)
		REQUIRE(p.len[i] == d->requests[i].seq_len_tokens);
}

/* A chunk that someone changed: refused, or what the step has there. */
static void
wild_chunk(input *in, const draft *d, const spmla_prefill_chunk *chunk)
{
	enum { WORDS = sizeof *chunk / sizeof(uint32_t) };
	spmla_request *parts = fresh(d->step.request_count * sizeof *parts);
	spmla_prefill_chunk c = *chunk;
	uint32_t words[WORDS];
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_status s;

	memcpy(words, &c, sizeof c);
	words[in_below(in, WORDS)] = in_edge(in);
	memcpy(&c, words, sizeof c);
	s = spmla_prefill_chunk_requests(&d->step, &c, parts,
					 d->step.request_count, &diag);
	if (s == SPMLA_OK) {
		REQUIRE(c.request_count > 0);
		REQUIRE(c.queries.first < c.queries.end);
		REQUIRE(c.queries.end <= d->tokens);
	} else {
		check_refusal(s, &diag);
		REQUIRE(is_fresh(parts, 0,
				 d->step.request_count * sizeof *parts));
	}
	free(parts);
}

/* ---- A plan's chunks --------------------------------------------------- */

/* Into `room` chunks; returns how many the step needs, 0 if it is refused. */
static uint32_t
plan_into(input *in, const spmla_plan *plan, const draft *d, uint32_t room)
{
	spmla_prefill_chunk *chunks = fresh(room * sizeof *chunks);
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t count = 77, needed = 0;
	const spmla_status s =
		spmla_prefill_plan(plan, &d->step, chunks, room, &count, &diag);

	REQUIRE((s == SPMLA_OK || s == SPMLA_E_SPACE) == is_legal(plan, d));
	if (s == SPMLA_OK) {
		REQUIRE(count <= room);
		REQUIRE(is_fresh(chunks, count * sizeof *chunks,
				 room * sizeof *chunks));
		check_chunks(plan, d, chunks, count);
		if (count > 0)
			wild_chunk(in, d, &chunks[in_below(in, count)]);
		needed = count;
	} else {
		check_refusal(s, &diag);
		REQUIRE(count == 77);
		REQUIRE(is_fresh(chunks, 0, room * sizeof *chunks));
		if (s == SPMLA_E_SPACE) {
			REQUIRE(diag.got == room && diag.want > room);
			needed = (uint32_t)diag.want;
		}
	}
	free(chunks);
	return needed;
}

static void
fuzz_step(input *in)
{
	static spmla_plan plan;
	uint32_t needed;
	draft d;

	if (!read_plan(in, &plan))
		return;
	read_step(in, &plan, &d);
	needed = plan_into(in, &plan, &d, in_u8(in) & 31);
	if (needed > 0 && needed <= MOST_CHUNKS) {
		REQUIRE(plan_into(in, &plan, &d, needed) == needed);
		REQUIRE(plan_into(in, &plan, &d, needed - 1) == needed);
	}
	free(d.requests);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const todo[])(input *) = {
		fuzz_step,  fuzz_step,   fuzz_step,   fuzz_batch,
		fuzz_ranks, fuzz_shared, fuzz_pieces, fuzz_threshold};
	input in = {data, data + size};

	todo[in_below(&in, sizeof todo / sizeof *todo)](&in);
	return 0;
}
