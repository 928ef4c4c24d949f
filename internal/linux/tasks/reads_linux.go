// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Descendants returns the processes that this one has started, and those that they have, as far as the kernel
// tells. It does not block.
func Descendants() []int {
	all := []int{os.Getpid()}
	for i := 0; i < len(all) && i < maxProcesses; i++ {
		// the pattern is valid
		lists, _ := filepath.Glob("/proc/" + strconv.Itoa(all[i]) + "/task/*/children")
		for _, list := range lists {
			text, _ := os.ReadFile(list) // it may have ended
			for field := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all[1:]
}

// ReadsTerminal takes one look whether a thread of these processes is blocked in a read of a terminal,
// whichever that is. What cannot be looked into does not count. It does not block.
func ReadsTerminal(pids []int) bool {
	for _, pid := range pids {
		p, err := openProcess(pid)
		if err != nil {
			continue
		}
		reads := p.readsTerminal()
		p.close()
		if reads {
			return true
		}
	}
	return false
}

func (p *process) readsTerminal() bool {
	tids, _ := p.tasks() // none after an error
	for _, tid := range tids {
		line, err := p.call(tid)
		if err != nil || line.number < 0 || line.narrow || callOf(line.number) != callRead {
			continue
		}
		st, err := p.statx(tid, int(int32(line.args[0])))
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && isTerminal(st.Rdev_major) {
			return true
		}
	}
	return false
}

// isTerminal reports whether a device is a terminal by its major number, see
// Documentation/admin-guide/devices.txt.
func isTerminal(major uint32) bool {
	const console, controlling, firstPTY, lastPTY = 4, 5, 136, 143
	return major == console || major == controlling || major >= firstPTY && major <= lastPTY
}
