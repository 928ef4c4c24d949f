// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// SignalNumber returns the number of a signal of this system by its name, such as "SIGTERM"; 0
// when there is none that can be sent to a command.
func SignalNumber(name string) int {
	if name == "SIGINT" {
		return int(syscall.SIGINT)
	}
	return 0
}

// SignalName returns the name of a signal of this system by its number; empty when it has none.
func SignalName(number int) string {
	if number == int(syscall.SIGINT) {
		return "SIGINT"
	}
	return ""
}
