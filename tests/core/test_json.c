/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of test data: what it takes, what it refuses, and that no text,
 * cut or bent anywhere, makes it read or write out of bounds.
 */
#include "tests/harness/json.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

static const char sample[] =
	"{ \"op\" : \"to\\u0070\\n\\\"k\\\"\", \"shape\": [3, -4, 0.5e+2],\n"
	" \"none\": null, \"yes\": true, \"no\": false, \"deep\": [[{}],[]],\n"
	" \"\\ud83d\\ude00\": \"\\u00e9\\u20ac\" }";

/* From memory of exactly that size, so that ASan sees a byte too many. */
static int
parse(json_doc *doc, const char *text, size_t bytes)
{
	char *copy = malloc(bytes ? bytes : 1);
	int ok;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, bytes);
	ok = json_parse(doc, copy, bytes);
	free(copy);
	return ok;
}

START_TEST(a_document_is_read)
{
	const json_node *shape, *n;
	json_doc doc;
	int64_t v;

	ck_assert_int_eq(parse(&doc, sample, sizeof sample - 1), 1);
	ck_assert_str_eq(json_text(json_get(doc.nodes, "op")), "top\n\"k\"");
	shape = json_get(doc.nodes, "shape");
	ck_assert_uint_eq(shape->count, 3);
	n = shape->first;
	ck_assert_int_eq(json_int(n, 0, 10, &v), 1);
	ck_assert_int_eq((int)v, 3);
	n = n->next;
	ck_assert_int_eq(json_int(n, 0, 10, &v), 0);
	ck_assert_int_eq(json_int(n, -10, 10, &v), 1);
	ck_assert_double_eq(n->next->number, 50);
	ck_assert_ptr_null(n->next->next);
	ck_assert_int_eq(json_get(doc.nodes, "none")->type, JSON_NULL);
	ck_assert_double_eq(json_get(doc.nodes, "yes")->number, 1);
	ck_assert_double_eq(json_get(doc.nodes, "no")->number, 0);
	ck_assert_uint_eq(json_get(doc.nodes, "deep")->count, 2);
	ck_assert_str_eq(json_text(json_get(doc.nodes, "\xf0\x9f\x98\x80")),
			 "\xc3\xa9\xe2\x82\xac");
	ck_assert_ptr_null(json_get(doc.nodes, "other"));
	ck_assert_ptr_null(json_get(shape, "op"));
	ck_assert_ptr_null(json_text(shape));
	json_free(&doc);
}
END_TEST

START_TEST(what_is_not_json_is_refused)
{
	static const char *const texts[] = {"",
					    " ",
					    "[",
					    "]",
					    "{",
					    "[1,]",
					    "[1 2]",
					    "{\"a\":}",
					    "{\"a\" 1}",
					    "{a:1}",
					    "{\"a\":1,}",
					    "1 2",
					    "nul",
					    "01",
					    "+1",
					    "1.",
					    ".5",
					    "1e",
					    "-",
					    "inf",
					    "NaN",
					    "0x10",
					    "\"",
					    "\"\\",
					    "\"\\q\"",
					    "\"\\u12\"",
					    "\"\\u0000\"",
					    "\"\\ud800\"",
					    "\"\\udc00\"",
					    "\"a\nb\"",
					    "[,]",
					    "\"\\ud800\\u0041\""};
	json_doc doc;
	size_t i;

	for (i = 0; i < sizeof texts / sizeof *texts; i++) {
		ck_assert_msg(!parse(&doc, texts[i], strlen(texts[i])),
			      "took %s", texts[i]);
		ck_assert_ptr_nonnull(doc.error);
		ck_assert_uint_le(doc.error_at, strlen(texts[i]));
	}
}
END_TEST

START_TEST(depth_is_limited)
{
	char text[2 * JSON_MAX_DEPTH + 2];
	const size_t n = JSON_MAX_DEPTH;
	json_doc doc;

	memset(text, '[', n);
	memset(text + n, ']', n);
	ck_assert_int_eq(parse(&doc, text, 2 * n), 1);
	json_free(&doc);
	memset(text, '[', n + 1);
	memset(text + n + 1, ']', n + 1);
	ck_assert_int_eq(parse(&doc, text, 2 * n + 2), 0);
}
END_TEST

START_TEST(no_cut_or_bent_text_breaks_it)
{
	char text[sizeof sample];
	json_doc doc;
	size_t i;
	int c;

	for (i = 0; i < sizeof sample - 1; i++)
		ck_assert_int_eq(parse(&doc, sample, i), 0);
	for (i = 0; i < sizeof sample - 1; i++)
		for (c = 0; c < 256; c++) {
			memcpy(text, sample, sizeof sample);
			text[i] = (char)c;
			if (parse(&doc, text, sizeof sample - 1))
				json_free(&doc);
		}
	/* the most nodes a byte: each comma begins one */
	memset(text, ',', sizeof text);
	text[0] = '[';
	ck_assert_int_eq(parse(&doc, text, sizeof text), 0);
	for (i = 1; i < sizeof text; i += 2)
		text[i] = '1';
	ck_assert_int_eq(parse(&doc, text, sizeof text), 0);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_document_is_read, 1},
		{what_is_not_json_is_refused, 1},
		{depth_is_limited, 1},
		{no_cut_or_bent_text_breaks_it, 1},
	};
	const theme themes[] = {
		THEME("text", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
