// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
)

// TestWide: a prefix is too wide to be remembered if what follows it is a command or code.
func TestWide(t *testing.T) {
	for want, text := range map[bool]string{
		true: "timeout 5|sudo -u root|git -c|busybox sh -c|docker run|script -c|sallyport run|uv run|bash|" +
			"bash -c|python3|python3 -c|python3.12 -c|node -e|npx|npx -y|xargs|xargs -n1|find . -exec|" +
			"ssh host|ssh -p 22 host|env FOO=1|nice -n 5|docker run --rm alpine|docker exec app|" +
			"kubectl exec pod --|npm exec|npm run|poetry run|nohup|setsid|flock l|strace -f|perl -e|ruby|awk|" +
			"sed|sed -e|awk -f|make -f|source|.|eval|trap|watch|parallel|tmux new|screen -dm|busybox|socat|" +
			"socat -|time -p|command -p|su -c|su root -c|sg x -c|git submodule foreach|git bisect run|" +
			"git rebase -x|git -C x|git --no-pager|ssh -o|hyperfine|direnv exec .|nix-shell --run|bun x|" +
			"sh -x|bash -euo pipefail -c|exec -a x|docker compose run|npm exec --|env -u A|sudo|sudo -n|" +
			"stdbuf -oL|xvfb-run|gdb -ex|lua -e|php -r|osascript -e|uv tool run|rlwrap|ltrace|bash -lc|" +
			"emacs --eval|vim -c|rsync -e|tar --to-command|npx -p x|pipx run|conda run -n x|cargo watch -x|" +
			"jobs -x|mapfile -C|split --filter|rg --pre|choom -n 1|apt-get -o|cmake -E|ip netns exec x|tmux -c|" +
			"dpkg --pre-invoke|mise exec -c|bazel run --run_under|consul lock x",
		false: "make all|git push|git status|ls|ls -l|go test|go build|npm test|npm run test|npm install|" +
			"cargo build|cargo test|docker ps|docker build|kubectl get|tar|tar xzf|rm -rf build|" +
			"bash build.sh|python3 a.py|sudo -n ls|timeout 5 make|npx tsc|uv run pytest|find .|find . -name|" +
			"git -C x status|pip install|apt-get install|curl|curl -s|terraform plan|pytest|" +
			"python3 -m pytest|node server.js|touch|tee|tee -a log|cp|grep -r|awk {print}|./script.sh|./x|" +
			"gh pr|go run ./cmd|cargo run|mvn package|./gradlew test|docker compose up|git commit -m|" +
			"cmake --build b|apt-get -y install|ip addr|python3 -m pip install|yarn install|poetry install|bundle install|vim a|jq .|sed -i s/a/b/|perl a.pl|ruby a.rb",
	} {
		for _, prefix := range strings.Split(text, "|") {
			if got := wide(strings.Fields(prefix)); got != want {
				t.Errorf("%s: too wide %v, want %v", prefix, got, want)
			}
		}
	}
}
