// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"sync"
)

// OCSFVersion is the version of the Open Cybersecurity Schema Framework (schema.ocsf.io) that [OCSF]
// writes.
const OCSFVersion = "1.3.0"

// The classes of that schema, by their numbers.
const (
	classFile    = 1001 // File System Activity
	classProcess = 1007 // Process Activity
	classNetwork = 4001 // Network Activity
	classAPI     = 6003 // API Activity
)

// The words of that schema, by their numbers.
const (
	otherActivity                    = 99
	informational, low               = 1, 2 // severities
	success, failure                 = 1, 2 // states
	allowed, blocked                 = 1, 2 // actions, and their dispositions
	quarantined, approved            = 3, 8 // dispositions
	fileRead, fileUpdate, fileRename = 2, 3, 5
	fileOpen                         = 14
	processLaunch, processTerminate  = 1, 2
	netOpen, netClose, netRefuse     = 1, 2, 5
	netListen                        = 7
)

// An ocsf is an event of that schema. Members that a class lacks are nil.
type ocsf struct {
	Category int    `json:"category_uid"`
	Class    int    `json:"class_uid"`
	Activity int    `json:"activity_id"`
	Name     string `json:"activity_name,omitempty"` // of the activity 99
	Type     int    `json:"type_uid"`
	Time     int64  `json:"time"` // in milliseconds since 1970
	Severity int    `json:"severity_id"`
	Status   int    `json:"status_id"`
	Message  string `json:"message"`

	Action      int `json:"action_id,omitempty"`
	Disposition int `json:"disposition_id,omitempty"`

	Metadata map[string]any  `json:"metadata"`
	Device   map[string]any  `json:"device,omitempty"`
	Actor    map[string]any  `json:"actor,omitempty"`
	Process  map[string]any  `json:"process,omitempty"`
	ExitCode *int            `json:"exit_code,omitempty"`
	File     map[string]any  `json:"file,omitempty"`
	API      map[string]any  `json:"api,omitempty"`
	Source   map[string]any  `json:"src_endpoint,omitempty"`
	Dest     map[string]any  `json:"dst_endpoint,omitempty"`
	Traffic  map[string]any  `json:"traffic,omitempty"`
	Unmapped json.RawMessage `json:"unmapped"` // the event as it is in the log
}

// A happening has the members of events that the schema has words for.
type happening struct {
	Type     string `json:"type"`
	Run      string `json:"run"`
	Attempt  int    `json:"attempt"`
	Op       string `json:"op"`
	Path     string `json:"path"`
	Addr     string `json:"addr"`
	Program  string `json:"program"`
	PID      int    `json:"pid"`
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Decision string `json:"decision"`
	ExitCode *int   `json:"exit_code"`
	End      json.RawMessage
}

var hostname = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
})

// OCSF returns a record as an event of that schema, on one line, and whether there is one for it. Lines of
// the log itself, bad ones, and records that are no events have none: what records of runs say is in their
// events. The machine is the one on which OCSF is called. The error says that the body is not that of an
// event.
func OCSF(r Record) (json.RawMessage, bool, error) {
	if r.Kind != kindEvent || r.Bad != "" {
		return nil, false, nil
	}
	var h happening
	if err := json.Unmarshal(r.Body, &h); err != nil || h.Type == "" {
		return nil, false, fmt.Errorf("audit: line %d of the log is no event", r.N)
	}
	o := &ocsf{Time: r.Time.UnixMilli(), Severity: informational, Status: success, Message: h.Type, Unmapped: r.Body}
	o.Metadata = map[string]any{
		"version": OCSFVersion, "product": map[string]any{"name": "sallyport", "vendor_name": "sallyport"},
		"log_name": "audit", "sequence": r.N, "correlation_uid": h.Run, "event_code": h.Type,
		"profiles": []string{"host"},
	}
	o.Actor = map[string]any{"app_name": "sallyport", "process": h.process()}
	o.Device = map[string]any{"hostname": hostname(), "type_id": 0}
	o.fill(&h)
	o.Type = o.Class*100 + o.Activity
	o.Category = o.Class / 1000
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return nil, false, fmt.Errorf("audit: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), true, nil
}

// process names the process of a run, by the run and the attempt.
func (h *happening) process() map[string]any {
	p := map[string]any{"uid": fmt.Sprintf("%s/%d", h.Run, h.Attempt)}
	if h.PID > 0 {
		p["pid"] = h.PID
	}
	if h.Program != "" {
		p["name"] = h.Program
	}
	return p
}

// fill sets what depends on the type of an event.
func (o *ocsf) fill(h *happening) {
	switch h.Type {
	case "started":
		o.class(classProcess, processLaunch)
		o.Process = h.process()
	case "exited":
		o.class(classProcess, processTerminate)
		o.Process, o.ExitCode = h.process(), h.ExitCode
	case "denied":
		o.denied(h)
	case "quarantined":
		o.class(classFile, fileRename)
		o.File = h.file()
		o.control(blocked, quarantined)
	case "granted":
		o.class(classFile, fileUpdate)
		if h.Op != "write" {
			o.Activity = fileOpen // of a socket
		}
		o.File = h.file()
		o.control(allowed, approved)
	case "network_decided", "network_closed", "listening":
		o.network(h)
	default:
		o.class(classAPI, otherActivity)
		o.Device, o.Name = nil, h.Type // its class has no profiles, and so no device
		delete(o.Metadata, "profiles")
		o.API = map[string]any{"operation": h.Type, "service": map[string]any{"name": "sallyport"}}
		o.Source = map[string]any{"hostname": hostname()}
		b := facts{Type: h.Type, Decision: h.Decision}
		if b.denied() {
			o.Status, o.Severity = failure, low
		}
	}
}

func (o *ocsf) class(class, activity int) { o.Class, o.Activity = class, activity }

// control sets what was decided about an access.
func (o *ocsf) control(action, disposition int) {
	o.Action, o.Disposition = action, disposition
	o.Metadata["profiles"] = []string{"host", "security_control"}
	if action == blocked {
		o.Status, o.Severity = failure, low
	}
}

// denied is a denied access, of the class that its operation belongs to.
func (o *ocsf) denied(h *happening) {
	switch h.Op {
	case "connect", "bind":
		o.class(classNetwork, netRefuse)
		o.Dest = map[string]any{"name": h.Addr + h.Path}
	case "signal":
		o.class(classProcess, otherActivity)
		o.Name, o.Process = h.Op, h.process()
	default:
		o.class(classFile, map[string]int{"read": fileRead, "write": fileUpdate}[h.Op])
		if o.Activity == 0 {
			o.Activity = fileOpen // to execute it
		}
		o.File = h.file()
	}
	o.control(blocked, blocked)
}

// network is a decision about a connection, its end, or a port.
func (o *ocsf) network(h *happening) {
	if h.Type == "listening" {
		o.class(classNetwork, netListen)
		o.Dest = map[string]any{"hostname": "localhost", "port": h.Port}
		return
	}
	o.Dest = map[string]any{"hostname": h.Host, "port": h.Port}
	switch {
	case h.Type == "network_closed":
		o.class(classNetwork, netClose)
		var end struct {
			Up   int64 `json:"bytes_up"`
			Down int64 `json:"bytes_down"`
		}
		_ = json.Unmarshal(h.End, &end) // of another shape: unmapped has it
		o.Traffic = map[string]any{"bytes_out": end.Up, "bytes_in": end.Down}
		o.control(allowed, allowed)
	case h.Decision == "allow":
		o.class(classNetwork, netOpen)
		o.control(allowed, allowed)
	default:
		o.class(classNetwork, netRefuse)
		o.control(blocked, blocked)
	}
}

func (h *happening) file() map[string]any {
	return map[string]any{"name": path.Base(h.Path), "path": h.Path, "type_id": 0}
}
