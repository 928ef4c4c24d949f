// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Explain returns what a failed launch of a command means for its user.
func Explain(spec *executor.Spec, err error) error {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return err
	}
	switch {
	case step.Index < 0:
		return namespaceError(step.Errno)
	case step.Step.Op == launch.OpExec:
		return hostfacts.StartError(spec.Args[0], step.Errno)
	case step.Step.Op == launch.OpChdir && step.Errno == syscall.ENOTDIR:
		return &executor.DirError{Dir: spec.Dir, Err: executor.ErrNotDir}
	case step.Step.Op == launch.OpChdir && step.Errno == syscall.ENOENT && covered(spec.Dir):
		return &executor.DirError{Dir: spec.Dir,
			Err: &sandbox.HiddenError{What: "the working directory", Path: spec.Dir}}
	case step.Step.Op == launch.OpChdir:
		return &executor.DirError{Dir: spec.Dir, Err: step.Errno}
	case step.Step.Op == launch.OpMapUser:
		return &sandbox.UnsupportedError{
			Need: "a user namespace of its own",
			Have: fmt.Sprintf("the kernel created one but denies its use (%v)", step.Errno),
			Hint: hostfacts.NamespaceHint(),
		}
	case step.Errno == syscall.ENOSYS:
		return &sandbox.UnsupportedError{
			Need: "the system call " + step.Call,
			Have: "this kernel, or a filter around this process, does not have it",
			Hint: "use Linux 5.19 or newer, outside of a container that filters it",
		}
	case step.Step.Op == launch.OpProc && errors.Is(step.Errno, fs.ErrPermission):
		return &sandbox.UnsupportedError{
			Need: "a fresh /proc", Have: hostfacts.ProcHave(),
			Hint: "start the container with an uncovered /proc (Docker: --security-opt systempaths=unconfined; Podman: --security-opt unmask=ALL)",
		}
	case step.Errno == syscall.EACCES && step.Step.ID != (launch.ID{}) &&
		(step.Step.Op == launch.OpClone || step.Step.Op == launch.OpAttach):
		return &executor.RootError{
			Path: step.Step.Path, Why: "cannot be reached inside a user namespace: a directory above it belongs to another user and is closed",
			Fix: "run as that user, or open the directories above it for others (chmod o+x)",
		}
	case step.Call == "compare", step.Errno == syscall.ELOOP, step.Errno == syscall.ENOENT &&
		step.Step.ID != (launch.ID{}):
		return &executor.RootError{
			Path: step.Step.Path, Why: "was replaced or removed while the sandbox was built, so the command did not run",
			Fix: "try again when nothing else changes it",
		}
	}
	return &sandbox.UnsupportedError{Need: "every wall of the sandbox", Have: err.Error(),
		Hint: hostfacts.SeeDoctor}
}

// explainTmp is Explain, but for a program that was not found because it lies in the host's
// /tmp. With mounts every command has a /tmp of its own, unless it asks otherwise.
func (a *attempt) explainTmp(err error) error {
	known := Explain(a.spec, err)
	var start *executor.StartError
	var step *launch.StepError
	if !errors.As(known, &start) || !start.NotFound || !errors.As(err, &step) || a.spec.Tmp != "" ||
		a.level == plan.LevelLandlock {
		return known
	}
	res, err := a.spec.Policy.Resolve()
	if err != nil || !reach.InPrivateTmp(&res, a.spec.Dir, step.Step.Path) {
		return known
	}
	return &executor.StartError{Program: start.Program, NotFound: true,
		Err: fmt.Errorf("%s %w", text.Word(step.Step.Path), executor.ErrPrivateTmp)}
}

// covered reports whether the machine has a directory, and a policy can show it.
func covered(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir() && !hostfacts.Below(name, "/proc")
}

// namespaceError is the error of a kernel that makes no namespaces.
func namespaceError(errno syscall.Errno) error {
	return &sandbox.UnsupportedError{
		Need: "a user namespace of its own",
		Have: fmt.Sprintf("the kernel refused to create one (%v)", errno),
		Hint: hostfacts.NamespaceHint(),
	}
}
