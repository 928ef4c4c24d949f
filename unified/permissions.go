// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// additional is the form of the permissions for WithAdditional.
type additional struct {
	_       struct{} `rule:"name=additional_permissions,strict"`
	Network *struct {
		_       struct{} `rule:"name=network,strict"`
		Enabled bool     `json:"enabled"`
	} `json:"network"`
	FileSystem *struct {
		_     struct{} `rule:"name=file_system,strict"`
		Read  []string `json:"read"`
		Write []string `json:"write"`
	} `json:"file_system"`
}

// grants returns what a request asks for beyond the sandbox, below a directory.
func (t *Tools) grants(q *Request, dir string) ([]sandbox.Grant, error) {
	if q.Permissions != WithAdditional {
		return nil, nil
	}
	if !t.AdditionalPermissions {
		return nil, invalid("additional permissions are disabled; enable features.exec_permission_approvals before using with_additional_permissions")
	}
	if len(q.Additional) == 0 || string(q.Additional) == "null" {
		return nil, invalid("missing `additional_permissions`; provide at least one of `network` or `file_system` when using `with_additional_permissions`")
	}
	bad := func(err error, reason string) error {
		return badArgument("exec_command", "additional_permissions", reason, err)
	}
	var a additional
	if err := strict.Unmarshal(q.Additional, &a); err != nil {
		return nil, bad(err, "it has network.enabled, file_system.read and file_system.write")
	}
	if a.Network != nil && a.Network.Enabled {
		return nil, bad(nil, "network permissions are not supported in this version; leave network out")
	}
	var grants []sandbox.Grant
	if f := a.FileSystem; f != nil {
		for _, list := range []struct {
			names []string
			level sandbox.Level
		}{{f.Read, sandbox.LevelRead}, {f.Write, sandbox.LevelWrite}} {
			for _, name := range list.names {
				if name == "" {
					return nil, bad(nil, "a path is empty")
				}
				name = joinDir(dir, name)
				if !filepath.IsAbs(name) {
					return nil, bad(nil, "a path is relative, and the directory of the command is not known")
				}
				grants = append(grants, sandbox.Grant{Path: filepath.Clean(name), Level: list.level})
			}
		}
	}
	if len(grants) == 0 {
		return nil, invalid("`additional_permissions` must include at least one requested permission in `network` or `file_system`")
	}
	return grants, nil
}
