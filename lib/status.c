/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and texts of errors, and the sticky status of the device. No stdio: a
 * line is built in the caller's buffer.
 */
#include "spmla/internal/backend.h"

uint32_t
spmla_version(void)
{
	return SPMLA_VERSION;
}

#define TEXT(x) #x
#define VERSION_TEXT(major, minor, patch) \
	TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *
spmla_version_string(void)
{
	return VERSION_TEXT(SPMLA_VERSION_MAJOR, SPMLA_VERSION_MINOR,
			    SPMLA_VERSION_PATCH);
}

const char *
spmla_status_name(spmla_status status)
{
	switch (status) {
	case SPMLA_OK:
		return "SPMLA_OK";
	case SPMLA_E_NULL:
		return "SPMLA_E_NULL";
	case SPMLA_E_STRUCT_SIZE:
		return "SPMLA_E_STRUCT_SIZE";
	case SPMLA_E_RANGE:
		return "SPMLA_E_RANGE";
	case SPMLA_E_OVERFLOW:
		return "SPMLA_E_OVERFLOW";
	case SPMLA_E_REGION:
		return "SPMLA_E_REGION";
	case SPMLA_E_OVERLAP:
		return "SPMLA_E_OVERLAP";
	case SPMLA_E_UNSUPPORTED:
		return "SPMLA_E_UNSUPPORTED";
	case SPMLA_E_STATE:
		return "SPMLA_E_STATE";
	case SPMLA_E_BUSY:
		return "SPMLA_E_BUSY";
	case SPMLA_E_RING_FULL:
		return "SPMLA_E_RING_FULL";
	case SPMLA_E_TICKET:
		return "SPMLA_E_TICKET";
	case SPMLA_E_RECORD:
		return "SPMLA_E_RECORD";
	case SPMLA_E_CAPTURE:
		return "SPMLA_E_CAPTURE";
	case SPMLA_E_SPACE:
		return "SPMLA_E_SPACE";
	case SPMLA_E_NO_DRIVER:
		return "SPMLA_E_NO_DRIVER";
	case SPMLA_E_DRIVER_OLD:
		return "SPMLA_E_DRIVER_OLD";
	case SPMLA_E_NO_BLOB:
		return "SPMLA_E_NO_BLOB";
	case SPMLA_E_DEVICE:
		return "SPMLA_E_DEVICE";
	case SPMLA_STATUS_FORCE_32:
		break;
	}
	return "SPMLA_E_UNKNOWN";
}

const char *
spmla_fault_name(uint32_t fault)
{
	static const char *const names[] = {
		"NONE",   "TICKET_MISSING", "TOO_LARGE", "ROW",
		"LENGTH", "PAGE",           "SLOT",      "LOGITS",
		"INDEX",  "POSITION",       "TIMEOUT",
	};

	return fault < SPMLA_I_COUNT(names) ? names[fault] : "UNKNOWN";
}

const char *
spmla_memory_name(uint32_t memory)
{
	static const char *const names[] = {"HOST", "PINNED", "DEVICE",
					    "CACHE"};

	return memory < SPMLA_I_COUNT(names) ? names[memory] : "UNKNOWN";
}

const char *
spmla_life_name(uint32_t life)
{
	static const char *const names[] = {"CONTEXT", "STEP", "INDEX",
					    "ATTEND", "OUTPUT"};

	return life < SPMLA_I_COUNT(names) ? names[life] : "UNKNOWN";
}

/* A text that grows inside a buffer and keeps counting past its end. */
typedef struct line {
	char *text;
	uint32_t capacity;
	uint32_t length;
} line;

static void
put_text(line *l, const char *s)
{
	for (; *s; s++) {
		if (l->length + 1 < l->capacity)
			l->text[l->length] = *s;
		l->length++;
	}
}

static void
put_number(line *l, uint64_t n, uint32_t base)
{
	static const char digits[] = "0123456789abcdef";
	char reversed[24], text[24];
	uint32_t i = 0, j = 0;

	do {
		reversed[i++] = digits[n % base];
		n /= base;
	} while (n);
	while (i)
		text[j++] = reversed[--i];
	text[j] = 0;
	put_text(l, text);
}

/* "0, 1 or 2": the values of a ONE_OF or EITHER. */
static void
put_values(line *l, const spmla_diag *d)
{
	const uint32_t bits = d->want_rule == SPMLA_WANT_ONE_OF ? 1 : 16;
	uint64_t left = d->want;
	uint32_t i, first = 1;

	for (i = 0; left; i++, left >>= bits) {
		if (bits == 1 && !(left & 1))
			continue;
		if (!first)
			put_text(l, left >> bits ? ", " : " or ");
		put_number(l, bits == 1 ? i : left & 0xffff, 10);
		first = 0;
	}
}

static void
put_want(line *l, const spmla_diag *d)
{
	static const char *const words[] = {
		"",
		", want ",
		", want at least ",
		", want at most ",
		", want a multiple of ",
	};

	switch ((spmla_want)d->want_rule) {
	case SPMLA_WANT_NOTHING:
		break;
	case SPMLA_WANT_NOT_NULL:
		put_text(l, ": got NULL, want a pointer");
		return;
	case SPMLA_WANT_FINITE:
		put_text(l, ": got bits 0x");
		put_number(l, d->got, 16);
		put_text(l, ", want a finite value above 0");
		return;
	case SPMLA_WANT_UNIQUE:
		put_text(l, ": got ");
		put_number(l, d->got, 10);
		put_text(l, " again, want it once");
		return;
	case SPMLA_WANT_ONE_OF:
	case SPMLA_WANT_EITHER:
		put_text(l, ": got ");
		put_number(l, d->got, 10);
		put_text(l, ", want ");
		put_values(l, d);
		return;
	default:
		if (d->want_rule >= SPMLA_I_COUNT(words))
			break;
		put_text(l, ": got ");
		put_number(l, d->got, 10);
		put_text(l, words[d->want_rule]);
		put_number(l, d->want, 10);
	}
}

uint32_t
spmla_diag_text(const spmla_diag *diag, char *text, uint32_t capacity)
{
	line l = {text, text ? capacity : 0, 0};

	if (!diag) {
		put_text(&l, "no diag");
	} else {
		put_text(&l, spmla_status_name((spmla_status)diag->status));
		if (diag->field) {
			put_text(&l, ": ");
			put_text(&l, diag->field);
			if (diag->index != SPMLA_NO_INDEX) {
				put_text(&l, "[");
				put_number(&l, diag->index, 10);
				put_text(&l, "]");
			}
			put_want(&l, diag);
		}
	}
	if (l.capacity > 0)
		l.text[l.length < l.capacity ? l.length : l.capacity - 1] = 0;
	return l.length;
}

spmla_status
spmla_status_read(const spmla_ctx *ctx, spmla_device_status *status)
{
	const spmla_i_device_status *d;
	uint64_t key, step;
	uint32_t count;

	if (!spmla_i_lives(ctx) || !status)
		return SPMLA_E_NULL;
	if (status->struct_bytes != sizeof *status)
		return SPMLA_E_STRUCT_SIZE;
	if (ctx->backend->readable && !ctx->backend->readable(ctx))
		return SPMLA_E_BUSY;
	d = ctx->buf[SPMLA_BUF_DEVICE_STATUS];
	/* A report is written before its count, and a clear zeroes the count
	 * before the report. If the count is there but no key, a clear came
	 * between. If the key changes, another step reported after a clear. */
	do {
		count = spmla_i_load_u32(&d->count);
		key = count ? spmla_i_load_u64(&d->key) : 0;
		step = key ? spmla_i_load_u64(&d->step) : 0;
	} while (key && spmla_i_load_u64(&d->key) != key);
	status->count = key ? count : 0;
	status->fault = (uint32_t)key;
	status->row = (uint32_t)(key >> 32);
	status->step = step;
	return SPMLA_OK;
}

spmla_status
spmla_status_clear(spmla_ctx *ctx)
{
	spmla_i_device_status *d;
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	/* The device's part first, because it may fail. Nothing reports in
	 * between: the caller has drained the stream. */
	s = ctx->backend->status_clear(ctx);
	if (s != SPMLA_OK)
		return s;
	d = ctx->buf[SPMLA_BUF_DEVICE_STATUS];
	spmla_i_store_u32(&d->count, 0);
	spmla_i_store_u64(&d->key, 0);
	spmla_i_store_u64(&d->step, 0);
	d->serial = 0;
	return SPMLA_OK;
}
