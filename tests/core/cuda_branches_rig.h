/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 context on a driver of tests, a layer of it, and branches for that.
 */
#ifndef TESTS_CORE_CUDA_BRANCHES_RIG_H
#define TESTS_CORE_CUDA_BRANCHES_RIG_H

#include "tests/harness/v4_layer_rig.h"
#include "tests/substitutes/cuda_fake.h"

void v4_branches_open(cuda_fake_rig *r, v4_layer_rig *rig);

/* Nothing of the driver's is left. */
void v4_branches_close(cuda_fake_rig *r, v4_layer_rig *rig);

/* Two streams beside stream 0, which is the layer's, and three events. */
spmla_v4_branches v4_branches_both(void);

#endif
