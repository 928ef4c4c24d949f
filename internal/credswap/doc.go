// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credswap keeps credentials from a command that uses them. The command gets a dummy; in its
// requests to the hosts of the credential, the dummy is replaced by the real value, and in their
// responses the real value by the dummy.
//
// It looks at requests and responses that a proxy has decrypted. It opens no connection, reads no
// environment and no file, and never writes a real value anywhere but into a request.
package credswap
