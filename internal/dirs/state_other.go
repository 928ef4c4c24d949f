// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package dirs

import (
	"errors"
	"os"
)

// Dir is an error: nothing is kept between runs on this system.
func Dir() (string, error) { return "", errors.ErrUnsupported }

// Lock is an error: nothing is kept between runs on this system.
func Lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Existing returns nil: nothing is kept between runs on this system.
func Existing() []string { return nil }

// Clean has nothing to clean: nothing is kept between runs on this system.
func Clean() []Report { return nil }

// A PublishedNotice is a notice; there are none on this system.
type PublishedNotice struct{}

// PublishNotice is an error: nothing is kept between runs on this system.
func PublishNotice(string, NoticeDir, *Notice) (*PublishedNotice, error) {
	return nil, errors.ErrUnsupported
}

// Withdraw does nothing on this system.
func (*PublishedNotice) Withdraw() {}

// Notices returns nil: nothing is kept between runs on this system.
func Notices(string, NoticeDir) ([]Notice, error) { return nil, nil }

// Number would return a number that was not given before. It is not supported on this system.
func Number(string, uint64) (uint64, error) { return 0, errors.ErrUnsupported }
