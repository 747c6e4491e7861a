/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints where a plan puts every buffer, and draws it:
 *
 *   bazel run //examples:arena_map -- --svg arena.svg --heads 16
 *
 * A plan is plain data, made without memory and without a device, so this runs
 * for any size in no time. The defaults are one rank and 64 requests. V3.2: up
 * to 128k tokens each, half a million tokens in the pools. V4: up to 1M tokens
 * each, pools for half of the most.
 */
#include <stdio.h>
#include <string.h>

#include "examples/arena_print.h"
#include "examples/options.h"

#define PROGRAM "arena_map"
#define ABOUT   "Prints where a plan puts every buffer, and draws it."

enum { OWN_OPTIONS = 1 };

static int
draw(const spmla_plan *plan, const char *svg)
{
	char path[PATH_BYTES];
	FILE *out = NULL;
	int good;

	if (path_resolve(svg, path, sizeof path))
		out = fopen(path, "w");
	if (!out) {
		fprintf(stderr, PROGRAM ": --svg: cannot write %s\n", svg);
		return OPTIONS_BAD;
	}
	arena_draw(plan, out);
	good = !ferror(out);
	if (fclose(out) == 0 && good)
		return 0;
	fprintf(stderr, PROGRAM ": --svg: cannot write all of %s\n", svg);
	return 1;
}

static model_options
defaults(const char *model)
{
	const model_options v32 = {"cpu", "v32", "preset",   "fp8",  61, 128,
				   64,    2048,  64,         131072, 1,  64,
				   8192,  0,     "captured", 0,      0};
	const model_options flash = {
		"cpu", "v4-flash", "preset",   "fp8",   43, 64,
		64,    512,        64,         1048576, 1,  256,
		0,     0,          "captured", 0,       0};
	model_options pro = flash;

	if (strcmp(model, "v4-pro") != 0)
		return strcmp(model, "v4-flash") == 0 ? flash : v32;
	pro.model = "v4-pro";
	pro.layers = 61;
	pro.heads = 128;
	pro.topk = 1024;
	return pro;
}

int
main(int argc, char **argv)
{
	static spmla_plan plan;
	model_options m = defaults(options_text(argc, argv, "--model", "v32"));
	option list[MODEL_OPTION_COUNT + OWN_OPTIONS];
	const spmla_backend *backend;
	const char *svg = NULL;
	const option own = {"--svg", "file to draw into", &svg, NULL, NULL, 0,
			    0};
	int end;

	model_options_list(&m, list);
	list[MODEL_OPTION_COUNT] = own;
	end = options_parse(PROGRAM, ABOUT, list,
			    MODEL_OPTION_COUNT + OWN_OPTIONS, argc, argv);
	if (end != OPTIONS_GO)
		return end == OPTIONS_HELP ? 0 : OPTIONS_BAD;
	if (model_options_plan(PROGRAM, &m, &backend, &plan) != OPTIONS_GO)
		return OPTIONS_BAD;
	end = svg ? draw(&plan, svg) : 0;
	if (end == 0)
		arena_print(&plan, stdout);
	return end;
}
