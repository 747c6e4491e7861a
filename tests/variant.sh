#!/bin/sh
# variant.sh NAME=VALUE.. PROGRAM SUITE..: suites with these variables. A program
# is linked once for all of them.
exec env CK_FORK=no "$@"
