// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A moved is a variable with a directory that tools use in the place of one in the home directory.
type moved struct{ name, instead string }

// directoryVariables are what the manuals of the tools say.
var directoryVariables = []moved{
	{"XDG_CONFIG_HOME", ".config"}, {"XDG_DATA_HOME", ".local/share"}, {"XDG_STATE_HOME", ".local/state"}, {"XDG_CACHE_HOME", ".cache"},
	{"GNUPGHOME", ".gnupg"}, {"AZURE_CONFIG_DIR", ".azure"}, {"AZD_CONFIG_DIR", ".azd"}, {"CLOUDSDK_CONFIG", ".config/gcloud"}, {"DOCKER_CONFIG", ".docker"},
	{"CARGO_HOME", ".cargo"}, {"GRADLE_USER_HOME", ".gradle"}, {"COMPOSER_HOME", ".composer"}, {"BUNDLE_USER_HOME", ".bundle"}, {"BUNDLE_APP_CONFIG", ".bundle"},
	{"CLAUDE_CONFIG_DIR", ".claude"}, {"CODEX_HOME", ".codex"}, {"COPILOT_HOME", ".copilot"}, {"CONTINUE_GLOBAL_DIR", ".continue"}, {"CLINE_DIR", ".cline"},
	{"GH_CONFIG_DIR", ".config/gh"}, {"GLAB_CONFIG_DIR", ".config/glab-cli"}, {"HF_HOME", ".cache/huggingface"}, {"PASSWORD_STORE_DIR", ".password-store"},
	{"KAGGLE_CONFIG_DIR", ".kaggle"}, {"DBT_PROFILES_DIR", ".dbt"}, {"SNOWFLAKE_HOME", ".snowflake"}, {"HELM_CONFIG_HOME", ".config/helm"}, {"MINIKUBE_HOME", ".minikube"},
	{"IPYTHONDIR", ".ipython"}, {"PULUMI_HOME", ".pulumi"}, {"TELEPORT_HOME", ".tsh"}, {"MC_CONFIG_DIR", ".mc"}, {"FLY_CONFIG_DIR", ".fly"}, {"NETLIFY_CONFIG_DIR", ".config/netlify"},
	{"ARGOCD_CONFIG_DIR", ".config/argocd"}, {"OP_CONFIG_DIR", ".config/op"}, {"NUGET_CONFIG_HOME", ".nuget/NuGet"}, {"POETRY_CONFIG_DIR", ".config/pypoetry"},
	{"JUPYTER_RUNTIME_DIR", ".local/share/jupyter/runtime"}, {"ELECTRUMDIR", ".electrum"}, {"STEPPATH", ".step"}, {"WEECHAT_HOME", ".weechat"}, {"DOPPLER_CONFIG_DIR", ".doppler"},
	{"CRUSH_GLOBAL_DATA", ".local/share/crush"}, {"CRUSH_GLOBAL_CONFIG", ".config/crush"}, {"OPENCODE_CONFIG_DIR", ".config/opencode"}, {"CURSOR_CONFIG_DIR", ".cursor"}, {"LLM_USER_PATH", ".config/io.datasette.llm"},
	{"UV_CREDENTIALS_DIR", ".local/share/uv/credentials"}, {"JFROG_CLI_HOME_DIR", ".jfrog"}, {"WRANGLER_HOME", ".config/.wrangler"}, {"MINISIGN_CONFIG_DIR", ".minisign"}, {"PASSAGE_DIR", ".passage"}, {"BORG_KEYS_DIR", ".config/borg"},
	{"LEGO_PATH", ".lego"}, {"KIMI_SHARE_DIR", ".kimi"}, {"AWS_VAULT_FILE_DIR", ".awsvault/keys"},
	{"BITWARDENCLI_APPDATA_DIR", ".config/Bitwarden CLI"}, {"LEIN_HOME", ".lein"},
}

// A naming is a variable with the path of a file.
type naming struct {
	name string
	kind string
	// file is the name of it in the directory that the variable names; empty where it names the file.
	file string
	// as is the path of a line of the table for settings, which are looked into; empty for a store.
	as string
}

// fileVariables are what the manuals of the tools say. Several paths may stand in one, with colons.
var fileVariables = []naming{
	{name: "KUBECONFIG", kind: "kube"}, {name: "TALOSCONFIG", kind: "kube"}, {name: "HELM_REGISTRY_CONFIG", kind: "kube"}, {name: "HELM_REPOSITORY_CONFIG", kind: "kube"},
	{name: "AWS_SHARED_CREDENTIALS_FILE", kind: "aws"}, {name: "AWS_CONFIG_FILE", kind: "aws"}, {name: "AWS_WEB_IDENTITY_TOKEN_FILE", kind: "aws"}, {name: "BOTO_CONFIG", kind: "aws"},
	{name: "S3CMD_CONFIG", kind: "aws"}, {name: "S3CFG", kind: "aws"}, {name: "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", kind: "aws"},
	{name: "GOOGLE_APPLICATION_CREDENTIALS", kind: "gcloud"}, {name: "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", kind: "gcloud"}, {name: "BIGQUERYRC", kind: "gcloud"}, {name: "GOOGLE_GHA_CREDS_PATH", kind: "gcloud"},
	{name: "AZURE_AUTH_LOCATION", kind: "azure"}, {name: "AZURE_FEDERATED_TOKEN_FILE", kind: "azure"}, {name: "AZURE_CLIENT_CERTIFICATE_PATH", kind: "azure"},
	{name: "OCI_CLI_CONFIG_FILE", kind: "cloud"}, {name: "RCLONE_CONFIG", kind: "cloud"}, {name: "OS_CLIENT_CONFIG_FILE", kind: "cloud"}, {name: "OS_CLIENT_SECURE_FILE", kind: "cloud"}, {name: "DATABRICKS_CONFIG_FILE", kind: "cloud"},
	{name: "TUNNEL_ORIGIN_CERT", kind: "cloud"}, {name: "TUNNEL_CRED_FILE", kind: "cloud"}, {name: "NGROK_CONFIG", kind: "cloud"}, {name: "MODAL_CONFIG_PATH", kind: "cloud"}, {name: "LINODE_CLI_CONFIG", kind: "cloud"},
	{name: "SNOWSQL_CONFIG", kind: "cloud"}, {name: "SCW_CONFIG_PATH", kind: "cloud"}, {name: "HCLOUD_CONFIG", kind: "cloud"}, {name: "INFLUX_CONFIGS_PATH", kind: "cloud"},
	{name: "PGPASSFILE", kind: "database"}, {name: "PGSERVICEFILE", kind: "database", as: ".pg_service.conf"}, {name: "PGSSLKEY", kind: "database"}, {name: "MYSQL_TEST_LOGIN_FILE", kind: "database"},
	{name: "MYSQL_HOME", kind: "database", file: "my.cnf", as: ".my.cnf"}, {name: "PGSYSCONFDIR", kind: "database", file: "pg_service.conf", as: ".pg_service.conf"}, {name: "ODBCINI", kind: "database", as: ".odbc.ini"}, {name: "CQLSHRC", kind: "database", as: ".cassandra/cqlshrc"},
	{name: "GEMINI_CLI_HOME", kind: "agent", file: ".gemini/oauth_creds.json"}, {name: "GEMINI_CLI_HOME", kind: "agent", file: ".gemini/mcp-oauth-tokens.json"}, {name: "GEMINI_CLI_HOME", kind: "agent", file: ".gemini/.env"},
	{name: "OPENCODE_CONFIG", kind: "agent", as: ".config/opencode/opencode.json"}, {name: "GOOSE_PATH_ROOT", kind: "agent", file: "config/secrets.yaml"}, {name: "AMP_SETTINGS_FILE", kind: "agent"}, {name: "AIDER_ENV_FILE", kind: "agent"}, {name: "AIDER_CONFIG_FILE", kind: "agent", as: ".aider.conf.yml"},
	{name: "RESTIC_PASSWORD_FILE", kind: "keyring"}, {name: "BORG_KEY_FILE", kind: "keyring"}, {name: "PASSAGE_IDENTITIES_FILE", kind: "keyring"}, {name: "COSIGN_KEY", kind: "keyring"}, {name: "CAROOT", kind: "keyring", file: "rootCA-key.pem"}, {name: "VAULT_TOKEN_FILE", kind: "vault"},
	{name: "CONSUL_HTTP_TOKEN_FILE", kind: "vault"}, {name: "NOMAD_TOKEN_FILE", kind: "vault"}, {name: "CONSUL_CLIENT_KEY", kind: "vault"}, {name: "NOMAD_CLIENT_KEY", kind: "vault"}, {name: "DOCKER_CERT_PATH", kind: "docker", file: "key.pem"}, {name: "GITHUB_TOKEN_FILE", kind: "gh"}, {name: "GITLAB_TOKEN_FILE", kind: "gh"},
	{name: "OPENAI_API_KEY_FILE", kind: "agent"}, {name: "ANTHROPIC_API_KEY_FILE", kind: "agent"}, {name: "EXOSCALE_CONFIG", kind: "cloud"}, {name: "SENTRY_PROPERTIES", kind: "cloud"}, {name: "PREFECT_PROFILES_PATH", kind: "cloud", as: ".prefect/profiles.toml"}, {name: "CLEARML_CONFIG_FILE", kind: "cloud", as: "clearml.conf"},
	{name: "POSTGRES_PASSWORD_FILE", kind: "database"}, {name: "MYSQL_PASSWORD_FILE", kind: "database"}, {name: "MYSQL_ROOT_PASSWORD_FILE", kind: "database"}, {name: "DB_PASSWORD_FILE", kind: "database"}, {name: "MSMTP_CONFIG", kind: "mail"}, {name: "MAILRC", kind: "mail"}, {name: "P4TICKETS", kind: "git"}, {name: "HGRCPATH", kind: "git", as: ".hgrc"},
	{name: "MYCLI_HISTFILE", kind: "history"}, {name: "LESSHISTFILE", kind: "history"}, {name: "TWINE_CONFIG_FILE", kind: "pypi", as: ".pypirc"},
	{name: "NETRC", kind: "netrc"}, {name: "CLAUDE_CONFIG_DIR", kind: "agent", file: ".claude.json"}, {name: "CURL_HOME", kind: "netrc", file: ".netrc"}, {name: "CURL_HOME", kind: "netrc", file: ".curlrc", as: ".curlrc"}, {name: "WGETRC", kind: "netrc", as: ".wgetrc"},
	{name: "HISTFILE", kind: "history"}, {name: "ZDOTDIR", kind: "history", file: ".zsh_history"}, {name: "ZDOTDIR", kind: "history", file: ".zhistory"}, {name: "PYTHON_HISTORY", kind: "history"}, {name: "NODE_REPL_HISTORY", kind: "history"}, {name: "PSQL_HISTORY", kind: "history"},
	{name: "MYSQL_HISTFILE", kind: "history"}, {name: "MARIADB_HISTFILE", kind: "history"}, {name: "SQLITE_HISTORY", kind: "history"}, {name: "REDISCLI_HISTFILE", kind: "history"}, {name: "VALKEYCLI_HISTFILE", kind: "history"}, {name: "IRB_HISTORY", kind: "history"}, {name: "DENO_REPL_HISTORY", kind: "history"}, {name: "USQL_HISTORY", kind: "history"},
	{name: "R_HISTFILE", kind: "history"}, {name: "JULIA_HISTORY", kind: "history"}, {name: "ATUIN_DB_PATH", kind: "history"}, {name: "ATUIN_KEY_PATH", kind: "history"}, {name: "AIDER_INPUT_HISTORY_FILE", kind: "history"}, {name: "AIDER_CHAT_HISTORY_FILE", kind: "history"},
	{name: "NPM_CONFIG_USERCONFIG", kind: "npm", as: ".npmrc"}, {name: "npm_config_userconfig", kind: "npm", as: ".npmrc"}, {name: "NPM_CONFIG_GLOBALCONFIG", kind: "npm", as: ".npmrc"}, {name: "npm_config_globalconfig", kind: "npm", as: ".npmrc"},
	{name: "PIP_CONFIG_FILE", kind: "pypi", as: ".config/pip/pip.conf"}, {name: "UV_CONFIG_FILE", kind: "pypi", as: ".config/uv/uv.toml"}, {name: "CONDARC", kind: "conda", as: ".condarc"},
	{name: "TF_CLI_CONFIG_FILE", kind: "terraform", as: ".terraformrc"}, {name: "TERRAFORM_CONFIG", kind: "terraform", as: ".terraformrc"},
	{name: "VAULT_CONFIG_PATH", kind: "vault"}, {name: "VAULT_CLIENT_KEY", kind: "vault"}, {name: "ANSIBLE_VAULT_PASSWORD_FILE", kind: "ansible"}, {name: "ANSIBLE_PRIVATE_KEY_FILE", kind: "ansible"}, {name: "ANSIBLE_GALAXY_TOKEN_PATH", kind: "ansible"},
	{name: "SOPS_AGE_KEY_FILE", kind: "keyring"}, {name: "SOPS_AGE_SSH_PRIVATE_KEY_FILE", kind: "keyring"}, {name: "KRB5_KTNAME", kind: "keyring"}, {name: "KRB5_CLIENT_KTNAME", kind: "keyring"}, {name: "KRB5CCNAME", kind: "keyring"},
	{name: "REGISTRY_AUTH_FILE", kind: "docker", as: ".docker/config.json"}, {name: "BUNDLE_USER_CONFIG", kind: "gem", as: ".bundle/config"}, {name: "BUNDLE_CONFIG", kind: "gem", as: ".bundle/config"}, {name: "GEMRC", kind: "gem", as: ".gemrc"},
	{name: "GIT_CONFIG_GLOBAL", kind: "git", as: ".gitconfig"}, {name: "HF_TOKEN_PATH", kind: "huggingface"}, {name: "NOTMUCH_CONFIG", kind: "mail"},
}

// named returns the stores at which variables say that they are.
func (s *SecretSearch) named(git []string) []Store {
	if s.Env == nil {
		return nil
	}
	var out []Store
	for _, v := range directoryVariables {
		if dir := s.path(s.Env(v.name)); dir != "" && !s.usual(dir, v.instead) {
			out = append(out, s.movedTo(dir, v.instead)...)
		}
	}
	for i := range fileVariables {
		v := &fileVariables[i]
		if value := s.Env(v.name); value != "" && !s.granted(v.kind) {
			for part := range strings.SplitSeq(strings.TrimPrefix(value, "FILE:"),
				string(filepath.ListSeparator)) {
				out = append(out, s.file(v, part)...)
			}
		}
	}
	return append(out, s.gitStore(git)...)
}

// path returns the absolute path that a variable means; "" for none.
func (s *SecretSearch) path(value string) string {
	if rest, ok := strings.CutPrefix(value, "~"); ok && (rest == "" || rest[0] == '/') && len(s.Homes) > 0 {
		value = s.Homes[0] + rest
	}
	switch {
	case value == "" || !filepath.IsAbs(value) && s.Dir == "":
		return ""
	case filepath.IsAbs(value):
		return filepath.Clean(value)
	}
	return filepath.Join(s.Dir, value)
}

// usual reports whether a directory is the one in a home directory.
func (s *SecretSearch) usual(dir, instead string) bool {
	return slices.ContainsFunc(s.Homes, func(home string) bool { return dir == filepath.Join(home, instead) })
}

// movedTo returns the stores in a directory that takes the place of one in the home directory.
func (s *SecretSearch) movedTo(dir, instead string) []Store {
	var out []Store
	names := listed(dir)
	if names != nil && len(names.all) == 0 {
		return nil
	}
	inside := filepath.Join(dir, "a")
	if at := there(inside); at != "" && at != inside && s.apart(at) {
		return []Store{{Name: other, Path: at}} // closed: what exists is not known
	}
	d := &directories{home: dir, names: names}
	for i := range kinds {
		k := &kinds[i]
		if s.granted(k.name) {
			continue
		}
		part := kind{name: k.name}
		for _, path := range k.paths {
			if path == instead && s.apart(dir) {
				out = append(out, Store{Name: k.name, Path: dir})
			}
			if rest, ok := strings.CutPrefix(path, instead+"/"); ok {
				part.paths = append(part.paths, rest)
			}
		}
		for _, f := range k.files {
			if rest, ok := strings.CutPrefix(f.path, instead+"/"); ok {
				f.path = rest
				part.files = append(part.files, f)
			}
		}
		out = append(out, d.stores(&part)...)
	}
	return out
}

// apart reports whether a directory can be a store as a whole: it is none that commands need, such as a
// home, the working directory, one above them, or one of the system.
func (s *SecretSearch) apart(dir string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if strings.Count(dir, string(filepath.Separator)) < 2 {
		return false
	}
	return !slices.ContainsFunc(append(slices.Clone(s.Homes), s.Dir), func(at string) bool {
		return at == dir || strings.HasPrefix(at, dir+string(filepath.Separator))
	})
}

// file returns the store at a path that a variable names. A directory is none: the tool would not read it.
func (s *SecretSearch) file(v *naming, value string) []Store {
	path := s.path(value)
	if path == "" {
		return nil
	}
	path = filepath.Join(path, v.file)
	info, err := os.Stat(path)
	if at := there(path); err != nil && at != "" && at != path && s.apart(at) {
		return []Store{{Name: v.kind, Path: at}} // closed: what exists is not known
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if v.as == "" {
		return []Store{{Name: v.kind, Path: path}}
	}
	for i := range kinds {
		for j := range kinds[i].files {
			if f := &kinds[i].files[j]; f.path == v.as {
				found, _ := f.store(v.kind, path)
				return found
			}
		}
	}
	return nil
}

// gitStore returns the file that git's helper "store" has at another place, as settings of the user say.
func (s *SecretSearch) gitStore(settings []string) []Store {
	var out []Store
	for _, text := range settings {
		if !strings.Contains(text, "--file") {
			continue
		}
		for line := range strings.Lines(text) {
			_, words, ok := strings.Cut(line, "store")
			_, path, named := strings.Cut(words, "--file")
			if ok && named {
				path = strings.Trim(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(path), "=")), `"'`)
				out = append(out, s.file(&naming{kind: "git"}, path)...)
			}
		}
	}
	return out
}
