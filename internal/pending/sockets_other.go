// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package pending

import "errors"

// listen is not supported on this system.
func (p *Post) listen() (func(), error) { return nil, errors.ErrUnsupported }

// errGone says that no process listens at a socket.
var errGone = errors.New("the process has ended")

type door struct{ pid int }

func doors() ([]door, error) { return nil, errors.ErrUnsupported }

func (d door) call(*call) (*reply, error) { return nil, errors.ErrUnsupported }

func (d door) path() string { return "" }
