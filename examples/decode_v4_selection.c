/* SPDX-License-Identifier: Apache-2.0
 *
 * The top-k of a layer of ratio 4 against scores in double. Where an f32 sum
 * cannot tell which of two keys is better, the library may take either. But
 * columns of a table may name one page, and keys of one slot have the same
 * score: of those the ones with the lower numbers must be taken.
 */
#include <math.h>
#include <string.h>

#include "examples/decode_v4.h"

struct v4_selection {
	const v4_model *model;
	v4_keys *keys;
	ref_work work;
	uint64_t slots;
	ref_index_key *decoded; /* [slots] of the index cache */
	uint64_t *decoded_in;   /* [slots] the check that it is of */
	uint64_t *left_out_in;  /* [slots] the check that left a key out */
	uint64_t check;
	uint16_t *q;    /* [index_heads][128] */
	float *weights; /* [index_heads] */
};

v4_selection *
v4_selection_open(const v4_model *m, v4_keys *keys)
{
	const spmla_config *c = &m->plan->config;
	const spmla_table_config *g = &c->groups[SPMLA_GROUP_INDEX];
	const uint32_t most = c->max_context_tokens / 4 + 1;
	v4_selection *s = keep(sizeof *s);

	s->model = m;
	s->keys = keys;
	s->slots = (uint64_t)g->pool_pages * (g->page_tokens / 4);
	s->decoded = keep(s->slots * sizeof *s->decoded);
	s->decoded_in = keep(s->slots * sizeof *s->decoded_in);
	s->left_out_in = keep(s->slots * sizeof *s->left_out_in);
	s->q = keep((uint64_t)c->index_heads * REF_INDEX_DIM * sizeof *s->q);
	s->weights = keep(c->index_heads * sizeof *s->weights);
	return ref_work_open(&s->work, most > c->topk ? most : c->topk,
			     c->index_heads)
		       ? s
		       : NULL;
}

void
v4_selection_close(v4_selection *s)
{
	ref_work_close(&s->work);
}

/* The numbers of a key, once a check. */
static int
decode(v4_selection *s, const v4_place *p, uint32_t key, ref_miss *miss)
{
	const int64_t slot = v4_keys_slot(s->keys, p, V4_KEY_INDEX, key);
	const uint8_t *codes, *scales;
	float scale;

	if (slot >= 0 && s->decoded_in[slot] == s->check) {
		s->work.index_keys[key] = &s->decoded[slot];
		return 1;
	}
	codes = v4_keys_stored(s->keys, p, V4_KEY_INDEX, key, &scales, miss);
	if (!codes)
		return 0;
	if (s->model->plan->config.index_layout == SPMLA_LAYOUT_INDEX_MXFP4) {
		ref_v4_read_mxfp4(&s->decoded[slot], codes, scales);
	} else {
		memcpy(&scale, scales, sizeof scale);
		ref_v4_read_index(&s->decoded[slot], codes, (double)scale);
	}
	s->decoded_in[slot] = s->check;
	s->work.index_keys[key] = &s->decoded[slot];
	return 1;
}

static void
make_query(v4_selection *s, const v4_place *p)
{
	const v4_model *m = s->model;
	const spmla_config *c = &m->plan->config;
	const ref_index_q_rule rule = {
		c->index_heads,
		m->layer[p->layer].cos_sin + (uint64_t)p->of.position * 64,
		REF_ROPE_INTERLEAVED,
		REF_Q_FLOOR_FUSED,
		(float)(1 / sqrt(REF_INDEX_DIM)),
		(float)(1 / sqrt(c->index_heads)),
	};

	values_bf16(v4_stream(m, p->layer, V4_INDEX_Q, p->of),
		    v4_width(m, p->layer, V4_INDEX_Q), s->q);
	values_f32(v4_stream(m, p->layer, V4_INDEX_WEIGHTS, p->of),
		   c->index_heads, s->weights);
	ref_v4_index_q(s->q, REF_INDEX_DIM, s->weights, &rule,
		       c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4,
		       s->work.q_values, s->work.q_weights);
}

/* Among keys of one slot, no key is left out before one that is taken. */
static int
check_equal_keys(v4_selection *s, const int32_t *taken, uint32_t k, uint32_t n,
		 ref_miss *miss)
{
	uint32_t i, at = 0;

	for (i = 0; i < n; i++) {
		const uint64_t slot =
			(uint64_t)(s->work.index_keys[i] - s->decoded);

		if (at == k || (uint32_t)taken[at] != i) {
			s->left_out_in[slot] = s->check;
			continue;
		}
		at++;
		if (s->left_out_in[slot] == s->check) {
			*miss = (ref_miss){"took the later of two equal keys",
					   i, s->work.scores[i],
					   s->work.scores[i]};
			return 0;
		}
	}
	return 1;
}

int
v4_selection_check(v4_selection *s, const v4_place *p, ref_miss *miss)
{
	const spmla_config *c = &s->model->plan->config;
	const v4_outputs *o = &s->model->sides[0].layer[p->layer];
	const int32_t *taken = o->topk_indices + (uint64_t)p->index * c->topk;
	const uint32_t n = (p->of.position + 1) / 4;
	const uint32_t set = n < c->topk ? n : c->topk;
	ref_work *w = &s->work;
	uint32_t i;

	s->check++;
	make_query(s, p);
	for (i = 0; i < n; i++)
		if (!decode(s, p, i, miss))
			return 0;
	if (o->topk_lens[p->index] != (int32_t)set) {
		*miss = (ref_miss){"TOPK_LENS", 0, o->topk_lens[p->index], set};
		return 0;
	}
	ref_logits(w->q_values, w->q_weights, c->index_heads, w->index_keys, n,
		   REF_SUMS_F32, w->scores, w->tolerance);
	return ref_check_selection(w, taken, c->topk, w->scores, n,
				   w->tolerance, NULL, miss) &&
	       (n <= c->topk || check_equal_keys(s, taken, c->topk, n, miss));
}
