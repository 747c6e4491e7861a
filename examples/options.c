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

static int
is_switch(const option *o)
{
	return o->number && o->most == 0;
}

enum { HELP_COLUMN = 18, HELP_WIDTH = 80 };

/* Words from a column on, in lines of HELP_WIDTH; returns where they end. */
static int
put_words(const char *text, int column)
{
	while (*text) {
		const int n = (int)strcspn(text, " ");

		if (column + n >= HELP_WIDTH) {
			printf("\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		}
		printf(" %.*s", n, text);
		column += n + 1;
		text += n;
		text += strspn(text, " ");
	}
	return column;
}

static void
print_default(const option *o, int column)
{
	char number[40];

	if (o->text) {
		snprintf(number, sizeof number, "%s", *o->text);
	} else {
		snprintf(number, sizeof number, "%" PRIu64,
			 o->number ? *o->number : *o->wide);
	}
	column = put_words("(default", column);
	(void)put_words(number, column);
	printf(")");
}

static void
print_help(const char *program, const char *about, const option *options,
	   uint32_t count)
{
	uint32_t i;

	printf("usage: %s [--option value]...\n%s\n\n", program, about);
	for (i = 0; i < count; i++) {
		const option *o = &options[i];
		int column;

		printf("  %-*s", HELP_COLUMN - 2, o->name);
		column = put_words(o->help, HELP_COLUMN);
		if (!is_switch(o) && !(o->text && !*o->text))
			print_default(o, column);
		printf("\n");
	}
	printf("  %-*s this list\n  %-*s the version of SpMLA\n",
	       HELP_COLUMN - 2, "--help, -h", HELP_COLUMN - 2, "--version");
}

/* Letters to insert, drop or change until a is b (Levenshtein's distance). */
static uint32_t
distance(const char *a, const char *b)
{
	uint32_t row[OPTIONS_NAME], i, k;
	const uint32_t n = (uint32_t)strlen(b);

	if (n >= OPTIONS_NAME)
		return UINT32_MAX;
	for (k = 0; k <= n; k++)
		row[k] = k;
	for (i = 1; *a && *a != '='; a++, i++) {
		uint32_t above = row[0]; /* left of the next one */

		row[0] = i;
		for (k = 1; k <= n; k++) {
			const uint32_t change = above + (*a != b[k - 1]);

			above = row[k];
			row[k] = row[k] < row[k - 1] ? row[k] : row[k - 1];
			row[k] = row[k] + 1 < change ? row[k] + 1 : change;
		}
	}
	return row[n];
}

/* How far what was typed is from a name, dashes aside: 0 if it begins it. */
static uint32_t
away(const char *typed, const char *name)
{
	size_t n;

	typed += strspn(typed, "-");
	name += strspn(name, "-");
	n = strcspn(typed, "=");
	return strncmp(typed, name, n) == 0 ? 0 : distance(typed, name);
}

static int
unknown(const char *program, const option *options, uint32_t count,
	const char *arg)
{
	static const char *const own[] = {"--help", "--version"};
	const char *best = own[0];
	uint32_t least = UINT32_MAX, i;

	if (arg[0] != '-' || arg[strspn(arg, "-")] == 0) {
		fprintf(stderr, "%s: %s: not an option; --help lists all\n",
			program, arg);
		return OPTIONS_BAD;
	}
	for (i = 0; i < count + 2; i++) {
		const char *name = i < count ? options[i].name : own[i - count];
		const uint32_t d = away(arg, name);

		if (d < least) {
			least = d;
			best = name;
		}
	}
	fprintf(stderr,
		"%s: %s: unknown option; the nearest is %s; --help lists all\n",
		program, arg, best);
	return OPTIONS_BAD;
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
options_parse(const char *program, const char *about, const option *options,
	      uint32_t count, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *value;
		const option *o;

		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0) {
			print_help(program, about, options, count);
			return OPTIONS_HELP;
		}
		if (strcmp(argv[i], "--version") == 0) {
			printf("%s of SpMLA %s\n", program,
			       spmla_version_string());
			return OPTIONS_HELP;
		}
		o = find_option(options, count, argv[i], &value);
		if (!o)
			return unknown(program, options, count, argv[i]);
		if (is_switch(o) && !value) {
			*o->number = 1;
			continue;
		}
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value || is_switch(o)) {
			fprintf(stderr, "%s: %s: %s\n", program, o->name,
				value ? "it takes no value"
				      : "a value is missing");
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
