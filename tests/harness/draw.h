/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of a call, drawn from a seed or from a fuzzer's bytes, and the
 * arrays that they point to, each exactly as long as the operation's header
 * says. The hard idea: sizes and choices come from one stream of numbers and
 * data from another, so that two draws of one shape differ in data only, and
 * the data of one may be laid into the arrays of the other.
 */
#ifndef TESTS_HARNESS_DRAW_H
#define TESTS_HARNESS_DRAW_H

#include "spmla/spmla_layout.h"
#include "tests/harness/input.h"

typedef enum draw_kind {
	/* Every size is the largest, every choice the first, nothing optional
	 * is left out: what texts of errors are relative to. */
	DRAW_EXAMPLE = 0,
	DRAW_SOUND = 1, /* the operation has nothing to report */
	DRAW_BAD = 2    /* the host takes it; some of the data is bad */
} draw_kind;

/* How two backends' values of an array may differ. */
typedef enum draw_form {
	DRAW_BITS = 0, /* not at all */
	DRAW_BF16 = 1, /* by a bound */
	DRAW_F32 = 2,  /* by a bound */
	DRAW_ANY = 3   /* codes: in what an operation's own suite says */
} draw_form;

typedef enum draw_role {
	DRAW_IN = 0,
	DRAW_OUT = 1,
	DRAW_CHANGED = 2 /* in and out */
} draw_role;

typedef struct draw_array {
	uint8_t *bytes;
	uint64_t count; /* bytes */
	uint8_t *drawn; /* as it was drawn; draw_keep */
	void *block;    /* what is freed */
	draw_role role;
	draw_form form;
	double absolute; /* of the bound: absolute + relative * |x| */
	double relative;
} draw_array;

enum { DRAW_ARRAYS = 32 };

typedef struct draw {
	draw_kind kind;
	uint32_t variant;    /* what draw_variant gives of a seed */
	uint32_t variants;   /* of the operation: its last draw_variant; 1 */
	uint32_t tokens;     /* so many; 0: 4 of an EXAMPLE, else 1 .. 6 */
	uint32_t large;      /* 1: heads and keys for many workers */
	uint32_t same_slots; /* 1: tokens may write the same slot */
	uint32_t most_heads; /* of the plan */
	uint32_t most_index_heads;
	uint64_t shape; /* streams */
	uint64_t data;
	input *in; /* instead of them; NULL: a seed */
	draw_array arrays[DRAW_ARRAYS];
	uint32_t count;
} draw;

/* The array that begins at p. */
draw_array *draw_array_at(draw *d, const void *p);

/* Arrays are as the program allocates them. */
void *draw_alloc(uint64_t bytes);

void draw_seed(draw *d, draw_kind kind, uint64_t shape, uint64_t data);
void draw_bytes_of(draw *d, input *in); /* BAD */
void draw_free(draw *d);

/* ---- Sizes and choices --------------------------------------------------- */

uint32_t draw_size(draw *d, uint32_t most); /* 1 .. most */
uint32_t draw_many(draw *d, uint32_t most, uint32_t large);
uint32_t draw_tokens(draw *d);
uint32_t draw_heads(draw *d);
uint32_t draw_index_heads(draw *d);
uint32_t draw_choice(draw *d, uint32_t n); /* 0 .. n - 1 */
uint32_t draw_there(draw *d);              /* something optional */
int64_t draw_stride(draw *d, uint32_t width);

/* 0 .. n - 1: what the operation has errors of its own for. Every variant is
 * tested, whatever the seed. */
uint32_t draw_variant(draw *d, uint32_t n);

/* A size that bad data may make as large as `most`. */
uint32_t draw_odd(draw *d, uint32_t size, uint32_t most);

/* A number above 0 and at most 1/8; of a fuzzer anything finite. */
float draw_scale(draw *d);

/* Elements of [n][stride] of which a row uses `width`. */
uint64_t draw_strided(uint32_t n, int64_t stride, uint32_t width);

/* Strides of rows of `width` for each token and head, either of them outermost;
 * the tokens' are, of an example. */
typedef struct draw_strides {
	int64_t token;
	int64_t head;
	uint64_t elems; /* in all */
} draw_strides;

draw_strides draw_rows(draw *d, uint32_t tokens, uint32_t heads,
		       uint32_t width);

/* Room for an array, somewhere in the first 16 bytes of a block. */
void *draw_room(draw *d, uint64_t bytes, uint32_t align, draw_role role);

/* ---- Arrays that are read ------------------------------------------------ */

/* [low, high), the bad ones anywhere. */
int32_t *draw_i32(draw *d, uint64_t n, int64_t low, int64_t high);
int64_t *draw_i64(draw *d, uint64_t n, int64_t low, int64_t high);

/* n + 1 numbers, ascending from 0 to `end`; bad ones fall. */
int32_t *draw_starts(draw *d, uint32_t n, uint32_t end);

/* Slots of tokens, each another one, one in eight none (-1). */
int64_t *draw_slots(draw *d, uint32_t tokens, uint64_t slots);

float *draw_f32(draw *d, uint64_t n);     /* [-1, 1) */
uint16_t *draw_bf16(draw *d, uint64_t n); /* the same */
uint8_t *draw_codes(draw *d, uint64_t n); /* e4m3, (-2, 2) */
uint8_t *draw_bytes(draw *d, uint64_t n);
int32_t *draw_ue8m0(draw *d, uint64_t n); /* four a word, 2^-7 .. 1 */

/* The numbers of an array of int32 or f32 as int64 or bf16, in one of its own.
 * Bad ones are also such as int32 does not hold. */
int64_t *draw_as_i64(draw *d, const void *p);
uint16_t *draw_as_bf16(draw *d, const void *p);

/* Rounds an array of f32 to bf16 where it lies, towards zero. */
void draw_round_bf16(draw *d, const void *p);

/* The same, n of them, into an array of a seed. */
void draw_fill_bf16(draw *d, void *to, uint64_t n);
void draw_fill_codes(draw *d, void *to, uint64_t n);
void draw_fill_ue8m0(draw *d, void *to, uint64_t n);

/* A scale that lies on the device, or NULL. */
const float *draw_scale_at(draw *d);

/* [rows][32 cos, 32 sin] */
float *draw_cos_sin(draw *d, uint32_t rows);

spmla_cache draw_cache(draw *d, uint32_t layout);

/* INDEX_FP8 or INDEX_FP8_TILED; an example has the first. */
uint32_t draw_index_layout(draw *d);

/* Gives a cache of e4m3 one or the other encoding; one that is read then has no
 * NaN. */
void draw_encoding(draw *d, spmla_cache *cache, draw_role role);

/* A cache of given size, read or written. */
spmla_cache draw_cache_of(draw *d, uint32_t layout, uint32_t entries,
			  uint32_t pages, draw_role role);

/* A block table, as several ops have it. With cols, every column of a row is
 * written. */
typedef struct draw_table {
	uint32_t rows;
	uint32_t columns;
	uint32_t stride;
	int32_t *pages;
	int32_t *cols; /* or NULL */
} draw_table;

draw_table draw_pages(draw *d, uint32_t rows, uint32_t columns, uint32_t pool);

/* ---- Arrays that are written --------------------------------------------- */

void *draw_out(draw *d, uint64_t n, uint32_t elem_bytes);
uint16_t *draw_out_bf16(draw *d, uint64_t n, double absolute, double relative);
float *draw_out_f32(draw *d, uint64_t n, double absolute, double relative);
spmla_cache draw_cache_out(draw *d, uint32_t layout, uint32_t tokens);

/* Zeros, aligned to 16 bytes, that are zeros again afterwards. */
void *draw_zeros(draw *d, uint64_t n, uint32_t elem_bytes);

/* The array that begins at p is written too, or compared in another form. */
void *draw_changed(draw *d, const void *p);
void draw_compared(draw *d, const void *p, draw_form form, double absolute,
		   double relative);

/* ---- All arrays of a call ------------------------------------------------ */

/* Remembers how they were drawn. */
void draw_keep(draw *d);

/* What is only written becomes `poison`, what is changed as it was drawn. */
void draw_reset(draw *d, uint8_t poison);

/* The data that `from`, of the same shape and kept, was drawn with. */
void draw_take_data(draw *d, const draw *from);

/* Whether all that is only read is as it was drawn. */
uint32_t draw_inputs_are_whole(const draw *d);

/* What is written, one array behind the other. */
uint64_t draw_result_bytes(const draw *d);
void draw_results(const draw *d, uint8_t *to);

/* Whether `got` is within the bounds of `want`, results of this draw; if not,
 * where and what says a text. */
uint32_t draw_close(const draw *d, const uint8_t *got, const uint8_t *want,
		    char *text, uint32_t capacity);

#endif
