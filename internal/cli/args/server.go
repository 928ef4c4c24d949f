// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// Complete adds to the options of an exec-server, whose Environ and Managed are set, what every one of this
// user has: judged runs, their numbers, where output is kept, and the audit log, which it returns: it must be
// closed after the server. Telemetry is that of [Env].
func Complete(o *execserver.Options, telemetry *otel.Process) *Audit {
	o.Version = hostfacts.ReadBuild().Version
	log := ServerAudit(&Env{Environ: o.Environ, Dir: o.Dir, Managed: o.Managed})
	o.Prepare, o.Audit = Prepare(o.Managed, o.Environ, log, telemetry), log
	o.Hidden = append(o.Hidden, log.hidden()...)
	dir, err := dirs.Dir()
	if err == nil { // without it, less output can be replayed, and reads say so
		o.LogDir = filepath.Join(dir, "replay")
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		o.RunNumber = func(after uint64) (uint64, error) { return dirs.Number("sessions", after) }
	}
	return log
}
