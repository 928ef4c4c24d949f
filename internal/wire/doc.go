// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire has the parameters, results and notifications of the exec-server protocol as
// values, and the file URIs in them.
//
// Each Decode function reads the parameters of one method. Members that it does not know are
// ignored, as the protocol demands; what it knows has the type and the presence that the
// protocol says, and null is absent only where that is allowed. Errors are one line in the words
// that clients of the protocol know. Results and notifications are for encoding/json.
//
// The package acts on nothing: it does not know which methods a server has.
package wire
