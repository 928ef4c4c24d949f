// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	for _, test := range []struct{ name, words, want string }{
		{"nothing", "ls|-l|--color=auto", "ls|-l|--color=auto"},
		{"a flag with its value", "x|--token=abc|b", "x|--token=***|b"},
		{"a flag and its value", "x|--api-key|abc|b", "x|--api-key|***|b"},
		{"a flag and another one", "x|--token|--verbose|b", "x|--token|--verbose|b"},
		{"a variable", "env|API_KEY=abc|LANG=C", "env|API_KEY=***|LANG=C"},
		{"a password", "x|--password|abc|PGPASSWORD=abc", "x|--password|***|PGPASSWORD=***"},
		{"an address", "git|clone|https://me:abc@h/r?x=1", "git|clone|https://me:***@h/r?x=1"},
		{"an address without a password", "git|clone|https://me@h/a:b@c", "git|clone|https://me@h/a:b@c"},
		{"a token in an address", "curl|https://h/?access_token=abc", "curl|https://h/?access_token=***"},
		{"a header", "curl|-H|Authorization: Bearer abc", "curl|-H|Authorization: Bearer ***"},
		{"a header of one word", "curl|-H|X-Api-Key:abc", "curl|-H|X-Api-Key:***"},
		{"a script", "sh|-c|export TOKEN=abc && curl -H 'X-Secret: def' --key ghi \\\n  h", "sh|-c|export TOKEN=*** && curl -H 'X-Secret: ***' --key *** \\\n  h"},
		{"quotes in a script", `sh|-c|TOKEN="abc" run`, `sh|-c|TOKEN=***" run`},
		{"a line of a script", "sh|-c|x --token\nls", "sh|-c|x --token\nls"},
		{"an empty word", "x|--token||b", "x|--token||b"},
		{"a password of MySQL", "mysql|-uroot|-phunter2|db", "mysql|-uroot|-p***|db"},
		{"any password of MySQL", "/usr/bin/mysqldump|-p12|-p|db", "/usr/bin/mysqldump|-p***|-p|db"},
		{"below other programs", "sudo|docker|exec|c|mariadb|-psecret", "sudo|docker|exec|c|mariadb|-p***"},
		{"in a script of a program", "sh|-c|cd /x; mysql -uroot -psecret db </dev/null", "sh|-c|cd /x; mysql -uroot -p*** db </dev/null"},
		{"in quotes in a script", "ssh|h|sh -c 'mysql -psecret db'", "ssh|h|sh -c 'mysql -p*** db'"},
		{"quotes as value", `sh|-c|mysql -p"sec ret" db`, `sh|-c|mysql -p***" db`},
		{"a program that is not known", "true|-phunter2", "true|-p***"},
		{"flags that are no passwords", "find|.|-path|./x|-prune|-o|-print0", "find|.|-path|./x|-prune|-o|-print0"},
		{"ports and modes", "ssh|-p2222|-p8080:80|-p1-65535|-pR|-p", "ssh|-p2222|-p8080:80|-p1-65535|-pR|-p"},
		{"flags with a value", "x|-parallelism=10|-p:Configuration=Release", "x|-parallelism=10|-p:Configuration=Release"},
		{"a separate password", "sshpass|-p|hunter2|ssh|h", "sshpass|-p|***|ssh|h"},
		{"an archive", "7z|a|-psecret|x.7z", "7z|a|-p***|x.7z"},
		{"another letter", "redis-cli|-a|hunter2|ping", "redis-cli|-a|***|ping"},
		{"a login", "docker|login|-u|me|-p|hunter2|r.example", "docker|login|-u|me|-p|***|r.example"},
		{"a user and a password", "curl|-u|me:hunter2|--user|me:hunter2|-ume:hunter2|--proxy-user=me:hunter2|-u|me|u",
			"curl|-u|me:***|--user|me:***|-ume:***|--proxy-user=me:***|-u|me|u"},
		{"a user elsewhere", "chown|-u|a:b", "chown|-u|a:b"},
		{"another separator", "sh|-c|mysql -psecret; mkdir -pv /x/y; ls", "sh|-c|mysql -p*** mkdir -pv /x/y; ls"},
		{"new names", "x|--auth|abc|DB_PWD=abc|--session=abc|HOOK_WEBHOOK=abc", "x|--auth|***|DB_PWD=***|--session=***|HOOK_WEBHOOK=***"},
		{"innocent names", "git|commit|--author=Me|--author|Me|KEYBOARD_LAYOUT=de|PWD=/x", "git|commit|--author=Me|--author|Me|KEYBOARD_LAYOUT=de|PWD=/x"},
		{"flags without a value", "x|--no-password|a|--private|b", "x|--no-password|a|--private|b"},
		{"a variable as a value", "docker|run|--env=API_KEY=abc|-eAPI_KEY=abc|x", "docker|run|--env=API_KEY=***|-eAPI_KEY=***|x"},
		{"a value with spaces", "env|PASSPHRASE=one two three|ls", "env|PASSPHRASE=***|ls"},
		{"a flag's value with spaces", "x|--password=one two|--password|one two", "x|--password=***|--password|***"},
		{"a quoted value with spaces", `sh|-c|PASSPHRASE="one two" run`, `sh|-c|PASSPHRASE=***" run`},
		{"an apostrophe", "sh|-c|echo don't --token abc", "sh|-c|echo don't --token ***"},
		{"a later parameter", "curl|https://h/?a=b&access_token=abc&c=d", "curl|https://h/?a=b&access_token=***"},
		{"a host with such a name", "curl|https://keys.example:8443/x?a=b", "curl|https://keys.example:8443/x?a=b"},
		{"JSON", `curl|-d|{"user":"me","password":"abc"}`, `curl|-d|{"user":"me","password":***`},
		{"JSON with spaces", `curl|-d|{"user": "me", "password": "abc"}`, `curl|-d|{"user": "me", "password": ***`},
		{"a scheme of a header", "curl|-H|Authorization: Digest a=b, c=d", "curl|-H|Authorization: Digest ***"},
		{"the second address", "x|https://a/,https://me:abc@h/", "x|https://a/,https://me:***@h/"},
		{"an address in a script", "sh|-c|git clone 'https://me:a/b@h/x' && ls", "sh|-c|git clone 'https://me:***@h/x' && ls"},
		{"a variable with an address", "env|URL=postgres://me:abc@h/x|x", "env|URL=postgres://me:***@h/x|x"},
		{"a private key", "x|a " + "-----BEGIN EC PRIVATE" + " KEY-----\nabc\n-----END EC PRIVATE" + " KEY----- b", "x|a *** b"},
		{"a private key without an end", "x|-----BEGIN EC PRIVATE" + " KEY-----\nabc\n", "x|***"},
		{"a token", "x|a=ghp_" + strings.Repeat("a1B2", 9) + ",b", "x|a=***,b"},
		{"a grant", "sallyport|--grant|credentials:aws|--grant=credentials:all|credentials: abc", "sallyport|--grant|credentials:aws|--grant=credentials:all|credentials: ***"},
		{"an escaped space", `sh|-c|PASSPHRASE=one\ two run`, "sh|-c|PASSPHRASE=*** run"},
		{"masked already", "x|-p***|--token=***|https://me:***@h/", "x|-p***|--token=***|https://me:***@h/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(Mask(strings.Split(test.words, "|")), "|"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzMask plants a secret behind each kind of mark, between arguments that are drawn.
func FuzzMask(f *testing.F) {
	f.Add("sh", "-c", "mysql -pX 'a \"b' --token")
	f.Add("curl", "-u", "a:b")
	f.Add("-----BEGIN ", "https://me:x@", "{\"key\": ")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		const secret = "q7hunter2q7"
		if strings.Contains(a+b+c, secret) {
			return
		}
		for _, planted := range [][]string{
			{"--password=" + secret}, {"API_KEY=" + secret}, {"-p" + secret}, {"mysql", "-p" + secret},
			{"https://me:" + secret + "@host/"}, {"run " + a + " postgres://me:" + secret + "@host/"},
			{"--x", "--token", secret}, {"--x", "PASSPHRASE=one " + secret}, {"X-Api-Key: " + secret},
			{"-c", "true\nrun --token " + secret}, {"-c", "true\nmysql -u root -p" + secret + "; true"},
		} {
			args := append(append([]string{a, b}, planted...), c)
			before := strings.Join(args, "\x00")
			got := Mask(args)
			if len(got) != len(args) || strings.Join(args, "\x00") != before {
				t.Fatalf("%q became %q", args, got)
			}
			if strings.Contains(strings.Join(got, "\x00"), secret) {
				t.Fatalf("%q is not masked: %q", args, got)
			}
		}
	})
}
