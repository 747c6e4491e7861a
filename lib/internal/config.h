/* SPDX-License-Identifier: Apache-2.0
 *
 * A config as the rest of the library sees it: checked, no field left at
 * "default".
 */
#ifndef SPMLA_INTERNAL_CONFIG_H
#define SPMLA_INTERNAL_CONFIG_H

#include "spmla/spmla.h"

/* Checks every field of `in` and writes the resolved config; on an error *out
 * is unspecified. */
spmla_status spmla_i_config_resolve(spmla_config *out, const spmla_config *in,
				    spmla_diag *diag);

/* Checks a device against the ops that the model needs. */
spmla_status spmla_i_device_check(const spmla_device *device, spmla_diag *diag);

#endif
