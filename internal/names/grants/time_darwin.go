// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import "syscall"

// modified returns when a file was modified.
func modified(st *syscall.Stat_t) syscall.Timespec { return st.Mtimespec }
