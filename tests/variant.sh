#!/bin/sh
# variant.sh NAME=VALUE... PROGRAM: a suite once more, on another backend, so
# that its program is compiled once.
exec env CK_FORK=no "$@"
