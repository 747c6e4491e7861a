/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers by number, each with a stack of its own, and the one who switches to
 * them: nothing runs but the fiber that it went to, or the one that this passed
 * to, until one comes back.
 */
#ifndef TESTS_EMULATOR_FIBER_H
#define TESTS_EMULATOR_FIBER_H

#include <stdint.h>

enum { FIBERS = 8192 };

/* Makes fiber i new: it begins with `start` when it is gone to. */
void fiber_begin(uint32_t i, void (*start)(void));

/* Goes to fiber i, until that comes back, or one that it passed to. */
void fiber_go(uint32_t i);

/* Comes back from fiber i, which is the one that runs. */
void fiber_back(uint32_t i);

/* Passes from fiber i, which is the one that runs, to another. */
void fiber_pass(uint32_t i, uint32_t to);

/* As fiber_back, from one that is never gone to again. */
void fiber_end(uint32_t i);

#endif
