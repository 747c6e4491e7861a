/* SPDX-License-Identifier: Apache-2.0
 *
 * See json.h. The one idea: a document of n bytes has at most n nodes and n
 * bytes of strings, so both are allocated once and can never overflow.
 */
#include "tests/harness/json.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
	json_doc *doc;
	const char *at;
	const char *begin;
	const char *end;
	char *out;
} reader;

static int
fail(reader *r, const char *error)
{
	if (!r->doc->error) {
		r->doc->error = error;
		r->doc->error_at = (size_t)(r->at - r->begin);
	}
	return 0;
}

static void
skip_space(reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' ||
				  *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

/* Takes one character if it is the next. */
static int
take(reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return 0;
	r->at++;
	return 1;
}

static int
take_digits(reader *r)
{
	const char *from = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return r->at > from;
}

/* Checks the grammar, which strtod does not: it would take "inf", "0x1" or
 * "+1". */
static int
read_number(reader *r, json_node *node)
{
	const char *from = r->at;
	char digits[64];
	size_t n;

	(void)take(r, '-');
	if (!take(r, '0') && !take_digits(r))
		return fail(r, "not a number");
	if (take(r, '.') && !take_digits(r))
		return fail(r, "no digit after the point");
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			(void)take(r, '-');
		if (!take_digits(r))
			return fail(r, "no digit in the exponent");
	}
	n = (size_t)(r->at - from);
	if (n >= sizeof digits)
		return fail(r, "a number of more than 63 characters");
	memcpy(digits, from, n);
	digits[n] = 0;
	node->type = JSON_NUMBER;
	node->number = strtod(digits, NULL);
	return 1;
}

static int
read_hex4(reader *r, uint32_t *value)
{
	uint32_t i;

	*value = 0;
	for (i = 0; i < 4; i++) {
		const char c = r->at < r->end ? *r->at : 0;

		if (c >= '0' && c <= '9')
			*value = *value * 16 + (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value * 16 + (uint32_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			*value = *value * 16 + (uint32_t)(c - 'A' + 10);
		else
			return fail(r, "not four hexadecimal digits");
		r->at++;
	}
	return 1;
}

/* UTF-8 of one code point: at most 4 bytes of 6 or 12 of text. */
static void
put_utf8(reader *r, uint32_t c)
{
	if (c < 0x80) {
		*r->out++ = (char)c;
		return;
	}
	if (c < 0x800) {
		*r->out++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*r->out++ = (char)(0xe0 | c >> 12);
		} else {
			*r->out++ = (char)(0xf0 | c >> 18);
			*r->out++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*r->out++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*r->out++ = (char)(0x80 | (c & 0x3f));
}

static int
read_unicode(reader *r)
{
	uint32_t c, low;

	if (!read_hex4(r, &c))
		return 0;
	if (c >= 0xd800 && c < 0xdc00) {
		if (!take(r, '\\') || !take(r, 'u') || !read_hex4(r, &low) ||
		    low < 0xdc00 || low > 0xdfff)
			return fail(r, "half a surrogate pair");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return fail(r, "half a surrogate pair");
	}
	if (c == 0)
		return fail(r, "a 0 inside a string");
	put_utf8(r, c);
	return 1;
}

static int
read_escape(reader *r)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *which;

	if (take(r, 'u'))
		return read_unicode(r);
	if (r->at == r->end || *r->at == 0)
		return fail(r, "an unknown escape");
	which = strchr(from, *r->at);
	if (!which)
		return fail(r, "an unknown escape");
	r->at++;
	*r->out++ = to[which - from];
	return 1;
}

/* Past the opening quote. */
static int
read_string(reader *r, const char **text)
{
	*text = r->out;
	while (r->at < r->end && *r->at != '"') {
		const unsigned char c = (unsigned char)*r->at++;

		if (c < 0x20)
			return fail(r, "a control character in a string");
		if (c != '\\')
			*r->out++ = (char)c;
		else if (!read_escape(r))
			return 0;
	}
	if (!take(r, '"'))
		return fail(r, "a string without an end");
	*r->out++ = 0;
	return 1;
}

static int
read_word(reader *r, json_node *node)
{
	static const struct {
		const char *word;
		size_t length;
		json_type type;
		double number;
	} words[] = {{"true", 4, JSON_BOOL, 1},
		     {"false", 5, JSON_BOOL, 0},
		     {"null", 4, JSON_NULL, 0}};
	size_t i;

	for (i = 0; i < sizeof words / sizeof *words; i++) {
		if ((size_t)(r->end - r->at) < words[i].length ||
		    memcmp(r->at, words[i].word, words[i].length) != 0)
			continue;
		r->at += words[i].length;
		node->type = words[i].type;
		node->number = words[i].number;
		return 1;
	}
	return fail(r, "not a value");
}

static int read_value(reader *r, json_node *node, uint32_t depth);

static int
read_members(reader *r, json_node *node, uint32_t depth)
{
	const char close = node->type == JSON_OBJECT ? '}' : ']';
	const json_node **link = &node->first;

	skip_space(r);
	if (take(r, close))
		return 1;
	do {
		json_node *child = &r->doc->nodes[r->doc->node_count++];

		memset(child, 0, sizeof *child);
		skip_space(r);
		if (node->type == JSON_OBJECT) {
			if (!take(r, '"'))
				return fail(r, "no key");
			if (!read_string(r, &child->key))
				return 0;
			skip_space(r);
			if (!take(r, ':'))
				return fail(r, "no colon after a key");
		}
		if (!read_value(r, child, depth))
			return 0;
		*link = child;
		link = &child->next;
		node->count++;
		skip_space(r);
	} while (take(r, ','));
	return take(r, close) ? 1 : fail(r, "no comma and no end");
}

static int
read_value(reader *r, json_node *node, uint32_t depth)
{
	skip_space(r);
	if (r->at == r->end)
		return fail(r, "the text ends early");
	if (*r->at == '{' || *r->at == '[') {
		if (depth == 0)
			return fail(r, "nested too deep");
		node->type = *r->at == '{' ? JSON_OBJECT : JSON_ARRAY;
		r->at++;
		return read_members(r, node, depth - 1);
	}
	if (take(r, '"')) {
		node->type = JSON_STRING;
		return read_string(r, &node->text);
	}
	if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9'))
		return read_number(r, node);
	return read_word(r, node);
}

int
json_parse(json_doc *doc, const char *text, size_t bytes)
{
	reader r = {doc, text, text, text + bytes, NULL};

	memset(doc, 0, sizeof *doc);
	if (bytes == 0)
		return fail(&r, "the text ends early");
	if (bytes > UINT32_MAX - 2)
		return fail(&r, "the text is too long");
	/* A node has at least one byte of its own: a bracket, a digit, a quote.
	 * One more is begun after a trailing comma, and one is the root. A
	 * string is no longer than its text with the quotes. */
	doc->nodes = calloc(bytes + 2, sizeof *doc->nodes);
	doc->text = malloc(bytes + 1);
	r.out = doc->text;
	if (!doc->nodes || !doc->text) {
		(void)fail(&r, "no memory");
	} else {
		doc->node_count = 1;
		if (read_value(&r, &doc->nodes[0], JSON_MAX_DEPTH)) {
			skip_space(&r);
			if (r.at != r.end)
				(void)fail(&r, "something after the value");
		}
	}
	if (doc->error) {
		free(doc->nodes);
		free(doc->text);
		doc->nodes = NULL;
		doc->text = NULL;
		return 0;
	}
	return 1;
}

void
json_free(json_doc *doc)
{
	free(doc->nodes);
	free(doc->text);
	memset(doc, 0, sizeof *doc);
}

const json_node *
json_get(const json_node *object, const char *key)
{
	const json_node *child;

	if (!object || object->type != JSON_OBJECT)
		return NULL;
	for (child = object->first; child; child = child->next)
		if (strcmp(child->key, key) == 0)
			return child;
	return NULL;
}

int
json_int(const json_node *node, int64_t min, int64_t max, int64_t *value)
{
	/* 2^53: beyond it a double is no longer every whole number */
	if (!node || node->type != JSON_NUMBER || node->number < -0x1p53 ||
	    node->number > 0x1p53)
		return 0;
	*value = (int64_t)node->number;
	return (double)*value == node->number && *value >= min && *value <= max;
}

const char *
json_text(const json_node *node)
{
	return node && node->type == JSON_STRING ? node->text : NULL;
}
