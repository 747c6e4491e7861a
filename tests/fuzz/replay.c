/* SPDX-License-Identifier: Apache-2.0
 *
 * replay FILE..: what a fuzz target does with each of these inputs, without
 * libFuzzer, as the build compiles it.
 */
#include "tests/fuzz/world.h"

enum { MOST_BYTES = 1 << 16 };

static void
replay(const char *path)
{
	uint8_t *data = malloc(MOST_BYTES), *exact;
	FILE *file = fopen(path, "rb");
	size_t bytes;

	REQUIRE(data && file);
	bytes = fread(data, 1, MOST_BYTES, file);
	REQUIRE(!ferror(file) && fclose(file) == 0);
	/* No byte more, so that ASan sees a read past the end. */
	exact = malloc(bytes ? bytes : 1);
	REQUIRE(exact);
	memcpy(exact, data, bytes);
	free(data);
	fprintf(stderr, "%s\n", path); /* the last one, after a crash */
	(void)LLVMFuzzerTestOneInput(exact, bytes);
	free(exact);
}

int
main(int argc, char **argv)
{
	int i;

	REQUIRE(argc > 1);
	for (i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%d inputs\n", argc - 1);
	return 0;
}
