package cli

import "context"

func hookDoctor(ctx context.Context, env *Env, o *options, _ []string) error { return nil }
