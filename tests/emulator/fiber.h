/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbered fibers, each with a stack of its own, and the caller that switches
 * to them. One runs at a time: the caller goes to a fiber, a fiber may pass to
 * another, and one of them comes back to the caller.
 */
#ifndef TESTS_EMULATOR_FIBER_H
#define TESTS_EMULATOR_FIBER_H

#include <stdint.h>

enum { FIBERS = 8192 };

/* Makes fiber i new: the first switch to it calls `start`. */
void fiber_begin(uint32_t i, void (*start)(void));

/* Switches to fiber i. Returns when it comes back, or a fiber that it passed
 * to. */
void fiber_go(uint32_t i);

/* Switches from fiber i, which runs, back to the caller. */
void fiber_back(uint32_t i);

/* Switches from fiber i, which runs, to another fiber. */
void fiber_pass(uint32_t i, uint32_t to);

/* As fiber_back; fiber i never runs again. */
void fiber_end(uint32_t i);

#endif
