// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"strconv"
)

// PasswdShell returns the login shell of a user from the text of /etc/passwd (passwd(5)).
// The first line with that uid counts; an empty shell field means /bin/sh, as for login.
// It reports false if no line has the uid. Lines in another format, comments and entries
// that refer to a directory service are ignored; users known only to such a service (all
// of them on macOS) are not found.
func PasswdShell(passwd []byte, uid uint32) (string, bool) {
	for line := range bytes.Lines(passwd) {
		fields := bytes.Split(bytes.TrimRight(line, "\r\n"), []byte(":"))
		if len(fields) != 7 || len(fields[0]) == 0 || bytes.ContainsAny(fields[0][:1], "#+-") {
			continue
		}
		id, err := strconv.ParseUint(string(fields[2]), 10, 32)
		if err != nil || uint32(id) != uid {
			continue
		}
		if len(fields[6]) == 0 {
			return "/bin/sh", true
		}
		return string(fields[6]), true
	}
	return "", false
}
