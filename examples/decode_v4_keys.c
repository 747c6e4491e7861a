/* SPDX-License-Identifier: Apache-2.0
 *
 * The expected contents of V4's caches. The reference follows the tables by the
 * records alone. For each key that a token may see it makes the key again from
 * the model's values and looks for it where its own table says. So a key that
 * is stale, misplaced, of a rejected draft or of another request shows. It
 * remembers the bytes that passed by a hash, so a key is made only once while
 * nobody writes it.
 */
#include <stdlib.h>
#include <string.h>

#include "examples/decode_v4.h"
#include "examples/device.h"

/* The key whose bytes a slot had when it was last checked. */
typedef struct key_seen {
	uint32_t request; /* plus 1; 0: nothing */
	uint32_t key;
	uint32_t drafts; /* its rows that belong to drafts */
	uint32_t reserved;
	uint64_t hash;
} key_seen;

/* The cache of one kind of keys of a layer. */
typedef struct key_pool {
	const spmla_cache *cache;
	const ref_table *table;
	uint32_t wrap; /* keys of a ring's row, or 0 */
	key_seen *seen;
} key_pool;

struct v4_keys {
	const v4_model *model;
	const batch *batch;
	ref_table tables[SPMLA_V4_GROUPS];
	key_pool *pools;                     /* [layers][V4_KEY_KINDS] */
	uint64_t pulled_bytes[V4_KEY_KINDS]; /* the largest cache's */
	void *pulled[V4_KEY_KINDS];
	const uint8_t *bytes[V4_KEY_KINDS];
	float *kv, *score; /* [REF_V4_MOST_ROWS][1024] */
	ref_v4_key key;
};

static const uint32_t ratio_of_group[SPMLA_V4_GROUPS] = {1, 4, 128, 4, 1, 1, 1};

static int
open_tables(v4_keys *k)
{
	const spmla_plan *plan = k->model->plan;
	uint32_t g;

	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		const spmla_table_config *c = &plan->config.groups[g];

		if (plan->group_table[g] == g &&
		    !ref_table_open(&k->tables[g], k->batch->rows,
				    plan->group_columns[g],
				    c->page_tokens / ratio_of_group[g],
				    c->pool_pages))
			return 0;
	}
	return 1;
}

static void
open_pool(v4_keys *k, uint32_t layer, v4_key_kind kind,
	  const spmla_cache *cache, uint32_t group)
{
	const spmla_plan *plan = k->model->plan;
	const uint64_t bytes = cache->pages * cache->page_stride_bytes;
	key_pool *p = &k->pools[layer * V4_KEY_KINDS + kind];

	if (!cache->base)
		return;
	p->cache = cache;
	p->table = &k->tables[plan->group_table[group]];
	p->seen = keep((uint64_t)cache->pages * cache->entries_per_page *
		       sizeof *p->seen);
	if (plan->config.groups[group].ring_columns)
		p->wrap = p->table->columns * p->table->page_tokens;
	if (bytes > k->pulled_bytes[kind])
		k->pulled_bytes[kind] = bytes;
}

v4_keys *
v4_keys_open(const v4_model *m, const batch *b)
{
	const uint64_t room = REF_V4_MOST_ROWS * 1024 * sizeof(float);
	v4_keys *k = keep(sizeof *k);
	uint32_t l;

	k->model = m;
	k->batch = b;
	k->pools = keep((uint64_t)m->layers * V4_KEY_KINDS * sizeof *k->pools);
	k->kv = keep(room);
	k->score = keep(room);
	if (!open_tables(k)) {
		v4_keys_close(k);
		return NULL;
	}
	for (l = 0; l < m->layers; l++) {
		const spmla_v4_layer *a = &m->sides[0].layer[l].args;

		open_pool(k, l, V4_KEY_WINDOW, &a->swa, SPMLA_GROUP_SWA);
		open_pool(k, l, V4_KEY_COMPRESSED, &a->compressed,
			  a->ratio == 4 ? SPMLA_GROUP_C4A : SPMLA_GROUP_C128A);
		open_pool(k, l, V4_KEY_INDEX, &a->index, SPMLA_GROUP_INDEX);
	}
	for (l = 0; l < V4_KEY_KINDS && device_native(); l++)
		k->pulled[l] = keep(k->pulled_bytes[l]);
	return k;
}

void
v4_keys_close(v4_keys *k)
{
	uint32_t g;

	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		ref_table_close(&k->tables[g]);
}

/* A row that comes without a record. */
static void
take_row(v4_keys *k, uint32_t row)
{
	const batch *b = k->batch;
	uint32_t g;

	for (g = 0; g < b->table_count; g++) {
		const page_table *t = &b->tables[g];
		const uint32_t count = (uint32_t)t->cols[row];

		(void)ref_table_store(&k->tables[t->group], row, 0, count,
				      t->pages + (uint64_t)row * t->columns);
		ref_table_truncate(&k->tables[t->group], row, count);
	}
}

void
v4_keys_tables(v4_keys *k)
{
	const batch *b = k->batch;
	const spmla_step *step = &b->step;
	uint32_t i, g;

	for (i = 0; i < b->bulk_count; i++)
		take_row(k, b->bulk[i]);
	for (i = 0; i < b->active_count && b->own_tables; i++)
		take_row(k, b->active[i].row);
	if (b->own_tables)
		return;
	for (i = 0; i < step->request_count; i++)
		for (g = 0; step->requests[i].flags & SPMLA_REQUEST_JOIN &&
			    g < SPMLA_V4_GROUPS;
		     g++)
			ref_table_join(&k->tables[g], step->requests[i].row);
	for (i = 0; i < step->store_count; i++) {
		const spmla_table_store *s = &step->stores[i];

		(void)ref_table_store(&k->tables[s->group], s->row,
				      s->first_col, s->count, s->pages);
	}
}

void
v4_keys_pull(v4_keys *k, uint32_t layer)
{
	uint32_t kind;

	for (kind = 0; kind < V4_KEY_KINDS; kind++) {
		const key_pool *p = &k->pools[layer * V4_KEY_KINDS + kind];

		if (!p->cache)
			continue;
		k->bytes[kind] = p->cache->base;
		if (!device_native())
			continue;
		device_copy(k->pulled[kind], p->cache->base,
			    p->cache->pages * p->cache->page_stride_bytes);
		k->bytes[kind] = k->pulled[kind];
	}
}

/* The token at a position of the place's request, as the place sees it. */
static token
token_at(const v4_keys *k, const v4_place *p, uint32_t position)
{
	const batch *b = k->batch;
	const uint32_t start = b->tokens[p->first].position;
	token of = p->of;

	if (position >= start)
		return b->tokens[p->first + position - start];
	of.request = batch_owner(b, p->of.request, position);
	of.position = position;
	of.draft = 0;
	return of;
}

static void
make_window_key(v4_keys *k, const v4_place *p, uint32_t position)
{
	const v4_model *m = k->model;
	const token of = token_at(k, p, position);
	uint16_t kv[REF_V4_DIM];

	values_bf16(v4_stream(m, p->layer, V4_KV, of), REF_V4_DIM, kv);
	ref_v4_window_key(&k->key, kv,
			  m->layer[p->layer].cos_sin + (uint64_t)position * 64);
}

/* The rows of a compressed key. At ratio 4 these include the rows of the group
 * before: those give their first columns, the group's own rows the others. */
static void
make_compressed_key(v4_keys *k, const v4_place *p, uint32_t number,
		    int of_index)
{
	const v4_model *m = k->model;
	const v4_inputs *l = &m->layer[p->layer];
	const uint32_t width = of_index ? V4_INDEX_WIDTH : l->width;
	const float *ape = l->f32[of_index ? V4_INDEX_APE : V4_APE];
	const uint32_t start = number * l->ratio;
	ref_v4_group g;
	uint32_t i;

	g.rows = l->ratio == 4 ? 8 : 128;
	g.dim = of_index ? REF_INDEX_DIM : REF_V4_DIM;
	g.norm_weight = l->f32[of_index ? V4_INDEX_NORM : V4_NORM];
	g.norm_eps = (double)m->sides[0].layer[p->layer].args.norm_eps;
	g.cos_sin = l->cos_sin + (uint64_t)start * 64;
	for (i = 0; i < g.rows; i++) {
		const uint32_t before = g.rows - l->ratio;
		const uint32_t column = i < before ? 0 : width - g.dim;
		float *kv = k->kv + i * 1024, *score = k->score + i * 1024;
		uint32_t position;
		token of;

		g.kv[i] = NULL;
		if (start + i < before)
			continue;
		position = start + i - before;
		of = token_at(k, p, position);
		values_f32(v4_stream(m, p->layer,
				     of_index ? V4_INDEX_KV : V4_COMPRESS_KV,
				     of),
			   width, kv);
		values_f32(
			v4_stream(m, p->layer,
				  of_index ? V4_INDEX_SCORE : V4_COMPRESS_SCORE,
				  of),
			width, score);
		g.kv[i] = kv + column;
		g.score[i] = score + column;
		g.ape[i] = ape + position % l->ratio * width + column;
	}
	ref_v4_compress(&k->key, &g);
}

/* Drafts come last in a step: their number says which rows are theirs. */
static uint32_t
draft_rows(const v4_keys *k, const v4_place *p, v4_key_kind kind, uint32_t key)
{
	const uint32_t ratio =
		kind == V4_KEY_WINDOW ? 1 : k->model->layer[p->layer].ratio;
	const uint32_t end = (key + 1) * ratio;
	const uint32_t rows = ratio == 4 ? 8 : ratio;
	uint32_t i, drafts = 0;

	for (i = end < rows ? end : rows; i > 0; i--)
		drafts += token_at(k, p, end - i).draft;
	return drafts;
}

/* FNV-1a. */
static uint64_t
hash_of(uint64_t hash, const uint8_t *p, uint32_t bytes)
{
	while (bytes-- > 0)
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	return hash;
}

/* Bytes of a key's values and of its scales. */
static void
sizes_of(uint32_t layout, uint32_t *values, uint32_t *scales)
{
	*values = layout == SPMLA_LAYOUT_V4_FP8      ? REF_V4_ROW_BYTES
		  : layout == SPMLA_LAYOUT_INDEX_FP8 ? 128
						     : 64;
	*scales = layout == SPMLA_LAYOUT_V4_FP8 ? REF_V4_SCALE_BYTES : 4;
}

static int
check_stored(const v4_keys *k, uint32_t layout, const uint8_t *values,
	     const uint8_t *scales, ref_miss *miss)
{
	float s;

	if (layout == SPMLA_LAYOUT_V4_FP8)
		return ref_v4_check_row(&k->key, values, scales, miss);
	if (layout == SPMLA_LAYOUT_INDEX_MXFP4)
		return ref_v4_check_mxfp4(&k->key, values, scales, miss);
	memcpy(&s, scales, sizeof s);
	return ref_v4_check_index(&k->key, values, (double)s, miss);
}

int64_t
v4_keys_slot(const v4_keys *k, const v4_place *p, v4_key_kind kind,
	     uint32_t key)
{
	const key_pool *pool = &k->pools[p->layer * V4_KEY_KINDS + kind];

	return ref_table_slot(pool->table, p->of.row,
			      pool->wrap ? key % pool->wrap : key);
}

/* Whether a key, or a row that it is made of, was there when the request
 * joined. */
static int
is_given(const v4_keys *k, const v4_place *p, v4_key_kind kind, uint32_t key)
{
	const uint32_t ratio = k->model->layer[p->layer].ratio;

	if (kind == V4_KEY_WINDOW)
		return key < k->batch->start;
	return k->batch->start > 0 &&
	       key * ratio < k->batch->start + (ratio == 4 ? 4 : 0);
}

const uint8_t *
v4_keys_stored(v4_keys *k, const v4_place *p, v4_key_kind kind, uint32_t key,
	       const uint8_t **scales, ref_miss *miss)
{
	const key_pool *pool = &k->pools[p->layer * V4_KEY_KINDS + kind];
	const spmla_cache *c = pool->cache;
	const int64_t slot = v4_keys_slot(k, p, kind, key);

	const uint8_t *page, *values;
	uint32_t value_bytes, scale_bytes, entry;
	key_seen now = {p->of.request + 1, key, 0, 0, 0}, *seen;

	if (slot < 0) {
		*miss = (ref_miss){"a key without a page", key, -1, 0};
		return NULL;
	}
	sizes_of(c->layout, &value_bytes, &scale_bytes);
	entry = (uint32_t)(slot % c->entries_per_page);
	page = k->bytes[kind] +
	       (uint64_t)(slot / c->entries_per_page) * c->page_stride_bytes;
	values = page + (uint64_t)entry * value_bytes;
	*scales = page + (uint64_t)c->entries_per_page * value_bytes +
		  (uint64_t)entry * scale_bytes;
	if (is_given(k, p, kind, key))
		return values;
	now.drafts = draft_rows(k, p, kind, key);
	now.hash = hash_of(
		hash_of(UINT64_C(0xcbf29ce484222325), values, value_bytes),
		*scales, scale_bytes);
	seen = &pool->seen[slot];
	if (memcmp(seen, &now, sizeof now) == 0)
		return values;
	if (kind == V4_KEY_WINDOW)
		make_window_key(k, p, key);
	else
		make_compressed_key(k, p, key, kind == V4_KEY_INDEX);
	if (!check_stored(k, c->layout, values, *scales, miss))
		return NULL;
	*seen = now;
	return values;
}
