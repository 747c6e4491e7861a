/* SPDX-License-Identifier: Apache-2.0
 *
 * A program whose static, stack and heap memory the device can read; see
 * cuda_memory.c.
 */
#ifndef TESTS_SUPPORT_CUDA_MEMORY_H
#define TESTS_SUPPORT_CUDA_MEMORY_H

/* The program's stream, made at its start. */
void *cuda_memory_stream(void);

/* Waits for it; the driver's code. */
int cuda_memory_sync(void *stream);

#endif
