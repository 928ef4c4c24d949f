// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// inert are programs that run none of their words, whatever these are. What options of them run is
// in options.
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

// Open returns from which word on a program may run its words; 0 is none.
func Open(args []string) int {
	name := path.Base(args[0])
	l, runs := launchers()[name]
	in, interprets := Language(name)
	f, many := families()[name]
	switch {
	case name == "git":
		if starts, _, _ := Git.Starts(args); len(starts) > 0 &&
			!strings.Contains(gitQuiet, " "+args[starts[0]]+" ") &&
			!strings.Contains(gitQuiet, "\n\t"+args[starts[0]]+" ") {
			return starts[0] + 1
		}
		return 0
	case many:
		if f.open(args) {
			return 1
		}
		return 0
	case runs && !l.loose, followed()[name]:
		return 0
	case runs:
		return 1
	case shells()[name]:
		return shellArguments(args)
	case interprets && in.First:
		return 0
	case inert()[name]:
		return 0
	case interprets:
		t := in.tell(args)
		if len(t.Modules) > 0 && (inert()[t.Modules[0]] || slices.Contains(quietModules, t.Modules[0])) {
			return 0
		}
		return min(t.after, len(args))
	case strings.HasPrefix(name, "git-"), strings.HasPrefix(name, "x86_64-"),
		strings.HasPrefix(name, "aarch64-"):
		return 0
	case inert()[strings.TrimRight(name, "-0123456789.")]:
		return 0
	}
	return 1
}

// quietModules are modules of Python that run none of their words, beside those that are programs.
var quietModules = strings.Fields("build compileall ensurepip http.server json.tool py_compile tarfile unittest venv zipfile")

// shellArguments returns where the arguments of the script of a shell begin, if that is a file.
func shellArguments(args []string) int {
	for i := 1; i < len(args); i++ {
		w := args[i]
		switch {
		case w == "--":
			return i + 2
		case w == Rest, w == "-c", len(w) > 1 && (w[0] == '-' || w[0] == '+') && w[1] != '-' &&
			strings.ContainsAny(w, "cs"):
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
