/* SPDX-License-Identifier: Apache-2.0
 *
 * PROGRAM [--list] [SUITE..]: lists the suites that are linked in (themes.h),
 * or runs the named ones, or all. A suite that is named alone runs in this
 * process, so that a debugger or a device's tool sees it. Several run in a
 * process each, so that none sees what another one left behind, and those that
 * fail are named at the end. If Bazel asks for a shard, only that shard's
 * suites run.
 */
#include "tests/harness/cuda_world.h"
#include "tests/harness/themes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static suite *first;

void
suite_add(suite *s)
{
	suite **at = &first;

	while (*at && strcmp((*at)->file, s->file) < 0)
		at = &(*at)->next;
	s->next = *at;
	*at = s;
}

const char *
suite_name(const char *file)
{
	static char name[256];
	const char *from = strstr(file, "tests/");
	size_t length;

	from = from ? from + strlen("tests/") : file;
	length = strcspn(from, "."); /* no folder has one */
	(void)snprintf(name, sizeof name, "%.*s", (int)length, from);
	return name;
}

static int
is_named(const suite *s, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], suite_name(s->file)) == 0)
			return 1;
	return argc < 2;
}

/* Returns what its process did, 0 or CUDA_WORLD_SKIPPED if it is well. */
static int
run_alone(const suite *s)
{
	struct timespec begin, end;
	int status, result = 1;
	pid_t child;

	(void)fflush(NULL);
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	child = fork();
	if (child == 0)
		exit(s->run());
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	if (WIFEXITED(status))
		result = WEXITSTATUS(status);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%s %s in %.2f s\n",
	       result == 0                    ? "passed"
	       : result == CUDA_WORLD_SKIPPED ? "skipped"
					      : "FAILED",
	       suite_name(s->file),
	       (double)(end.tv_sec - begin.tv_sec) +
		       1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
	return result;
}

/* The number that Bazel gives, or `without`. */
static unsigned long
shard_number(const char *name, unsigned long without)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : without;
}

static void
tell_of_shards(void)
{
	const char *path = getenv("TEST_SHARD_STATUS_FILE");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (file)
		(void)fclose(file);
}

static int
run_all(int argc, char **argv)
{
	const unsigned long shards = shard_number("TEST_TOTAL_SHARDS", 1);
	const unsigned long shard = shard_number("TEST_SHARD_INDEX", 0);
	unsigned long n = 0;
	int passed = 0, skipped = 0, failed = 0, result;
	const suite *s;

	tell_of_shards();
	for (s = first; s; s = s->next) {
		if (!is_named(s, argc, argv) || n++ % shards != shard)
			continue;
		result = run_alone(s);
		passed += result == 0;
		skipped += result == CUDA_WORLD_SKIPPED;
		failed += result != 0 && result != CUDA_WORLD_SKIPPED;
	}
	if (n == 0)
		(void)fprintf(stderr, "%s: no such suite\n", argv[0]);
	printf("%d suites passed, %d failed, %d skipped\n", passed, failed,
	       skipped);
	if (n == 0 || failed)
		return n == 0 ? 2 : 1;
	return skipped && !passed ? CUDA_WORLD_SKIPPED : 0;
}

int
main(int argc, char **argv)
{
	const suite *s;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (s = first; s; s = s->next)
			puts(suite_name(s->file));
		return 0;
	}
	for (s = first; argc == 2 && s; s = s->next)
		if (is_named(s, argc, argv))
			return s->run();
	return run_all(argc, argv);
}
