// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/printable"
)

// maxWithheld is how many variables are named in one line.
const maxWithheld = 20

// withheldLine names variables that the program did not get; empty when there is none.
func withheldLine(names []string) string {
	if len(names) == 0 {
		return ""
	}
	shown := strings.Join(names[:min(len(names), maxWithheld)], ", ")
	if more := len(names) - maxWithheld; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return "withheld from the environment: " + printable.Line(shown) + "; pass one with -e " + printable.Word(names[0])
}
