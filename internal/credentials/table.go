// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

// A kind is one sort of store, with the name after "credentials:".
type kind struct {
	name  string
	what  string // for people
	paths []string
	// keys are directories whose files are looked into: those that hold a private key are
	// stores, and the others stay visible.
	keys []string
	// files are stores only if they hold one of the words: without, they are settings.
	files []file
}

type file struct {
	path  string
	words []string
}

// kinds are what is hidden. Paths are relative to a home directory. Each is where the tool
// itself keeps secrets by default (its manual), not where a user may put them.
var kinds = []kind{
	{name: "agent", what: "logins of other agents", paths: []string{
		".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json",
		".config/github-copilot", ".cursor/auth.json", ".config/cursor/auth.json", ".local/share/opencode/auth.json",
		".continue/.env", ".config/goose/secrets.yaml", ".config/zed/credentials",
	}, files: []file{{".aider.conf.yml", []string{"key"}}}},
	{name: "ansible", what: "vault passwords of Ansible", paths: []string{".vault_pass", ".vault_pass.txt", ".ansible/vault_pass"}},
	{name: "aws", what: "keys and tokens of AWS", paths: []string{".aws", ".boto", ".s3cfg"}},
	{name: "azure", what: "logins of Azure", paths: []string{".azure", ".config/azure"}},
	{name: "browser", what: "profiles of browsers", paths: []string{
		".mozilla", ".librewolf", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
		".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", "snap/firefox", "snap/chromium",
		"Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Application Support/Chromium",
		"Library/Application Support/BraveSoftware", "Library/Application Support/Microsoft Edge", "Library/Safari", "Library/Cookies",
	}},
	{name: "cargo", what: "tokens of Cargo", paths: []string{".cargo/credentials", ".cargo/credentials.toml"}},
	{name: "cloud", what: "tokens of other clouds", paths: []string{
		".config/doctl", ".config/hcloud", ".config/heroku", ".oci", ".config/rclone/rclone.conf", ".rclone.conf", ".config/scw", ".config/fly",
		".fly", ".config/netlify", ".config/vercel", ".local/share/com.vercel.cli", ".config/wrangler", ".wrangler", ".linode-cli", ".config/linode-cli",
		".bluemix", ".aliyun", ".config/openstack", ".config/railway", ".supabase/access-token", ".pulumi/credentials.json",
	}},
	{name: "composer", what: "logins of Composer", paths: []string{".composer/auth.json", ".config/composer/auth.json"}},
	{name: "database", what: "passwords of databases", paths: []string{".pgpass", ".mylogin.cnf", ".config/mongodb"}, files: []file{
		{".my.cnf", []string{"password"}}, {".pg_service.conf", []string{"password"}},
	}},
	{name: "docker", what: "logins of Docker and Podman", paths: []string{".docker/config.json", ".config/containers/auth.json"}},
	{name: "gcloud", what: "logins of Google Cloud", paths: []string{".config/gcloud", ".gsutil"}},
	{name: "gem", what: "keys of RubyGems", paths: []string{".gem/credentials", ".local/share/gem/credentials"}},
	{name: "gh", what: "tokens of gh, hub and glab", paths: []string{".config/gh", ".config/hub", ".config/glab-cli", ".config/tea"}},
	{name: "git", what: "passwords that git stores", paths: []string{".git-credentials", ".config/git/credentials", ".git-credential-cache"}},
	{name: "gnupg", what: "private keys of GnuPG", paths: []string{".gnupg/private-keys-v1.d", ".gnupg/secring.gpg"}},
	{name: "gradle", what: "passwords in Gradle's settings", files: []file{{".gradle/gradle.properties", []string{"assword", "oken", "ecret"}}}},
	{name: "history", what: "histories of shells and clients", paths: []string{
		".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".ash_history", ".local/share/fish/fish_history", ".config/fish/fish_history",
		".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".irb_history", ".zsh_sessions",
	}},
	{name: "huggingface", what: "tokens of Hugging Face", paths: []string{".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token"}},
	{name: "keyring", what: "keyrings and password managers", paths: []string{
		".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet", ".password-store", ".config/op", ".config/Bitwarden CLI",
		".config/keepassxc", "Library/Keychains", ".local/share/pass", ".config/sops/age", ".age",
	}},
	{name: "kube", what: "logins of Kubernetes", paths: []string{".kube"}},
	{name: "maven", what: "passwords of Maven", paths: []string{".m2/settings-security.xml"}, files: []file{{".m2/settings.xml", []string{"<password>"}}}},
	{name: "netrc", what: "logins in .netrc", paths: []string{".netrc", "_netrc", ".authinfo", ".authinfo.gpg"}},
	{name: "npm", what: "tokens of npm and yarn", files: []file{
		{".npmrc", []string{"_auth", "_password"}}, {".yarnrc", []string{"_auth", "_password"}}, {".yarnrc.yml", []string{"npmAuth"}},
	}},
	{name: "nuget", what: "keys of NuGet", files: []file{
		{".nuget/NuGet/NuGet.Config", []string{"assword"}}, {".config/NuGet/NuGet.Config", []string{"assword"}},
	}},
	{name: "pypi", what: "passwords for PyPI", files: []file{
		{".pypirc", []string{"password"}}, {".config/pip/pip.conf", []string{"@"}}, {".pip/pip.conf", []string{"@"}},
		{".config/pypoetry/auth.toml", []string{"="}},
	}},
	{name: "ssh", what: "private keys of SSH", keys: []string{".ssh"}},
	{name: "terraform", what: "tokens of Terraform", paths: []string{".terraform.d/credentials.tfrc.json"}, files: []file{{".terraformrc", []string{"token"}}}},
	{name: "vault", what: "tokens of Vault", paths: []string{".vault-token"}},
	{name: "wallet", what: "wallets", paths: []string{".config/solana/id.json", ".ethereum/keystore", ".bitcoin", ".electrum", ".config/Exodus"}},
}
