// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// sshFailed is the exit code with which ssh(1) ends of itself; each other is that of the remote command.
const sshFailed = 255

// sshPlace is what git, scp and rsync reach by ssh: ssh://HOST/DIR, git+ssh://HOST/DIR or USER@HOST:DIR.
var sshPlace = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z+]*ssh://.|[\w.-]+@[\w.-]+:([^0-9]|[0-9]+[^0-9]))`)
})

// gitRemote are the commands of git that reach the remotes which a repository's configuration names.
var gitRemote = []string{"clone", "fetch", "pull", "push", "ls-remote", "submodule", "remote"}

// keyless reports whether a hidden store is a key that the failed command, as its words say, needed to
// reach a host by ssh. Where it has an agent, that has the keys.
func (r *DeniedRun) keyless(store *grants.Store, exit int) bool {
	if store.Name != "ssh" || path.Base(path.Dir(store.Path)) != ".ssh" || r.variable("SSH_AUTH_SOCK") != "" {
		return false
	}
	var git, remote bool
	for _, arg := range r.Args {
		for _, word := range pathsIn(arg) {
			switch name := path.Base(word); {
			case sshPlace().MatchString(word), name == "sftp", name == "ssh" && exit == sshFailed:
				return true
			case name == "git":
				git = true
			case slices.Contains(gitRemote, word):
				remote = git
			}
		}
	}
	return remote && remoteBySSH(r.Dir)
}

// remoteBySSH reports whether the configuration of the repository around a directory names a remote that is
// reached by ssh.
func remoteBySSH(dir string) bool {
	const most = 64 << 10
	for ; ; dir = path.Dir(dir) {
		config, _, err := safefile.Read(path.Join(dir, ".git/config"), most)
		for line := range strings.Lines(string(config)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			if strings.HasSuffix(key, "url") && sshPlace().MatchString(value) {
				return true
			}
		}
		if err == nil || path.Dir(dir) == dir {
			return false
		}
	}
}
