/* SPDX-License-Identifier: Apache-2.0
 *
 * golden_runner --backend=cpu|cuda|hip|level_zero --cases=DIR [--cases=DIR ..]
 * [--faults]
 *
 * Runs every golden case below the folders (each folder that has a
 * manifest.json is one) through the library, twice on one context, and
 * compares with what a real kernel gave. One line a case, then
 *   N passed, N failed, N skipped
 * With --faults a case that passes must fail with each output spoilt: not
 * written, or off by one in every element.
 * A case is skipped if its op is not implemented. Exit: 0, or 1 if a case
 * failed or a folder has no case, or 2 on bad usage.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "spmla/spmla_cpu.h"
#include "tests/golden/golden.h"
#include "tests/harness/cuda_world.h"

enum { MAX_PATH = 4096, MAX_FOLDERS = 8 };

static const golden_op *const tables[] = {
	golden_v32_ops,       golden_prefill_ops,  golden_v4_front_ops,
	golden_v4_attend_ops, golden_v4_index_ops, golden_compress_ops,
	golden_inv_rope_ops,  golden_index_q_ops,
};

typedef struct tally {
	spmla_ctx *ctx;
	uint32_t found;
	uint32_t counts[3]; /* by golden_verdict */
	uint32_t prove;     /* make faults too */
	uint32_t faults;    /* that were made */
} tally;

static golden_run
find_op(const char *name)
{
	const golden_op *op;
	size_t i;

	for (i = 0; i < sizeof tables / sizeof *tables; i++)
		for (op = tables[i]; op->name; op++)
			if (strcmp(op->name, name) == 0)
				return op->run;
	return NULL;
}

/* A case, twice; the second run has to give the bytes of the first. */
static golden_verdict
judge(tally *t, golden_case *c, const char *dir)
{
	golden_verdict v;
	golden_run run;

	if (!golden_case_load(c, dir))
		return GOLDEN_FAILED;
	run = find_op(c->op);
	if (!run)
		return golden_skip(c, "%s is not implemented", c->op);
	golden_case_reset(c);
	v = run(c);
	if (v == GOLDEN_RAN)
		v = golden_case_read(c);
	if (v != GOLDEN_RAN)
		return v;
	if (!golden_case_keep(c))
		return GOLDEN_FAILED;
	golden_case_reset(c);
	v = run(c);
	if (v == GOLDEN_RAN)
		v = golden_compare_runs(c);
	if (v == GOLDEN_RAN)
		v = golden_compare(c);
	if (v == GOLDEN_RAN && t->prove)
		v = golden_prove(c, run, &t->faults);
	return v;
}

/* What a PASS does not cover. */
static void
print_notes(const golden_case *c)
{
	const char *comma = " (left out: ";
	uint32_t i;

	for (i = 0; i < c->tensor_count; i++)
		if (c->tensors[i].left_out) {
			printf("%s%s", comma, c->tensors[i].name);
			comma = ", ";
		}
	if (comma[0] == ',')
		printf(")");
	for (i = 0; i < c->tensor_count; i++)
		if (c->tensors[i].slack_used)
			printf(" (%s: %" PRIu64 " of %" PRIu64
			       " leave rtol %g, atol %g by no more than %s)",
			       c->tensors[i].name, c->tensors[i].slack_used,
			       c->tensors[i].count, c->tensors[i].rtol,
			       c->tensors[i].atol, c->tensors[i].slack_why);
	for (i = 0; i < c->tensor_count; i++)
		if (c->tensors[i].exact)
			printf(" (%s off exact, ours / theirs: rms %.3g / "
			       "%.3g, most %.3g / %.3g)",
			       c->tensors[i].name, c->tensors[i].ours.rms,
			       c->tensors[i].theirs.rms,
			       c->tensors[i].ours.most,
			       c->tensors[i].theirs.most);
	for (i = 0; i < c->tensor_count; i++)
		if (c->tensors[i].accepted)
			printf(" (%s: left out %" PRIu64 " of %" PRIu64 ": %s)",
			       c->tensors[i].name, c->tensors[i].accepted,
			       c->tensors[i].count, c->tensors[i].accepted_why);
}

static void
run_case(tally *t, const char *dir)
{
	static const char *const words[3] = {"PASS", "FAIL", "SKIPPED"};
	static golden_case c;
	golden_verdict v;

	memset(&c, 0, sizeof c);
	c.ctx = t->ctx;
	v = judge(t, &c, dir);
	printf("%s ", words[v]);
	if (c.op && c.name)
		printf("%s/%s", c.op, c.name);
	else
		printf("%s", dir);
	if (v == GOLDEN_RAN)
		print_notes(&c);
	else
		printf(": %s", c.reason);
	printf("\n");
	t->counts[v]++;
	t->found++;
	golden_case_free(&c);
}

static int
visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Folders in the order of their names. stat follows links: runfiles are. */
static void
walk(tally *t, const char *dir, uint32_t depth)
{
	struct dirent **entries = NULL;
	char path[MAX_PATH];
	struct stat info;
	int n, i;

	if (snprintf(path, sizeof path, "%s/manifest.json", dir) < MAX_PATH &&
	    stat(path, &info) == 0) {
		run_case(t, dir);
		return;
	}
	n = depth > 0 ? scandir(dir, &entries, visible, alphasort) : 0;
	for (i = 0; i < n; i++) {
		if (snprintf(path, sizeof path, "%s/%s", dir,
			     entries[i]->d_name) < MAX_PATH &&
		    stat(path, &info) == 0 && S_ISDIR(info.st_mode))
			walk(t, path, depth - 1);
		free(entries[i]);
	}
	free(entries);
}

/* Heads, index heads and top-k are all that the ops take from a plan. */
static spmla_status
open_context(spmla_ctx **ctx, const spmla_backend *backend,
	     void *memory[SPMLA_MEMORY_COUNT], spmla_diag *diag)
{
	static spmla_config config;
	static spmla_plan plan;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_status s = spmla_config_preset(&config, SPMLA_MODEL_V32);
	uint32_t m, count = 0;

	config.heads = 256;
	config.index_heads = 128;
	config.max_rows = 1;
	config.max_context_tokens = 4096;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = 64;
	if (getenv("SPMLA_TEST_UNPROVEN"))
		config.flags = SPMLA_CONFIG_ALLOW_UNPROVEN;
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){1, 1, 1, 0};
	if (s == SPMLA_OK)
		s = spmla_backend_query(backend, NULL, &device, diag);
	if (s == SPMLA_OK)
		s = spmla_plan_make(&plan, &config, &device, diag);
	for (m = 0; s == SPMLA_OK && m < SPMLA_MEMORY_COUNT; m++) {
		const uint64_t bytes = plan.region_bytes[m];

		if (bytes == 0)
			continue;
		memory[m] = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
		if (!memory[m])
			return SPMLA_E_SPACE;
		memset(memory[m], GOLDEN_SENTINEL, bytes);
		regions[count++] = (spmla_region){
			(uint32_t)sizeof(spmla_region), m, memory[m], bytes};
	}
	if (s == SPMLA_OK)
		s = spmla_init(ctx, &plan, backend, NULL, regions, count, diag);
	return s;
}

static int
usage(FILE *out, const char *problem)
{
	if (problem)
		(void)fprintf(out, "golden_runner: %s\n", problem);
	(void)fprintf(
		out,
		"usage: golden_runner --backend=cpu|cuda|hip|level_zero "
		"--cases=DIR .. [--faults]\n\n"
		"  --backend=NAME  what runs the operations\n"
		"  --cases=DIR     a folder with cases below it; up to %d\n"
		"  --faults        prove that a case fails with its outputs "
		"spoilt\n"
		"  --version       SpMLA's version\n\n"
		"One line a case. Exit: 0; 1 if a case failed or a folder has "
		"none; 2 on\nbad usage.\n",
		MAX_FOLDERS);
	return problem ? 2 : 0;
}

/* A relative folder is one of where "bazel run" was called. */
static void
run_folder(tally *t, const char *dir, int *missing)
{
	const char *base = getenv("BUILD_WORKING_DIRECTORY");
	const uint32_t before = t->found;
	char path[MAX_PATH];

	if (!base || dir[0] == '/')
		(void)snprintf(path, sizeof path, "%s", dir);
	else
		(void)snprintf(path, sizeof path, "%s/%s", base, dir);
	walk(t, path, 8);
	if (t->found == before) {
		(void)fprintf(stderr, "golden_runner: no case below %s\n",
			      path);
		*missing = 1;
	}
}

/* A device's backend is weak: NULL in a program that is not made for it. */
static const spmla_backend *
find_backend(const char *name)
{
	if (strcmp(name, "cuda") == 0)
		return &cuda_sync;
	if (strcmp(name, "hip") == 0)
		return &hip_sync;
	if (strcmp(name, "level_zero") == 0)
		return &level_zero_sync;
	return strcmp(name, "cpu") == 0 ? &spmla_cpu : NULL;
}

int
main(int argc, char **argv)
{
	void *memory[SPMLA_MEMORY_COUNT] = {NULL};
	const char *folders[MAX_FOLDERS];
	const spmla_backend *backend = NULL;
	spmla_diag diag = SPMLA_DIAG_INIT;
	int i, count = 0, missing = 0;
	tally t = {0};
	char text[256];
	uint32_t m;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return usage(stdout, NULL);
		if (strcmp(argv[i], "--version") == 0)
			return printf("golden_runner of SpMLA %s\n",
				      spmla_version_string()) < 0;
		if (strncmp(argv[i], "--backend=", 10) == 0)
			backend = find_backend(argv[i] + 10);
		else if (strncmp(argv[i], "--cases=", 8) == 0 && argv[i][8] &&
			 count < MAX_FOLDERS)
			folders[count++] = argv[i] + 8;
		else if (strcmp(argv[i], "--faults") == 0)
			t.prove = 1;
		else
			return usage(stderr, argv[i]);
	}
	if (!backend)
		return usage(stderr,
			     "--backend is cpu, cuda, hip or level_zero");
	if (count == 0)
		return usage(stderr, "no --cases");
	if (open_context(&t.ctx, backend, memory, &diag) != SPMLA_OK) {
		(void)spmla_diag_text(&diag, text, sizeof text);
		(void)fprintf(stderr, "golden_runner: %s\n", text);
		return 1;
	}
	for (i = 0; i < count; i++)
		run_folder(&t, folders[i], &missing);
	(void)spmla_fini(t.ctx);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		free(memory[m]);
	if (t.prove)
		printf("%" PRIu32 " faults\n", t.faults);
	printf("%" PRIu32 " passed, %" PRIu32 " failed, %" PRIu32 " skipped\n",
	       t.counts[GOLDEN_RAN], t.counts[GOLDEN_FAILED],
	       t.counts[GOLDEN_SKIPPED]);
	return t.counts[GOLDEN_FAILED] || missing ? 1 : 0;
}
