// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// userDatabase is read once: homes of users do not move.
var userDatabase = sync.OnceValue(func() string {
	users, _ := safefile.ReadSystem("/etc/passwd") // empty after an error
	return string(users)
})

// Homes returns the home directories whose stores this process can open: that of the
// environment, that of the user database, and for root also those of the user who has become
// root and of root itself. Some may not exist.
func Homes() []string {
	users := userDatabase()
	homes := []string{os.Getenv("HOME"), DatabaseHome()}
	if os.Geteuid() == 0 {
		homes = append(homes, "/root")
		for _, name := range []string{"SUDO_UID", "PKEXEC_UID"} {
			if uid := os.Getenv(name); uid != "" {
				homes = append(homes, homeOf(users, uid))
			}
		}
	}
	out := []string{}
	for _, h := range homes {
		if h = filepath.Clean(h); filepath.IsAbs(h) && h != "/" && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// DatabaseHome returns the home directory of this user in the user database, whatever the
// environment says; "" if it has none.
func DatabaseHome() string { return homeOf(userDatabase(), strconv.Itoa(os.Getuid())) }

// LoginHomes returns the home directories of all users who can log in, by the user database.
func LoginHomes() []string {
	var out []string
	for line := range strings.Lines(userDatabase()) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 7 || slices.Contains([]string{"nologin", "false", "sync"}, filepath.Base(f[6])) {
			continue
		}
		if home := filepath.Clean(f[5]); filepath.IsAbs(home) && home != "/" {
			out = append(out, home)
		}
	}
	return out
}

// homeOf returns the home directory of a user in the text of passwd(5), or "".
func homeOf(users, uid string) string {
	for line := range strings.Lines(users) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == uid {
			return f[5]
		}
	}
	return ""
}
