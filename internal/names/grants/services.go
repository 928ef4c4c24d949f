// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grants has, as tables, what a command gets by name only.
//
// [FindStores] knows where tools keep secrets in a home directory: keys, tokens, passwords, and histories in
// which people have typed them. It looks at what exists and refuses to decide who may read it.
//
// [Services] are the sockets of agents and of Docker, and graphics processors: [FindServices] opens
// the sockets that are granted and lists the devices, and returns an error with the fix where there
// are none. [HostGrants] are hosts, such as "net:npm", that a package manager connects to with its
// usual settings; hosts that only take uploads are left out, and so are hosts where any user can store
// files under a name of their own, where the package manager can do without. [ToolGrants] are the
// names at the top of a workspace that other programs run or obey later: settings of agents and
// editors, scripts of a directory's shell, hooks.
//
// The package connects to nothing, starts nothing and refuses to decide who gets what.
package grants

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// The names of the grants.
const (
	SSHAgent = "ssh-agent"
	GPGAgent = "gpg-agent"
	Docker   = "docker"
	GPU      = "gpu"

	// LoopbackPrefix begins the grants for services on the host's loopback, such as
	// "loopback:8080".
	LoopbackPrefix = "loopback:"
)

// A Service is one row of the table.
type Service struct {
	Name  string // "loopback:PORT" stands for all ports
	Opens string // for people
	Keeps string // what stays closed, for people
	// Variable is the variable of this process that names the service, for the command too.
	// Empty where there is none.
	Variable string
	Warning  string // for people; empty where nothing is dangerous
}

// Services returns the table. The slice is the caller's own.
func Services() []Service {
	return []Service{
		{
			Name: SSHAgent, Variable: "SSH_AUTH_SOCK",
			Opens: "using the SSH agent (SSH_AUTH_SOCK): it signs with the keys that it holds, and adds and removes keys",
			Keeps: "private keys in files, and other unix sockets",
		},
		{
			Name: GPGAgent, Variable: "GNUPGHOME",
			Opens: "using the GnuPG agent through its restricted socket (S.gpg-agent.extra): it signs and decrypts",
			Keeps: "private keys, in files and in the agent, and other unix sockets",
		},
		{
			Name:  GPU,
			Opens: "the render nodes of GPUs (/dev/dri/renderD*, /dev/nvidia*, /dev/kfd, /dev/dxg) and their entries in /sys",
			Keeps: "display modes (/dev/dri/card*) and other devices",
		},
		{
			Name: Docker, Variable: "DOCKER_HOST",
			Opens:   "the Docker socket (DOCKER_HOST=unix://PATH or /var/run/docker.sock)",
			Keeps:   "nothing: Docker starts containers that mount any directory",
			Warning: "a user of the Docker socket is root on this machine: the sandbox does not confine what the command has Docker do",
		},
		{
			Name:  LoopbackPrefix + "PORT",
			Opens: "the service at that loopback port of this machine (localhost:PORT, 127.0.0.1:PORT, [::1]:PORT), through the managed network",
			Keeps: "other ports",
		},
	}
}

// KnownService reports whether a name is one of a grant of the table.
func KnownService(name string) bool {
	return isLoopback(name) || slices.ContainsFunc(Services(),
		func(g Service) bool { return g.Name == name && name != LoopbackPrefix+"PORT" })
}

// isLoopback reports whether a name is a grant for one port of the host's loopback.
func isLoopback(name string) bool {
	text, ok := strings.CutPrefix(name, LoopbackPrefix)
	port, err := strconv.ParseUint(text, 10, 16)
	return ok && err == nil && port > 0 && strconv.FormatUint(port, 10) == text
}

// checkNetwork returns an error for a grant of names that the network of a command cannot
// give.
func checkNetwork(names []string, network sandbox.Network) error {
	i := slices.IndexFunc(names, isLoopback)
	if i < 0 || network == sandbox.NetworkHost {
		return nil
	}
	return &sandbox.UnsupportedError{
		Need: "a way to port " + strings.TrimPrefix(names[i], LoopbackPrefix) +
			" of the host for the grant " + names[i],
		Have: "the command has a network of its own, and only the proxy leads out of it",
		Hint: "use an allow entry for localhost:" + strings.TrimPrefix(names[i], LoopbackPrefix) +
			" of the managed network, or the host's network, which opens all of it",
	}
}

// A ServicePlace is where programs look for a service.
type ServicePlace struct {
	Grant string
	Path  string // absolute and clean, as it is written
}

// ServicePlaces returns where the sockets of services are by an environment and the number of a user,
// whether or not something is there; of one service the most likely first.
func ServicePlaces(env []string, uid int) []ServicePlace {
	var out []ServicePlace
	add := func(grant, path string) {
		if filepath.IsAbs(path) {
			out = append(out, ServicePlace{grant, filepath.Clean(path)})
		}
	}
	add(SSHAgent, variable(env, "SSH_AUTH_SOCK"))
	for _, dir := range gpgDirs(env, uid) {
		add(GPGAgent, filepath.Join(dir, gpgSocket))
	}
	switch at, isSocket := strings.CutPrefix(variable(env, "DOCKER_HOST"), "unix://"); {
	case isSocket:
		add(Docker, at)
	case at == "":
		add(Docker, "/var/run/docker.sock")
	}
	return out
}

// The names of the GnuPG agent's sockets: the usual one, and the one that neither gives keys
// away nor changes anything.
const (
	gpgSocket     = "S.gpg-agent"
	gpgRestricted = "S.gpg-agent.extra"
)

// gpgDirs returns the directories in which GnuPG looks for the socket of its agent. It has
// further names below /run for homes that are not the usual one.
func gpgDirs(env []string, uid int) []string {
	if home := variable(env, "GNUPGHOME"); home != "" {
		return []string{home}
	}
	dirs := []string{"/run/user/" + strconv.Itoa(uid) + "/gnupg"}
	if home := variable(env, "HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".gnupg"))
	}
	return dirs
}

// variable returns the value of a variable; empty when it is not set.
func variable(env []string, name string) string {
	for _, e := range slices.Backward(env) { // the last one counts
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
