// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// inert are programs that run none of their words, whatever these are. What options of them run is
// in scriptOptions.
var inert = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(inertNames) {
		all[name] = true
	}
	return all
})

// inertNames are builtins, the core utilities, and other programs that are told what to read, to
// write, to install, to search or to show. Tasks of builders have names of their own.
const inertNames = `
	! . : [ [[ ]] alias bg bind break builtin caller cd compgen complete compopt continue declare dirs disown echo enable
	eval exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd print printf pushd pwd
	read readarray readonly return set setopt shift shopt source suspend test times trap true type typeset ulimit umask
	unalias unset unsetopt wait whence where which zmodload autoload bindkey compdef vared zstyle unhash rehash integer float

	arch b2sum base32 base64 basename basenc cat chattr chcon chgrp chmod chown cksum cmp col colrm column comm cp csplit
	cut date dd df diff diff3 dir dircolors dirname du egrep expand expr factor fgrep file fmt fold getconf getent getfacl
	grep groups gzip gunzip head hexdump hostid hostname hostnamectl iconv id infocmp install ipcs join last link ln locale
	localectl locate logger logname look ls lsattr lsblk lscpu lsof md5sum mkdir mkfifo mknod mktemp more mv nl nproc numfmt od
	paste patch pathchk pgrep pidof pinky pkill killall pr printenv ps ptx readlink realpath rename rev rm rmdir sdiff seq
	setfacl sha1sum sha224sum sha256sum sha384sum sha512sum shasum shred shuf sleep sort split stat strings stty sum sync
	tac tail tee touch tr tree truncate tsort tty tput uname unexpand uniq unlink uptime users vdir w wc whereis who whoami
	xxd yes zcat zgrep zip unzip unzipinfo zipinfo bzip2 bunzip2 bzcat xz unxz xzcat lz4 zstd unzstd zstdcat brotli 7z 7za
	cpio ar ranlib nm objdump objcopy readelf size strip ldd addr2line cpp c++filt tar gtar bsdtar rsync scp grm gcp gmv gls

	ag ack rg ripgrep bat batcat eza exa delta fzf jq yq gron xmllint xsltproc xmlstarlet csvcut csvgrep csvlook mlr
	dasel hexyl tokei cloc scc difft colordiff wdiff less man apropos whatis info tldr pygmentize highlight pandoc
	curl wget http https aria2c ping ping6 traceroute tracepath mtr dig host nslookup whois ip ifconfig netstat ss route arp
	nmap nc ncat netcat openssl gpg gpg2 gpgv ssh-keygen ssh-add ssh-keyscan ssh-copy-id age age-keygen minisign cosign
	top htop btop free vmstat iostat mpstat sar dmesg journalctl systemctl service loginctl timedatectl uptime pstree pmap
	mount umount findmnt blkid fdisk parted mkfs swapon swapoff losetup sysctl lsmod modinfo modprobe lspci lsusb
	useradd userdel usermod groupadd groupdel passwd chsh chfn adduser deluser visudo

	apt apt-get apt-cache apt-mark aptitude apt-key add-apt-repository dpkg dpkg-query dpkg-deb snap dnf yum rpm zypper pacman
	apk brew port emerge xbps-install pkg winget choco scoop pip pip2 pip3 easy_install pipdeptree virtualenv twine conda-build
	composer luarocks cpan cpanm cabal stack opam dune mix rebar3 nuget dotnet swift pod carthage flutter dart
	gofmt goimports golangci-lint staticcheck gopls govulncheck dlv protoc buf rustc rustfmt rustdoc clippy-driver
	gcc g++ cc c++ clang clang++ clang-format clang-tidy ld lld gold mold as nasm yasm ccache distcc javac java jar kotlinc
	scalac tsc eslint prettier stylelint biome rome jest vitest mocha ava karma cypress playwright webpack rollup vite esbuild
	swc parcel next nuxt astro svelte-kit ng vue turbo nx lerna gulp grunt npm-run-all run-s run-p
	pytest py.test unittest nosetests coverage black ruff isort flake8 pylint mypy pyright bandit autopep8 yapf pre-commit
	sphinx-build mkdocs jupyter ipython rspec rubocop minitest phpunit phpstan psalm ctags cscope doxygen shellcheck shfmt
	hadolint yamllint markdownlint vale codespell typos actionlint
	make gmake bmake remake cmake ctest ninja meson scons ant mvn gradle gradlew bazel buck pants just task mage rake invoke inv
	fab nox tox doit configure automake autoconf autoreconf aclocal libtool pkg-config msgfmt gettext
	terraform tofu pulumi packer helm helmfile kustomize kubectx kubens k9s kind minikube eksctl aws gcloud gsutil az doctl
	flyctl vercel netlify wrangler firebase ansible-vault ansible-galaxy ansible-lint vault consul nomad trivy grype syft
	git-lfs hg svn cvs fossil tig lazygit hub tea
	mysqldump pg_dump pg_restore pg_isready createdb dropdb redis-cli
	ffmpeg ffprobe convert magick identify mogrify montage exiftool optipng pngquant jpegoptim svgo inkscape gs pdftotext
	pdfinfo qpdf wkhtmltopdf latex pdflatex xelatex lualatex bibtex dot
	clear reset figlet cowsay cal bc units xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send code open xdg-open say
	vim vi nvim ex view gvim nano emacs pico ed kill32 crontab at batch atq atrm`

// followed are programs whose words are read to their end elsewhere.
var followed = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("busybox toybox xargs gxargs watch parallel git socat sg su script capsh find bfs gfind fd fdfind sftp nix-shell jobs") {
		all[name] = true
	}
	return all
})

// gitQuiet are the commands of git that run none of their operands.
const gitQuiet = ` add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore
	check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph
	commit-tree config count-objects credential describe diagnose diff diff-files diff-index diff-tree difftool fast-export
	fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep gui
	hash-object help index-pack init instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo maintenance merge
	merge-base merge-file merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id
	prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset restore
	rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index show-ref sparse-checkout stage
	stash status stripspace submodule switch symbolic-ref tag unpack-objects update-index update-ref var verify-commit
	verify-pack verify-tag version whatchanged worktree write-tree `

// open returns from which word on a program may run its words; 0 is none.
func open(args []string) int {
	name := path.Base(args[0])
	p, runs := programs()[name]
	in, interprets := language(name)
	f, many := families()[name]
	switch {
	case name == "git":
		if starts := (&reader{}).starts(place{scope: new(scope)}, args, gitOptions); len(starts) > 0 && !strings.Contains(gitQuiet, " "+args[starts[0]]+" ") && !strings.Contains(gitQuiet, "\n\t"+args[starts[0]]+" ") {
			return starts[0] + 1
		}
		return 0
	case many:
		if f.open(args) {
			return 1
		}
		return 0
	case runs && !p.loose, followed()[name]:
		return 0
	case runs:
		return 1
	case shells()[name]:
		return shellArguments(args)
	case interprets && in.first:
		return 0
	case inert()[name]:
		return 0
	case interprets:
		t := in.tell(args)
		return min(t.after, len(args))
	case strings.HasPrefix(name, "git-"), strings.HasPrefix(name, "x86_64-"), strings.HasPrefix(name, "aarch64-"):
		return 0
	case inert()[strings.TrimRight(name, "-0123456789.")]:
		return 0
	}
	return 1
}

// shellArguments returns where the arguments of the script of a shell begin, if that is a file.
func shellArguments(args []string) int {
	for i := 1; i < len(args); i++ {
		w := args[i]
		switch {
		case w == "--":
			return i + 2
		case w == Rest, w == "-c", len(w) > 1 && (w[0] == '-' || w[0] == '+') && w[1] != '-' && strings.ContainsAny(w, "cs"):
			return 0
		case len(w) > 1 && (w[0] == '-' || w[0] == '+'):
			if w[1] != '-' && strings.ContainsAny(w, "oO") || w == "--rcfile" || w == "--init-file" {
				i++
			}
		default:
			return i + 1
		}
	}
	return 0
}

// Perhaps returns the commands that programs may run which are not known: those that begin at any
// of their later words, those of later words that are scripts, and those of texts in quotes in
// code of other languages. A caller with rules that forbid or prompt asks where one begins so.
// They are Maybe, and may be many.
func (r *Reading) Perhaps() []Command {
	p := perhaps{seen: map[string]bool{}, bytes: maxBytes}
	for _, u := range r.Uses {
		p.words(u, 0)
	}
	for _, c := range r.codes {
		p.language(Command{Line: c.at.line, Column: c.at.column, Through: c.by}, c.by, c.text)
	}
	return p.all
}

// A perhaps collects commands.
type perhaps struct {
	all   []Command
	seen  map[string]bool
	bytes int // of scripts that may still be read
}

// deepest is how many scripts in words in scripts are read.
const deepest = 3

// words adds what the words of a command may be.
func (p *perhaps) words(c Command, depth int) {
	if c.defined || len(c.Args) == 0 {
		return
	}
	from := open(c.Args)
	if from == 0 {
		return
	}
	c.Maybe, c.Form = true, false
	if c.Through == "" {
		c.Through = path.Base(c.Args[0])
	}
	for i := from; i < min(len(c.Args), from+maxStarts); i++ {
		w := c.Args[i]
		if named(w) {
			p.add(c, c.Args[i:])
		}
		p.script(c, w, depth)
		if _, value, ok := strings.Cut(w, "="); ok {
			if named(value) {
				p.add(c, append([]string{value}, c.Args[i+1:]...))
			}
			p.script(c, value, depth)
		}
	}
}

// named reports whether a word may be the name of a program: no option, and no path of other files.
func named(w string) bool {
	if w == "" || w[0] == '-' || w[0] == '+' || dynamic(w) || strings.ContainsAny(w, " \t\n") {
		return false
	}
	dir, _ := path.Split(w)
	return dir == "" || path.IsAbs(dir) && slices.Contains([]string{"bin", "sbin", "libexec"}, path.Base(dir))
}

// add adds a command.
func (p *perhaps) add(c Command, args []string) {
	key := strings.Join(args, "\x00")
	if p.seen[key] || len(p.all) >= maxUses {
		return
	}
	p.seen[key] = true
	c.Args = args
	p.all = append(p.all, c)
}

// script adds the commands of a word that may be a script.
func (p *perhaps) script(c Command, text string, depth int) {
	if depth >= deepest || !strings.ContainsAny(text, " \t\n;|&$`!(<'\"") {
		return
	}
	if _, after, ok := strings.Cut(text, "!"); ok { // of editors, databases, debuggers
		p.read(c, after, depth)
	}
	p.read(c, text, depth)
}

// read adds the commands of a script.
func (p *perhaps) read(c Command, text string, depth int) {
	if p.bytes -= len(text); p.bytes < 0 || strings.TrimSpace(text) == "" {
		return
	}
	for i, u := range Read([]string{"sh", "-c", text}).Uses {
		if i == 0 {
			continue
		}
		u.Line, u.Column, u.Through, u.Maybe = c.Line, c.Column, c.Through, true
		p.add(u, u.Args)
		p.words(u, depth+1)
	}
}

// texts finds what stands in quotes in code, also as q(...), %w[...] and the like.
var texts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)\"((?:[^\"\\\\]|\\\\.)*)\"|'((?:[^'\\\\]|\\\\.)*)'|`((?:[^`\\\\]|\\\\.)*)`" +
		`|(?:\bq[qxw]?|%[qQxwWi])\s*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\{([^{}]*)\}|/([^/]*)/|\|([^|]*)\|)`)
})

// between may stand between the words of one command in code.
var between = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\s,=>\]\[()]*$`) })

// wordy are programs whose code is commands of words, as in a shell.
var wordy = []string{"make", "gmake", "ed", "expect", "tclsh", "wish", "gnuplot", "m4", "dc"}

// maxTexts is how many texts of one code are read.
const maxTexts = 256

// language adds the commands in texts of code, each by itself and those behind each other as words.
func (p *perhaps) language(c Command, by, text string) {
	c.Maybe = true
	if in, _ := language(by); in.first && strings.HasSuffix(strings.TrimRight(by, "0123456789."), "sed") {
		p.sed(c, text)
		return
	}
	if in, ok := language(by); !ok || in.settings || slices.Contains(wordy, by) { // their code is commands with words
		for _, line := range strings.Split(text, "\n") {
			p.script(c, line+" ", 0)
			p.tails(c, strings.Fields(line))
		}
	}
	var words []string
	end := 0
	for _, m := range texts().FindAllStringSubmatchIndex(text, maxTexts) {
		if !between().MatchString(text[end:m[0]]) {
			p.tails(c, words)
			words = nil
		}
		end = m[1]
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				word := text[m[g]:m[g+1]]
				p.read(c, word, 0)
				words = append(words, word)
			}
		}
	}
	p.tails(c, words)
}

// tails adds a command for each word of a list.
func (p *perhaps) tails(c Command, words []string) {
	for i, w := range words {
		if named(w) {
			p.add(c, words[i:])
		}
	}
}

// sedCommands finds the commands of sed that run something: e, and s with the flag e.
var sedCommands = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[;{}/0-9$!,\s])e\s+([^\n]*)`)
})

// sed adds the commands that a script of sed runs.
func (p *perhaps) sed(c Command, text string) {
	for _, m := range sedCommands().FindAllStringSubmatch(text, maxTexts) {
		p.read(c, m[1], 0)
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != 's' || text[i+1] >= 'a' && text[i+1] <= 'z' || text[i+1] == ' ' {
			continue
		}
		parts := strings.SplitN(text[i+2:], text[i+1:i+2], 3)
		if len(parts) == 3 {
			flags, _, _ := strings.Cut(parts[2]+" ", " ")
			if strings.Contains(strings.SplitN(flags, ";", 2)[0], "e") {
				p.read(c, parts[1], 0)
			}
		}
	}
}
