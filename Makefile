# SpMLA without Bazel. BUILD.bazel builds the same objects of the same sources.
#
#	make                            libspmla.a and libspmla.so, below BUILD
#	make check                      a program with each of them runs a step
#	make install PREFIX=/usr/local  headers, libraries, spmla.pc, CMake's file
#	make docs                       HTML and man pages, by Doxygen
#	make clean
#
# Kernels for CUDA are in both where NVCC is found: CUDA=0 leaves them out,
# CUDA=1 insists. The same goes for HIP, and HIP_CLANG, compilers of which an
# architecture takes the first that knows it; and for LEVEL_ZERO, and
# LEVEL_ZERO_TOOLS, a clang and the llvm-spirv of its version. CFLAGS come before
# what the library cannot do without.

BUILD = out/make
PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
DESTDIR =

CFLAGS ?= -O2
INSTALL = install
ifndef NVCC
NVCC := $(firstword $(wildcard /usr/local/cuda/bin/nvcc) \
	$(shell command -v nvcc))
endif
CUDA = $(if $(NVCC),1,0)
ifndef HIP_CLANG
HIP_CLANG := $(wildcard /opt/rocm/llvm/bin/clang) $(foreach clang, \
	clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang, \
	$(shell command -v $(clang)))
endif
HIP = $(if $(strip $(HIP_CLANG)),1,0)
ifndef LEVEL_ZERO_TOOLS
found = $(shell command -v $1)
LEVEL_ZERO_TOOLS := $(wordlist 1,2,$(foreach n,22 21 20 19 18 17 16 15, \
	$(if $(and $(call found,clang-$n),$(call found,llvm-spirv-$n)), \
	$(call found,clang-$n) $(call found,llvm-spirv-$n))))
endif
LEVEL_ZERO = $(if $(strip $(LEVEL_ZERO_TOOLS)),1,0)

root := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

# SPMLA_VERSION_MAJOR and so on: the one place that says the version. Below 1.0
# a minor version may change the interface.
number = $(shell sed -n 's/^.define SPMLA_VERSION_$1 //p' $(root)/lib/spmla.h)
version := $(call number,MAJOR).$(call number,MINOR).$(call number,PATCH)
soversion := $(call number,MAJOR).$(call number,MINOR)

patterns = lib/*.c lib/*/*.c platform/cpu/*/*.c platform/cuda/*.c \
	platform/gpu/*.c platform/gpu/*/*.c platform/hip/*.c \
	platform/level_zero/*.c
sources := $(filter-out platform/gpu/%_kernels.c, $(sort \
	$(patsubst $(root)/%,%,$(wildcard $(patterns:%=$(root)/%)))))
headers := $(wildcard $(root)/lib/*.h $(root)/platform/*/spmla_*.h)
op_headers := $(wildcard $(root)/lib/ops/*.h)

# "spmla/..." is made of six folders.
include = $(BUILD)/include
includes = -I$(include)/lib -I$(include)/cpu -I$(include)/cuda \
	-I$(include)/hip -I$(include)/level_zero -I$(include)/platform
flags = $(CPPFLAGS) $(CFLAGS) -std=c11 -fPIC -ffp-contract=off \
	-fno-fast-math -Wall -Wextra -Wpedantic -Wconversion -Wshadow \
	-Wmissing-prototypes $(includes)

objects = $(sources:%.c=$(BUILD)/%.o)
blobs = $(BUILD)/spmla_cuda_blob.o $(BUILD)/spmla_hip_blob.o \
	$(BUILD)/spmla_level_zero_blob.o
compilers_cuda = $(if $(filter 0,$(CUDA)),,$(or $(NVCC), \
	$(error CUDA=$(CUDA), but no nvcc: name it by NVCC=)))
compilers_hip = $(if $(filter 0,$(HIP)),,$(or $(strip $(HIP_CLANG)), \
	$(error HIP=$(HIP), but no clang: name it by HIP_CLANG=)))
compilers_level_zero = $(if $(filter 0,$(LEVEL_ZERO)),,$(or \
	$(strip $(LEVEL_ZERO_TOOLS)),$(error LEVEL_ZERO=$(LEVEL_ZERO), but no \
	clang with its llvm-spirv: name them by LEVEL_ZERO_TOOLS=)))
archive = $(BUILD)/libspmla.a
shared = $(BUILD)/libspmla.so.$(version)
soname = libspmla.so.$(soversion)
made = $(BUILD)/spmla.pc $(BUILD)/SpMLAConfig.cmake \
	$(BUILD)/SpMLAConfigVersion.cmake

all: $(archive) $(shared)

# With these, other ones than the last time build anew what they change.
stale = echo '$1' | cmp -s - $@ || echo '$1' >$@

$(BUILD)/flags: always
	@mkdir -p $(@D)
	@$(call stale,$(CC) $(flags) $(LDFLAGS))

$(blobs:$(BUILD)/spmla_%_blob.o=$(BUILD)/compilers_%): $(BUILD)/compilers_%: always
	@mkdir -p $(@D)
	@$(call stale,$(compilers_$*))

$(BUILD)/prefix: always
	@mkdir -p $(@D)
	@$(call stale,$(version) $(PREFIX) $(LIBDIR) $(INCLUDEDIR))

$(include)/.linked:
	@mkdir -p $(include)/lib $(include)/cpu $(include)/cuda \
		$(include)/hip $(include)/level_zero $(include)/platform/spmla
	@ln -sfn $(root)/lib $(include)/lib/spmla
	@ln -sfn $(root)/platform/cpu $(include)/cpu/spmla
	@ln -sfn $(root)/platform/cuda $(include)/cuda/spmla
	@ln -sfn $(root)/platform/hip $(include)/hip/spmla
	@ln -sfn $(root)/platform/level_zero $(include)/level_zero/spmla
	@ln -sfn $(root)/platform $(include)/platform/spmla/platform
	@touch $@

$(objects): $(BUILD)/%.o: $(root)/%.c $(BUILD)/flags | $(include)/.linked
	@mkdir -p $(@D)
	$(CC) $(flags) -MMD -MP -c $< -o $@

-include $(objects:.o=.d)

kernels = $(root)/platform/gpu/all_kernels.c
$(blobs): $(BUILD)/spmla_%_blob.o: $(root)/platform/%/blob.sh \
		$(BUILD)/compilers_% $(kernels) \
		$(wildcard $(root)/platform/gpu/*.* $(root)/platform/gpu/*/*.h \
		$(root)/lib/*.h $(root)/lib/internal/*.h) | $(include)/.linked
	sh $< $(CC) "$(compilers_$*)" $(kernels) $@ $(includes)

$(archive): $(objects) $(blobs)
	rm -f $@
	$(AR) cqs $@ $^

$(shared): $(objects) $(blobs) $(root)/platform/make/exports.map
	$(CC) -shared -Wl,-soname,$(soname) $(CFLAGS) $(LDFLAGS) -o $@ \
		-Wl,--version-script=$(root)/platform/make/exports.map \
		-Wl,-Bsymbolic-functions -Wl,-z,defs -Wl,-z,relro -Wl,-z,now \
		-Wl,-z,noexecstack $(objects) $(blobs) -Wl,--as-needed -ldl -lm
	ln -sf $(@F) $(BUILD)/$(soname)
	ln -sf $(@F) $(BUILD)/libspmla.so

$(made): $(BUILD)/%: $(root)/platform/make/%.in $(BUILD)/prefix
	sed -e 's|@VERSION@|$(version)|' -e 's|@SOVERSION@|$(soversion)|' \
		-e 's|@PREFIX@|$(PREFIX)|' \
		-e 's|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%)|' \
		-e "s|@FROM_LIBDIR@|$$(realpath -sm \
			--relative-to=$(LIBDIR) $(INCLUDEDIR))|" $< >$@

install: all $(made)
	$(INSTALL) -d $(DESTDIR)$(INCLUDEDIR)/spmla/ops \
		$(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/cmake/SpMLA
	$(INSTALL) -m 644 $(headers) $(DESTDIR)$(INCLUDEDIR)/spmla
	$(INSTALL) -m 644 $(op_headers) $(DESTDIR)$(INCLUDEDIR)/spmla/ops
	$(INSTALL) -m 644 $(archive) $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(shared) $(DESTDIR)$(LIBDIR)
	ln -sf $(notdir $(shared)) $(DESTDIR)$(LIBDIR)/$(soname)
	ln -sf $(notdir $(shared)) $(DESTDIR)$(LIBDIR)/libspmla.so
	$(INSTALL) -m 644 $(BUILD)/spmla.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(INSTALL) -m 644 $(filter %.cmake,$(made)) \
		$(DESTDIR)$(LIBDIR)/cmake/SpMLA

smoke = $(CC) $(CFLAGS) -std=c11 $(includes) $(root)/examples/consumer/main.c \
	$(LDFLAGS)

check: all
	$(smoke) $(archive) -lm -o $(BUILD)/check_static
	$(BUILD)/check_static
	$(smoke) -L$(BUILD) -lspmla -lm -o $(BUILD)/check_shared
	LD_LIBRARY_PATH=$(BUILD) $(BUILD)/check_shared

docs:
	sh $(root)/docs/api/build.sh $(BUILD)/docs

clean:
	rm -rf $(BUILD)

.DELETE_ON_ERROR:
.PHONY: all install check docs clean always
