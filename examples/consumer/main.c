/* The least that a project which links SpMLA can do with it. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "spmla/spmla.h"

int
main(void)
{
	printf("spmla %" PRIu32 "\n", spmla_version());
	return 0;
}
