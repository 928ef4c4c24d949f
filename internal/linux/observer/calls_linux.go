// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// A kind is what a call does, as far as the answer depends on it.
type kind uint8

const (
	kindNone     kind = iota
	kindOpen          // opens, and perhaps creates, a file
	kindMake          // creates a name that must not exist
	kindUnlink        // removes a name that is no directory
	kindRmdir         // removes a directory
	kindRename        // moves a name
	kindLink          // creates a second name
	kindChange        // changes the attributes of a file
	kindTruncate      // changes the content of a file
	kindTouch         // changes the file behind a descriptor
	kindExec          // runs a program
	kindChdir         // changes the working directory
	kindConnect       // fd, address, length
	kindBind          // fd, address, length
	kindListen        // fd, backlog
	kindSendTo        // fd, buffer, length, flags, address, length
	kindSendMsg       // fd, message
	kindSendMany      // fd, messages, count
	kindPeer          // fd, level, option, value, length
	kindPass          // fd, level, option, value, length
)

// A layout tells where a call has its arguments, with one letter for each:
//
//	d p  directory descriptor and path
//	D P  a second pair
//	n    path whose last symbolic link is not followed
//	t    path whose absence means the descriptor
//	o    flags of open(2)
//	h    pointer to a struct open_how, whose size comes next
//	c    flags of creat(2), which has none
//	f    flags with AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH
//	l    flags with AT_SYMLINK_FOLLOW and AT_EMPTY_PATH
//	r    flags with AT_REMOVEDIR
//	s    text of a symbolic link to make
//	m    type and mode of mknod(2)
//	e    mode of mkdir(2)
//	z    size of truncate(2)
//	U    pointer to a struct utimbuf
//	V    pointer to two struct timeval
//	T    pointer to two struct timespec
//	X    name of setxattr(2), whose value, size and flags come next
//	R    name of removexattr(2)
//	x    flags of renameat2(2)
//	u    owner of chown(2), whose group comes next
//	M    mode of chmod(2)
//	-    not judged
type layout struct {
	kind kind
	args string
}

// layouts lists the calls of all machines by number.
var layouts = [...]layout{
	unix.SYS_OPENAT:        {kindOpen, "dpo"},
	unix.SYS_OPENAT2:       {kindOpen, "dph"},
	unix.SYS_UNLINKAT:      {kindUnlink, "dnr"},
	unix.SYS_RENAMEAT2:     {kindRename, "dnDPx"},
	sysRenameat:            {kindRename, "dnDP"},
	unix.SYS_MKDIRAT:       {kindMake, "dne"},
	unix.SYS_MKNODAT:       {kindMake, "dnm"},
	unix.SYS_SYMLINKAT:     {kindMake, "sdn"},
	unix.SYS_LINKAT:        {kindLink, "dnDPl"},
	unix.SYS_TRUNCATE:      {kindTruncate, "pz"},
	unix.SYS_FCHMODAT:      {kindChange, "dpM"},
	unix.SYS_FCHMODAT2:     {kindChange, "dpMf"},
	unix.SYS_FCHOWNAT:      {kindChange, "dpu-f"},
	unix.SYS_UTIMENSAT:     {kindChange, "dtTf"},
	unix.SYS_SETXATTR:      {kindChange, "pX"},
	unix.SYS_REMOVEXATTR:   {kindChange, "pR"},
	unix.SYS_LSETXATTR:     {kindChange, "nX"},
	unix.SYS_LREMOVEXATTR:  {kindChange, "nR"},
	unix.SYS_SETXATTRAT:    {kindChange, "dpf"},
	unix.SYS_REMOVEXATTRAT: {kindChange, "dpf"},
	unix.SYS_FCHMOD:        {kindTouch, "dM"},
	unix.SYS_FCHOWN:        {kindTouch, "du"},
	unix.SYS_FSETXATTR:     {kindTouch, "dX"},
	unix.SYS_FREMOVEXATTR:  {kindTouch, "dR"},
	unix.SYS_EXECVE:        {kindExec, "p"},
	unix.SYS_EXECVEAT:      {kindExec, "dp--f"},
	unix.SYS_CHDIR:         {kind: kindChdir},
	unix.SYS_FCHDIR:        {kind: kindChdir},
	unix.SYS_CONNECT:       {kind: kindConnect},
	unix.SYS_BIND:          {kind: kindBind},
	unix.SYS_LISTEN:        {kind: kindListen},
	unix.SYS_SENDTO:        {kind: kindSendTo},
	unix.SYS_SENDMSG:       {kind: kindSendMsg},
	unix.SYS_SENDMMSG:      {kind: kindSendMany},
	unix.SYS_GETSOCKOPT:    {kind: kindPeer},
	unix.SYS_SETSOCKOPT:    {kind: kindPass},
}

// layoutOf returns the layout of a call; its kind is kindNone for an unknown one.
func layoutOf(nr int32) layout {
	for _, table := range [...][]layout{layouts[:], legacyLayouts[:]} {
		if nr >= 0 && int(nr) < len(table) && table[nr].kind != kindNone {
			return table[nr]
		}
	}
	return layout{}
}

// A call is a system call with its arguments in one order for all variants.
type call struct {
	kind   kind
	dir    int32 // of path
	path   uint64
	dir2   int32
	path2  uint64
	flags  uint64 // of open(2), or of renameat2(2)
	mode   uint64 // of a file that it creates, or of chmod(2)
	data   uint64 // a size, or where the rest of what it sets is: see form
	form   byte   // the letter of the layout; 0 is none
	more   int    // which argument comes next
	within bool   // openat2(2) restricts the way to the file
	follow bool   // a symbolic link at the end of path is followed
	bare   bool   // an empty path means the descriptor itself

	special  bool // what it makes is neither a file nor a directory
	removes  bool // it takes the name away that is judged
	moves    bool // it gives what has that name another one
	exchange bool // both names of a rename change places

	chmod        bool // it gives the file a mode
	chown        bool // it gives the file to owner and group, of which ^0 changes nothing
	owner, group uint32
	oddFlags     bool // it has flags that fchownat(2) does not know
}

const atCwd = int32(unix.AT_FDCWD)

// decode reads the arguments of a call. Its kind is kindNone for calls that are not
// judged.
func decode(n *notify.Notification) call {
	l := layoutOf(n.Nr)
	c := call{kind: l.kind, dir: atCwd, dir2: atCwd}
	for i := range len(l.args) {
		a := n.Args[i]
		switch l.args[i] {
		case 'd':
			c.dir = int32(a) // the kernel takes the low half, too
		case 'D':
			c.dir2 = int32(a)
		case 'n':
			c.path = a
		case 'p', 't':
			c.path, c.follow = a, true
			if a == 0 && l.args[i] == 't' {
				c.kind = kindTouch
			}
		case 'P':
			c.path2 = a
		case 'o':
			c.openWith(a)
			c.mode = n.Args[i+1]
		case 'c':
			c.openWith(unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC)
			c.mode = a
		case 'h':
			var how [24]byte // struct open_how of linux/openat2.h
			if n.Args[i+1] < uint64(len(how)) || tasks.Peek(n.PID, a, how[:]) != len(how) {
				return call{}
			}
			c.openWith(uint64At(how[:], 0))
			c.mode, c.within = uint64At(how[:], 8), uint64At(how[:], 16) != 0
		case 'f':
			c.follow, c.bare = a&unix.AT_SYMLINK_NOFOLLOW == 0, a&unix.AT_EMPTY_PATH != 0
			c.oddFlags = uint32(a)&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0
		case 'l':
			c.follow, c.bare = a&unix.AT_SYMLINK_FOLLOW != 0, a&unix.AT_EMPTY_PATH != 0
		case 's':
			c.special, c.form, c.data = true, 's', a
		case 'm':
			kind := a & unix.S_IFMT
			c.special, c.form, c.mode = kind != 0 && kind != unix.S_IFREG, 'm', a
		case 'e':
			c.form, c.mode = 'e', a
		case 'z', 'U', 'V', 'T', 'X', 'R':
			c.form, c.data, c.more = l.args[i], a, i+1
		case 'x':
			c.exchange, c.flags = a&unix.RENAME_EXCHANGE != 0, a
		case 'M':
			c.chmod, c.mode = true, a
		case 'u':
			c.chown, c.owner, c.group = true, uint32(a), uint32(n.Args[i+1])
		case 'r':
			if a&unix.AT_REMOVEDIR != 0 {
				c.kind = kindRmdir
			}
		}
	}
	return c
}

// openWith sets the flags of open(2). A name that must not exist is not followed.
func (c *call) openWith(flags uint64) {
	c.flags = flags
	c.follow = flags&unix.O_NOFOLLOW == 0 && flags&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
}
