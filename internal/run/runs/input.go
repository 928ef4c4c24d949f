// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

// Write queues data, which it keeps, for the input of the run. Done is closed when the data was
// taken, or not all of it: err then returns an *Error with the reason InputClosed, InputFull,
// Ended or Failed. A write with an ID that is known is not repeated: it is the first one. An empty
// ID is never known.
func (r *Run) Write(id string, data []byte) (done <-chan struct{}, err func() error) {
	return r.put(id, data, false)
}

// CloseInput queues the end of the input, as Write does. A terminal gets its end-of-file character.
// After the end of the run it has no effect.
func (r *Run) CloseInput() (done <-chan struct{}, err func() error) { return r.put("", nil, true) }

func (r *Run) put(id string, data []byte, end bool) (<-chan struct{}, func() error) {
	w, _ := r.input.Put(id, data, end, nil) // the Write has its error
	return w.Done(), func() error { return r.inputError(w.Result()) }
}
