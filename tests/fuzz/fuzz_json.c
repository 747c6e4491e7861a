/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes through the JSON reader; of what it takes, every node is looked at.
 */
#include "tests/fuzz/world.h"
#include "tests/harness/json.h"

/* Walks a value; its nodes lie in the document. Returns how many it has. */
static uint32_t
walk(const json_doc *doc, const json_node *node, uint32_t depth)
{
	const json_node *child;
	uint32_t count = 0, nodes = 1;
	int64_t value;

	REQUIRE(depth <= JSON_MAX_DEPTH);
	REQUIRE(node >= doc->nodes && node < doc->nodes + doc->node_count);
	for (child = node->first; child; child = child->next, count++) {
		REQUIRE((node->type == JSON_OBJECT) == (child->key != NULL));
		if (child->key)
			REQUIRE(json_get(node, child->key) &&
				strlen(child->key) < 4096);
		nodes += walk(doc, child, depth + 1);
	}
	REQUIRE(count == node->count);
	REQUIRE((json_text(node) != NULL) == (node->type == JSON_STRING));
	if (json_text(node))
		REQUIRE(strlen(json_text(node)) < 4096);
	if (json_int(node, -5, INT64_MAX, &value))
		REQUIRE(value >= -5 && (double)value == node->number);
	return nodes;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_doc doc;

	if (json_parse(&doc, (const char *)data, size)) {
		REQUIRE(walk(&doc, &doc.nodes[0], 0) == doc.node_count);
		json_free(&doc);
	} else {
		REQUIRE(doc.error && doc.error_at <= size);
		REQUIRE(!doc.nodes && !doc.text);
	}
	return 0;
}
