/* SPDX-License-Identifier: Apache-2.0
 *
 * A small JSON reader for test data. It takes any bytes: what is not JSON, is
 * nested deeper than JSON_MAX_DEPTH, or needs more than a node a byte of text
 * is refused with a place and a reason.
 *
 * Strings keep their bytes as UTF-8; \uXXXX is decoded, a lone surrogate is an
 * error, and so is \u0000, so that every string ends at its 0. A key that
 * occurs twice in an object keeps both; json_get finds the first.
 */
#ifndef TESTS_HARNESS_JSON_H
#define TESTS_HARNESS_JSON_H

#include <stddef.h>
#include <stdint.h>

enum { JSON_MAX_DEPTH = 32 };

typedef enum json_type {
	JSON_NULL = 0,
	JSON_BOOL = 1,
	JSON_NUMBER = 2,
	JSON_STRING = 3,
	JSON_ARRAY = 4,
	JSON_OBJECT = 5
} json_type;

typedef struct json_node {
	json_type type;
	uint32_t count;                /* children */
	const char *key;               /* in an object, else NULL */
	const char *text;              /* of a string */
	double number;                 /* of a number; 0 or 1 of a bool */
	const struct json_node *first; /* child */
	const struct json_node *next;  /* sibling */
} json_node;

/* One document. Everything lies in memory that json_free gives back. */
typedef struct json_doc {
	json_node *nodes; /* nodes[0] is the root */
	char *text;       /* the strings */
	uint32_t node_count;
	const char *error; /* static text, NULL if none */
	size_t error_at;   /* byte */
} json_doc;

/* 1, or 0 with doc->error; json_free is due only after 1. */
int json_parse(json_doc *doc, const char *text, size_t bytes);
void json_free(json_doc *doc);

/* The member of an object, or NULL; NULL of NULL is NULL. */
const json_node *json_get(const json_node *object, const char *key);

/* 1 if node is a whole number in [min, max], stored in *value. */
int json_int(const json_node *node, int64_t min, int64_t max, int64_t *value);

/* The text of a string, or NULL. */
const char *json_text(const json_node *node);

#endif
