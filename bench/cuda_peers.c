/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fastest public kernels take for the rows of the table, us, on an H100
 * and on an H200. bench/README.md says which kernels these are, and how they
 * were measured.
 */
#include "bench/cuda.h"

#include <string.h>

enum { H100, H200, DEVICES };

static const char *const dates[DEVICES] = {"H100, 2026-11-20",
					   "H200, 2026-11-24"};

/* 0: not measured. */
static const struct {
	const char *op, *shape;
	struct {
		double us;
		double other; /* of top-k: exact; else the most of a range */
	} by[DEVICES];
} peers[] = {
	{"tile_sched", "1 requests, 132 parts", {{15.7, 0}, {12.1, 0}}},
	{"tile_sched", "32 requests, 132 parts", {{18.5, 0}, {17.5, 0}}},
	{"tile_sched", "256 requests, 132 parts", {{29.5, 0}, {28.9, 0}}},
	{"indexer_schedule", "1 requests, 132 SMs", {{5.2, 7.4}, {5.3, 0}}},
	{"indexer_schedule", "32 requests, 132 SMs", {{5.2, 7.4}, {6.3, 0}}},
	{"indexer_schedule", "256 requests, 132 SMs", {{5.2, 7.4}, {7.2, 0}}},
	{"topk", "1 x 8192, k 2048", {{7.6, 18.8}, {8.2, 19.1}}},
	{"topk", "1 x 32768, k 2048", {{14.1, 29}, {14.4, 29.3}}},
	{"topk", "1 x 65536, k 2048", {{15.2, 41.3}, {15.6, 43.5}}},
	{"topk", "1 x 131072, k 2048", {{16.4, 60.6}, {24.5, 70.1}}},
	{"topk", "8 x 65536, k 2048", {{16.1, 42.4}, {15.4, 44.4}}},
	{"topk", "32 x 32768, k 2048", {{18.9, 30.5}, {22.5, 33.1}}},
	{"topk", "64 x 65536, k 2048", {{30.2, 45.8}, {38.5, 46.5}}},
	{"topk", "128 x 32768, k 2048", {{23.9, 36.6}, {24.8, 35.5}}},
	{"topk", "128 x 65536, k 2048", {{40.9, 56.2}, {40.6, 54.4}}},
	{"topk", "64 x 32768, k 512", {{16.6, 27.1}, {22.1, 28.3}}},
	{"topk", "128 x 16384, k 1024", {{13.9, 24.7}, {13.8, 23.6}}},
	{"topk", "256 x 8192, k 512", {{13.8, 28.8}, {13.1, 27.7}}},
	{"mqa_logits", "1 x 8192", {{6.8, 0}, {6, 0}}},
	{"mqa_logits", "1 x 65536", {{9.2, 0}, {8.2, 0}}},
	{"mqa_logits", "1 x 131072", {{12.1, 0}, {10.7, 0}}},
	{"mqa_logits", "16 x 32768", {{29.8, 0}, {24.2, 0}}},
	{"mqa_logits", "64 x 32768", {{103.5, 0}, {76.1, 0}}},
	{"mqa_logits", "128 x 32768", {{201.7, 0}, {143.4, 0}}},
	{"mqa_logits", "128 x 8192", {{54.7, 0}, {41.1, 0}}},
	{"mqa_logits", "256 x 8192", {{104.4, 0}, {76.5, 0}}},
	{"mqa_logits", "64 x 32768, 2 queries", {{108.3, 0}, {82, 0}}},
	{"mqa_logits_gathered", "2048 x 8192, causal", {{223, 0}, {225.5, 0}}},
	{"mqa_logits_gathered",
	 "4096 x 65536, causal",
	 {{3801, 0}, {4284.9, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 1", {{21.9, 0}, {22.5, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 2", {{21.1, 0}, {22.2, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 4", {{23.6, 0}, {25.1, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 8", {{30.5, 0}, {32.6, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 32", {{64.8, 0}, {71.5, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 64", {{98, 0}, {108.8, 0}}},
	{"sparse_decode", "V3.2, 128 heads, batch 128", {{190, 0}, {211.4, 0}}},
	{"sparse_decode",
	 "V3.2, 128 heads, batch 148",
	 {{228.4, 0}, {251.8, 0}}},
	{"sparse_decode",
	 "V3.2, 128 heads, batch 256",
	 {{371.3, 0}, {413.3, 0}}},
	{"sparse_decode", "V3.2, 64 heads, batch 1", {{21.2, 0}, {22.5, 0}}},
	{"sparse_decode", "V3.2, 64 heads, batch 16", {{33.6, 0}, {33.5, 0}}},
	{"sparse_decode",
	 "V3.2, 64 heads, batch 128",
	 {{119.1, 0}, {115.7, 0}}},
	{"sparse_decode",
	 "V3.2, 16 heads, batch 128",
	 {{119.1, 0}, {115.7, 0}}},
	{"sparse_decode", "V3.2, 8 heads, batch 128", {{119.1, 0}, {115.7, 0}}},
	{"sparse_decode",
	 "V3.2 k 16384, 128 heads, batch 296",
	 {{3107, 0}, {3468, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 1",
	 {{20.4, 0}, {21.4, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 2",
	 {{20.3, 0}, {22, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 4",
	 {{20.6, 0}, {22.3, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 64",
	 {{53.8, 0}, {53, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 128",
	 {{57.1, 0}, {53.7, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 256",
	 {{103.2, 0}, {95.7, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 296",
	 {{132.1, 0}, {127.7, 0}}},
	{"sparse_decode",
	 "V4 C4A 512, 64 heads, batch 512",
	 {{192.6, 0}, {179.5, 0}}},
	{"sparse_decode",
	 "V4 C4A 1024, 128 heads, batch 2",
	 {{19.4, 0}, {21, 0}}},
	{"sparse_decode",
	 "V4 C4A 1024, 128 heads, batch 4",
	 {{22, 0}, {23.4, 0}}},
	{"sparse_decode",
	 "V4 C4A 1024, 128 heads, batch 128",
	 {{110.1, 0}, {125.1, 0}}},
	{"sparse_decode",
	 "V4 C4A 1024, 128 heads, batch 296",
	 {{257, 0}, {291.8, 0}}},
	{"sparse_decode",
	 "V4 C128A 1024, 64 heads, batch 4",
	 {{23.4, 0}, {24.6, 0}}},
	{"sparse_decode",
	 "V4 C128A 1024, 64 heads, batch 128",
	 {{83.4, 0}, {82.1, 0}}},
	{"sparse_prefill",
	 "4096 queries, 128 heads, d 576, top-k 2048",
	 {{3753, 0}, {4090.4, 0}}},
	{"sparse_prefill",
	 "4096 queries, 128 heads, d 512, top-k 640",
	 {{1362, 0}, {1330.5, 0}}},
	{"sparse_prefill",
	 "4096 queries, 64 heads, d 512, top-k 640",
	 {{697, 0}, {691, 0}}},
	{"sparse_prefill",
	 "4096 queries, 128 heads, d 512, top-k 1152",
	 {{2095, 0}, {2245.1, 0}}},
	{"v32_attn", "1 x 8192 tokens, 1 layer", {{36.3, 0}, {36.7, 0}}},
	{"v32_attn", "1 x 65536 tokens, 1 layer", {{46.3, 0}, {46.3, 0}}},
	{"v4_attn",
	 "V4-Flash, ratio 4, 64 x 131072 tokens",
	 {{173.9, 0}, {151.2, 0}}},
};

static uint32_t
device_of(const gpu *g)
{
	return strstr(g->name, "H200") ? H200 : H100;
}

const char *
peers_date(const gpu *g)
{
	return dates[device_of(g)];
}

/* The characters of a shape that name a row here. A decode's last words say how
 * it ran. */
static size_t
length_of(const cuda_row *r)
{
	const char *end = strrchr(r->shape, ',');

	return end && !strcmp(r->op, "sparse_decode") ? (size_t)(end - r->shape)
						      : strlen(r->shape);
}

void
peers_find(const gpu *g, cuda_row *r)
{
	const size_t length = length_of(r);
	uint32_t i;

	for (i = 0; i < sizeof peers / sizeof *peers; i++) {
		if (strcmp(r->op, peers[i].op) ||
		    strlen(peers[i].shape) != length ||
		    strncmp(r->shape, peers[i].shape, length))
			continue;
		r->peer = peers[i].by[device_of(g)].us;
		if (!strcmp(r->op, "topk"))
			r->peer_exact = peers[i].by[device_of(g)].other;
		else
			r->peer_most = peers[i].by[device_of(g)].other;
		r->peer_sum = strstr(r->op, "_attn") != NULL;
	}
}
