/* SPDX-License-Identifier: Apache-2.0
 *
 * See options.h.
 */
#include "examples/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
parse_number(const char *text, uint64_t *value)
{
	uint64_t v = 0;
	const char *p;

	if (*text == 0)
		return 0;
	for (p = text; *p != 0; p++) {
		const uint64_t digit = (uint64_t)(*p - '0');

		if (*p < '0' || *p > '9' || v > (UINT64_MAX - digit) / 10)
			return 0;
		v = v * 10 + digit;
	}
	*value = v;
	return 1;
}

static int
set_option(const char *program, const option *o, const char *text)
{
	uint64_t value;

	if (o->text) {
		*o->text = text;
		return OPTIONS_GO;
	}
	if (!parse_number(text, &value) || value < o->least ||
	    value > o->most) {
		fprintf(stderr,
			"%s: %s: \"%s\" is not a whole number from %" PRIu64
			" to %" PRIu64 "\n",
			program, o->name, text, o->least, o->most);
		return OPTIONS_BAD;
	}
	if (o->number)
		*o->number = (uint32_t)value;
	else
		*o->wide = value;
	return OPTIONS_GO;
}

static void
print_help(const char *program, const option *options, uint32_t count)
{
	uint32_t i;

	printf("usage: %s [--option value]...\n", program);
	for (i = 0; i < count; i++) {
		const option *o = &options[i];

		printf("  %-15s %s; default ", o->name, o->help);
		if (o->text)
			printf("%s\n", *o->text ? *o->text : "none");
		else
			printf("%" PRIu64 "\n",
			       o->number ? *o->number : *o->wide);
	}
}

static const option *
find_option(const option *options, uint32_t count, const char *arg,
	    const char **value)
{
	uint32_t i;

	*value = NULL;
	for (i = 0; i < count; i++) {
		const size_t n = strlen(options[i].name);

		if (strncmp(arg, options[i].name, n) != 0)
			continue;
		if (arg[n] == '=')
			*value = arg + n + 1;
		if (arg[n] == '=' || arg[n] == 0)
			return &options[i];
	}
	return NULL;
}

const char *
options_text(int argc, char **argv, const char *name, const char *otherwise)
{
	const option o = {name, NULL, NULL, NULL, NULL, 0, 0};
	const char *value;
	int i;

	for (i = 1; i < argc; i++) {
		if (!find_option(&o, 1, argv[i], &value))
			continue;
		if (value || i + 1 < argc)
			otherwise = value ? value : argv[i + 1];
	}
	return otherwise;
}

int
options_parse(const char *program, const option *options, uint32_t count,
	      int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *value;
		const option *o;

		if (strcmp(argv[i], "--help") == 0) {
			print_help(program, options, count);
			return OPTIONS_HELP;
		}
		o = find_option(options, count, argv[i], &value);
		if (!o) {
			fprintf(stderr,
				"%s: %s: unknown option; --help lists them\n",
				program, argv[i]);
			return OPTIONS_BAD;
		}
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value) {
			fprintf(stderr, "%s: %s: a value is missing\n", program,
				o->name);
			return OPTIONS_BAD;
		}
		if (set_option(program, o, value) != OPTIONS_GO)
			return OPTIONS_BAD;
	}
	return OPTIONS_GO;
}

int
path_resolve(const char *path, char *out, size_t capacity)
{
	const char *folder = getenv("BUILD_WORKING_DIRECTORY");
	int n;

	if (path[0] == '/' || !folder)
		n = snprintf(out, capacity, "%s", path);
	else
		n = snprintf(out, capacity, "%s/%s", folder, path);
	return n >= 0 && (size_t)n < capacity;
}
