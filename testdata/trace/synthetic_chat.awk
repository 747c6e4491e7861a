# SPDX-License-Identifier: Apache-2.0
#
# Writes synthetic_chat.csv: awk -f synthetic_chat.awk >synthetic_chat.csv
# See README.md. The generator is Park and Miller's (16807, 2^31 - 1), whose
# products fit a double, so that every awk writes the same rows.

function uniform()
{
	state = (state * 16807) % 2147483647
	return state / 2147483647
}

function normal(    r)
{
	r = sqrt(-2 * log(uniform()))
	return r * cos(6.283185307179586 * uniform())
}

function lognormal(median, sigma, most,    x)
{
	x = int(median * exp(sigma * normal()) + 0.5)
	return x < 1 ? 1 : x > most ? most : x
}

BEGIN {
	seed = 20260131
	rows = 400
	state = seed
	at = 0
	print "TIMESTAMP,ContextTokens,GeneratedTokens"
	for (i = 0; i < rows; i++) {
		at += -0.5 * log(uniform())
		prompt = lognormal(800, 0.9, 16384)
		answer = lognormal(40, 1.0, 2048)
		printf "2000-01-01 %02d:%02d:%02d.%07d,%d,%d\n",
			int(at / 3600), int(at / 60) % 60, int(at) % 60,
			int((at - int(at)) * 10000000), prompt, answer
	}
}
