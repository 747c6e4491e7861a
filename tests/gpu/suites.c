/* SPDX-License-Identifier: Apache-2.0
 *
 * suites [NAME]: runs one of the suites that are linked in, each a program
 * whose main has another name here; without NAME it lists them. A program a
 * suite would hold the library and its kernels as often.
 */
#include <stdio.h>
#include <string.h>

#define SUITE(stem, name) int suite_##stem(void);
#include SUITES
#undef SUITE

static const struct {
	const char *name;
	int (*run)(void);
} suites[] = {
#define SUITE(stem, name) {name, suite_##stem},
#include SUITES
#undef SUITE
};

int
main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof suites / sizeof *suites; i++)
		if (argc < 2)
			puts(suites[i].name);
		else if (strcmp(argv[1], suites[i].name) == 0)
			return suites[i].run();
	if (argc < 2)
		return 0;
	(void)fprintf(stderr, "suites: no %s\n", argv[1]);
	return 2;
}
