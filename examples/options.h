/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the examples: the command line as a table, the config options of a
 * model, and the plan made of them.
 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "spmla/spmla.h"

/* One option. One of text, number and wide is set, and receives the value. A
 * number with most 0 is a switch: it takes no value and is set to 1. */
typedef struct option {
	const char *name; /* "--steps" */
	const char *help;
	const char **text;
	uint32_t *number;
	uint64_t *wide;
	uint64_t least, most; /* of a number */
} option;

enum { OPTIONS_GO = 0, OPTIONS_HELP = 1, OPTIONS_BAD = 2, OPTIONS_NAME = 32 };

/* Reads "--name value" and "--name=value". --help and -h list the options below
 * `about`, --version prints SpMLA's version: OPTIONS_HELP. A bad option gives
 * one line on stderr that names it, and the one that is spelled most like it,
 * and OPTIONS_BAD, the exit status. */
int options_parse(const char *program, const char *about, const option *options,
		  uint32_t count, int argc, char **argv);

/* The value of an option on which the defaults of others depend, before
 * parsing; `otherwise` if it is not given. */
const char *options_text(int argc, char **argv, const char *name,
			 const char *otherwise);

enum { PATH_BYTES = 4096 };

/* Resolves relative paths against the folder in which `bazel run` was called.
 * Returns 0 if the result does not fit. */
int path_resolve(const char *path, char *out, size_t capacity);

typedef struct model_options {
	const char *backend;
	const char *model;
	/* V4: preset, own, linear or device; fp8 or mxfp4. */
	const char *tables;
	const char *index;
	uint32_t layers; /* layers whose page pools are planned */
	uint32_t heads;
	uint32_t index_heads;
	uint32_t topk;
	uint32_t max_requests;
	uint32_t max_context;
	uint32_t next_n;
	uint32_t page_tokens; /* V4: of compressed keys */
	/* Pages of the pool; V4: of each pool of a linear table. 0: half of
	 * what all requests could fill. */
	uint32_t pool_pages;
	/* query tokens of a prefill step; V4: prompt tokens of a step; 0: none
	 */
	uint32_t prefill;
	const char *prompts; /* V4: captured or eager */
	uint32_t start;      /* V4: tokens that a request has when it joins */
	uint32_t unproven;   /* 1: kernels that no GPU ran may run */
} model_options;

/* MODEL_TAIL_TOKENS: most prompt tokens of a mixed step. MODEL_GIVEN_PAGES:
 * pages of a pool that stand for all that requests have when they join. */
enum {
	MODEL_OPTION_COUNT = 17,
	MODEL_MAX_NEXT_N = 16,
	MODEL_TAIL_TOKENS = 16,
	MODEL_GIVEN_PAGES = 4
};

/* Writes MODEL_OPTION_COUNT rows. The values of m are the defaults. */
void model_options_list(model_options *m, option *list);

/* The ratio of a V4 layer: 1 (window only), 4 or 128. */
uint32_t model_v4_ratio(uint32_t layer);

/* Fills in pool_pages and makes the plan: buckets of 1, 2, 4, .. requests. With
 * prefill there is one more bucket, for steps that decode and take in the end
 * of a prompt, and room for steps of prompts. On an error: one line on stderr
 * and OPTIONS_BAD. */
int model_options_plan(const char *program, model_options *m,
		       const spmla_backend **backend, spmla_plan *plan);

#endif
