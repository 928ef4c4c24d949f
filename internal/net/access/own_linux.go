// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import "github.com/sallyport-dev/sallyport/internal/linux/tasks"

// listening reports whether this machine has a service at a port of its loopback interface.
func listening(port uint16) bool { return tasks.Listening(port) }
