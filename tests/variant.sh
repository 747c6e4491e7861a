#!/bin/sh
# variant.sh NAME=VALUE.. PROGRAM SUITE..: suites with these variables. A program
# is linked once for all of them. Bazel knows no skip at run time: if none of
# the suites had anything to test, the last line is SKIPPED, for .ci/run.
env CK_FORK=no "$@" || { [ $? -eq 77 ] && echo SKIPPED; }
