/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints where a plan puts every buffer, and draws it:
 *
 *	bazel run //examples:arena_map -- --svg arena.svg --heads 16
 *
 * A plan is plain data, made without memory and without a device, so this runs
 * for any size in no time. The defaults are V3.2 on one rank: 64 requests of
 * up to 128k tokens, half a million tokens in the pools.
 */
#include <stdio.h>
#include <string.h>

#include "examples/arena_print.h"
#include "examples/options.h"

#define PROGRAM "arena_map"

enum { PATH_BYTES = 4096, OWN_OPTIONS = 1 };

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

int
main(int argc, char **argv)
{
	static spmla_plan plan;
	model_options m = {"cpu", "v32",  61, 128, 64,   2048,
			   64,    131072, 1,  64,  8192, 0};
	option list[MODEL_OPTION_COUNT + OWN_OPTIONS];
	const spmla_backend *backend;
	const char *svg = NULL;
	const option own = {"--svg", "file to draw into", &svg, NULL, NULL, 0,
			    0};
	int end;

	model_options_list(&m, list);
	list[MODEL_OPTION_COUNT] = own;
	end = options_parse(PROGRAM, list, MODEL_OPTION_COUNT + OWN_OPTIONS,
			    argc, argv);
	if (end != OPTIONS_GO)
		return end == OPTIONS_HELP ? 0 : OPTIONS_BAD;
	if (model_options_plan(PROGRAM, &m, &backend, &plan) != OPTIONS_GO)
		return OPTIONS_BAD;
	end = svg ? draw(&plan, svg) : 0;
	if (end == 0)
		arena_print(&plan, stdout);
	return end;
}
