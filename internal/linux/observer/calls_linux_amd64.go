// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"golang.org/x/sys/unix"
)

const sysRenameat = unix.SYS_RENAMEAT

// legacyLayouts lists the calls that only this machine has.
var legacyLayouts = [...]layout{
	unix.SYS_OPEN:      {kindOpen, "po"},
	unix.SYS_CREAT:     {kindOpen, "pc"},
	unix.SYS_UNLINK:    {kindUnlink, "n"},
	unix.SYS_RMDIR:     {kindRmdir, "n"},
	unix.SYS_RENAME:    {kindRename, "nP"},
	unix.SYS_MKDIR:     {kindMake, "ne"},
	unix.SYS_MKNOD:     {kindMake, "nm"},
	unix.SYS_SYMLINK:   {kindMake, "sn"},
	unix.SYS_LINK:      {kindLink, "nP"},
	unix.SYS_CHMOD:     {kindChange, "pM"},
	unix.SYS_CHOWN:     {kindChange, "pu"},
	unix.SYS_UTIME:     {kindChange, "pU"},
	unix.SYS_UTIMES:    {kindChange, "pV"},
	unix.SYS_LCHOWN:    {kindChange, "nu"},
	unix.SYS_FUTIMESAT: {kindChange, "dtV"},
}
