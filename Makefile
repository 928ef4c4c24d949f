# make install puts sallyport, its manual pages and its completions below PREFIX.
# DESTDIR is put before every path, for packages. SALLYPORT names a program that is built.

PREFIX ?= /usr/local
DESTDIR ?=
GO ?= go
SALLYPORT ?= dist/sallyport

bin = $(DESTDIR)$(PREFIX)/bin
share = $(DESTDIR)$(PREFIX)/share
man = $(share)/man/man1

.PHONY: build install uninstall

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o dist/sallyport ./cmd/sallyport

ifeq ($(SALLYPORT),dist/sallyport)
install: build
endif
install:
	mkdir -p "$(bin)" "$(man)" "$(share)/bash-completion/completions" \
		"$(share)/zsh/site-functions" "$(share)/fish/vendor_completions.d"
	install -m 755 "$(SALLYPORT)" "$(bin)/sallyport"
	ln -sf sallyport "$(bin)/sallyport-sh"
	"$(SALLYPORT)" help --man >"$(man)/sallyport.1"
	set -e; "$(SALLYPORT)" __complete help '' | sed '1d; /^-/d' | cut -f 1 | while read -r c; do \
		"$(SALLYPORT)" help --man "$$c" >"$(man)/sallyport-$$c.1"; done
	"$(SALLYPORT)" completion bash >"$(share)/bash-completion/completions/sallyport"
	"$(SALLYPORT)" completion zsh >"$(share)/zsh/site-functions/_sallyport"
	"$(SALLYPORT)" completion fish >"$(share)/fish/vendor_completions.d/sallyport.fish"

uninstall:
	rm -f "$(bin)/sallyport" "$(bin)/sallyport-sh" "$(man)/sallyport.1" "$(man)"/sallyport-*.1 \
		"$(share)/bash-completion/completions/sallyport" \
		"$(share)/zsh/site-functions/_sallyport" \
		"$(share)/fish/vendor_completions.d/sallyport.fish"
