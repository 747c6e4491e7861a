/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of device.h that is Level Zero: no current device, an immediate list
 * for calls, and a queue for replays.
 */
#ifndef EXAMPLES_DEVICE_LEVEL_ZERO_H
#define EXAMPLES_DEVICE_LEVEL_ZERO_H

#include "examples/device.h"

/* Returns 0, after a line on stderr, where there is no device. */
int level_zero_open(const char *program);
int level_zero_is_open(void);
void level_zero_close(void);

const char *level_zero_name(void);
const spmla_native *level_zero_native(void);
spmla_stream level_zero_list(void);
void *level_zero_shared(uint64_t bytes, uint64_t align);
void *level_zero_own(uint64_t bytes, uint64_t align);
void level_zero_free(void *at);
void level_zero_zero(void *to, uint64_t bytes);
void level_zero_copy(void *to, const void *from, uint64_t bytes);
void level_zero_wait(void);

#endif
