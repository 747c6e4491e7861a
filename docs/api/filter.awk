# What Doxygen reads in place of a file. Headers: each comment as a comment for
# what follows it, or for what it stands behind; and what spmla.h says once of
# all structs and enums is said of each. Pages: links to headers and to other
# pages as Doxygen names them; other files of the tree are no part of the
# documentation, so links to them are text.
function comment(text) { print "/** " text " */" }

function is_page() { return FILENAME ~ /\.md$/ }

# ---- Pages -------------------------------------------------------------------

function link(text, target,    name) {
	if (target ~ /^https?:/)
		return "[" text "](" target ")"
	sub(/#.*/, "", target)
	name = target
	sub(/.*\//, "", name)
	if (name ~ /\.h$/)
		return "[" text "](@ref " name ")"
	if (target ~ /^(docs\/)?[a-z0-9-]+\.md$/)
		return "[" text "](docs/" name ")"
	return text
}

function links(text,    out, one, cut) {
	gsub(/!\[[^]]*\]\([^)]*\)/, "", text)
	while (match(text, /\[[^]]*\]\([^)]*\)/)) {
		one = substr(text, RSTART + 1, RLENGTH - 2)
		out = out substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		cut = index(one, "](")
		out = out link(substr(one, 1, cut - 1), substr(one, cut + 2))
	}
	return out text
}

is_page() { page = page $0 "\n"; next }
END { if (is_page()) printf "%s", links(page) }

# ---- Headers -----------------------------------------------------------------

NR == 1 { print "/** @file"; next }

# The macro of a guard, and lines that begin a section.
/^#define SPMLA_[A-Z0-9_]*H$/ || /^\/\* -+ .* -+ \*\/$/ {
	print ""
	next
}

# A declaration right behind another one shares its comment.
/^(#define|[a-z]).*SPMLA_|^[a-z].*[ *(]spmla_[a-z0-9_]+[()]/ {
	name = $0
	sub(/^#define /, "", name)
	sub(/^typedef [a-z]+ /, "", name)
	match(name, /(SPMLA|spmla)_[A-Za-z0-9_]+[()]/) ||
		match(name, /SPMLA_[A-Z0-9_]+/)
	name = substr(name, RSTART, RLENGTH)
	sub(/[()]$/, "", name)
	if (!commented && behind != "")
		comment("See " behind ".")
	else
		behind = name
}
/^$|^#(if|el)/ { behind = "" }

/^typedef struct spmla_[a-z0-9_]+_args/ {
	op = $3
	sub(/_args$/, "", op)
	if (!commented)
		comment("The arguments of " op "().")
}
/^#define SPMLA_[A-Z0-9_]+_INIT/ && !commented {
	comment("Its struct_bytes, and zeros.")
}
/^#define SPMLA_[A-Z0-9_]+_MIN_BYTES/ && !commented {
	comment("The least struct_bytes that the library knows.")
}
/^\tuint32_t struct_bytes;$/ {
	print "\tuint32_t struct_bytes; /**< sizeof of this struct */"
	next
}
/^\tuint32_t reserved;$/ {
	print "\tuint32_t reserved; /**< 0 */"
	next
}
/_FORCE_32 = 0x7fffffff$/ {
	print $0 " /**< no value: makes the enum 32 bits wide */"
	next
}
!/^#/ { gsub(/<[a-z]/, "\\\\&") }
!/^#/ { gsub(/ \.\.( |$)/, " \\&hellip; ") }
/^[ \t]*\/\*/ { sub(/\/\*/, "/**"); commented = 1 }
!/^[ \t]*\/\*\*/ && /\/\*/ { sub(/\/\*/, "/**<") }
{ print }
!/^( \*|\t* \*)/ && !/\/\*\*/ { commented = 0 }
