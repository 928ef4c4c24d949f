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
	// files are stores only if they hold a secret: without, they are settings.
	files []file
}

// A file is settings that may hold a secret.
type file struct {
	path string
	// words: one of them is in every such file with a secret. With a form they are not needed.
	words []string
	// form is what it is written in: a copy without the secret can be shown. None: it is hidden.
	form form
}

// other is the name of what has no line in the table and is found by its content.
const other = "other"

// kinds are what is hidden. Paths are relative to a home directory. Each is where the tool
// itself keeps secrets by default (its manual), not where a user may put them; for those see
// variables.
var kinds = []kind{
	{name: "agent", what: "logins of other agents", paths: []string{
		".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json",
		".gemini/mcp-oauth-tokens.json", ".gemini/.env", ".qwen/oauth_creds.json", ".qwen/.env", ".qwen/mcp-oauth-tokens.json",
		".copilot/config.json", ".copilot/mcp-oauth-config", ".copilot/mcp-config.json", ".config/github-copilot", ".cursor/auth.json", ".config/cursor/auth.json",
		".cursor/mcp-auth.json", ".mcp-auth",
		".codeium/config.json", ".codeium/windsurf/mcp_config.json", ".local/share/amazon-q", ".local/share/kiro-cli", ".aws/amazonq", ".kiro/settings/mcp.json",
		".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json", ".local/share/crush/crush.json", ".config/crush/crush.json", ".config/amp/settings.json", ".local/share/amp/secrets.json",
		".continue/.env", ".continue/config.json", ".continue/config.yaml", ".cline/data/secrets.json", ".cline/secrets.json", ".config/goose/secrets.yaml", ".config/zed/credentials",
		".config/io.datasette.llm/keys.json", ".config/openai", ".openai", ".config/anthropic", ".factory/auth.json", ".config/shell_gpt/.sgptrc", ".config/aichat/config.yaml",
		".config/mods/mods.yml", ".config/fabric/.env", ".config/plandex-home/auth.json", ".plandex-home", ".grok/user-settings.json", ".augment/session.json",
		".config/Claude/claude_desktop_config.json", "Library/Application Support/Claude/claude_desktop_config.json",
		".config/Code/User/globalStorage/state.vscdb", ".config/Code/User/globalStorage/state.vscdb.backup", ".config/Code/User/globalStorage/saoudrizwan.claude-dev", ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/Code - Insiders/User/globalStorage/state.vscdb", ".config/Code - Insiders/User/globalStorage/state.vscdb.backup", ".config/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev", ".config/Code - Insiders/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/VSCodium/User/globalStorage/state.vscdb", ".config/VSCodium/User/globalStorage/state.vscdb.backup", ".config/VSCodium/User/globalStorage/saoudrizwan.claude-dev", ".config/VSCodium/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/Cursor/User/globalStorage/state.vscdb", ".config/Cursor/User/globalStorage/state.vscdb.backup", ".config/Cursor/User/globalStorage/saoudrizwan.claude-dev", ".config/Cursor/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/Windsurf/User/globalStorage/state.vscdb", ".config/Windsurf/User/globalStorage/state.vscdb.backup", ".config/Windsurf/User/globalStorage/saoudrizwan.claude-dev", ".config/Windsurf/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/Kiro/User/globalStorage/state.vscdb", ".config/Kiro/User/globalStorage/state.vscdb.backup", ".config/Kiro/User/globalStorage/saoudrizwan.claude-dev", ".config/Kiro/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/Trae/User/globalStorage/state.vscdb", ".config/Trae/User/globalStorage/state.vscdb.backup", ".config/Trae/User/globalStorage/saoudrizwan.claude-dev", ".config/Trae/User/globalStorage/rooveterinaryinc.roo-cline",
		".config/Antigravity/User/globalStorage/state.vscdb", ".config/Antigravity/User/globalStorage/state.vscdb.backup", ".config/Antigravity/User/globalStorage/saoudrizwan.claude-dev", ".config/Antigravity/User/globalStorage/rooveterinaryinc.roo-cline",
		".vscode-server/data/User/globalStorage/state.vscdb", ".vscode-server/data/User/globalStorage/state.vscdb.backup", ".vscode-server/data/User/globalStorage/saoudrizwan.claude-dev", ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline",
		".vscode-remote/data/User/globalStorage/state.vscdb", ".vscode-remote/data/User/globalStorage/state.vscdb.backup", ".vscode-remote/data/User/globalStorage/saoudrizwan.claude-dev", ".vscode-remote/data/User/globalStorage/rooveterinaryinc.roo-cline",
		".cursor-server/data/User/globalStorage/state.vscdb", ".cursor-server/data/User/globalStorage/state.vscdb.backup", ".cursor-server/data/User/globalStorage/saoudrizwan.claude-dev", ".cursor-server/data/User/globalStorage/rooveterinaryinc.roo-cline",
		".windsurf-server/data/User/globalStorage/state.vscdb", ".windsurf-server/data/User/globalStorage/state.vscdb.backup", ".windsurf-server/data/User/globalStorage/saoudrizwan.claude-dev", ".windsurf-server/data/User/globalStorage/rooveterinaryinc.roo-cline",
		".local/share/code-server/User/globalStorage/state.vscdb", ".local/share/code-server/User/globalStorage/state.vscdb.backup", ".local/share/code-server/User/globalStorage/saoudrizwan.claude-dev", ".local/share/code-server/User/globalStorage/rooveterinaryinc.roo-cline",
		"Library/Application Support/Code/User/globalStorage/state.vscdb", "Library/Application Support/Code/User/globalStorage/state.vscdb.backup", "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev", "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline",
		"Library/Application Support/Cursor/User/globalStorage/state.vscdb", "Library/Application Support/Cursor/User/globalStorage/state.vscdb.backup", "Library/Application Support/Cursor/User/globalStorage/saoudrizwan.claude-dev", "Library/Application Support/Cursor/User/globalStorage/rooveterinaryinc.roo-cline",
		"Library/Application Support/Windsurf/User/globalStorage/state.vscdb", "Library/Application Support/Windsurf/User/globalStorage/state.vscdb.backup", "Library/Application Support/Windsurf/User/globalStorage/saoudrizwan.claude-dev", "Library/Application Support/Windsurf/User/globalStorage/rooveterinaryinc.roo-cline",
		".codex/.credentials.json", ".codex/.env", ".gemini/a2a-oauth-tokens.json", ".amp/oauth", ".kilocode/cli", ".local/share/kilo/auth.json", ".config/kilo/auth.json", ".openhands/agent_settings.json", ".openhands/settings.json", ".openhands/secrets.json", ".openhands/secrets", ".aider/oauth-keys.env", ".config/TabNine", ".tabnine",
		"src-config.json", ".config/Claude", ".lmstudio/credentials", ".config/gptme/config.toml", ".config/aichat", ".chatgpt-cli", ".config/chatgpt-cli", ".config/open-interpreter", ".iflow/oauth_creds.json", ".vibe/.env", ".codebuddy/local_storage", ".forge/.credentials.json", ".forge/.env", ".junie/credentials.json",
		".pi/agent/auth.json", ".n8n", ".flowise", ".config/mcphub", ".config/codebuff", ".config/manicode", ".kimi/credentials",
	}, files: []file{{path: ".codex/config.toml", form: toml}, {path: ".config/goose/config.yaml", form: yaml}, {path: ".claude/settings.json", form: jsonText}, {path: ".claude/settings.local.json", form: jsonText}, {path: ".gemini/settings.json", form: jsonText}, {path: ".qwen/settings.json", form: jsonText}, {path: ".iflow/settings.json", form: jsonText}, {path: ".grok/settings.json", form: jsonText}, {path: ".letta/settings.json", form: jsonText}, {path: ".cursor/mcp.json", form: jsonText}, {path: ".mcp.json", form: jsonText}, {path: ".config/mcp/mcp.json", form: jsonText}, {path: ".vscode/mcp.json", form: jsonText}, {path: ".config/Code/User/mcp.json", form: jsonText}, {path: ".config/Cursor/User/mcp.json", form: jsonText}, {path: ".aider.conf.yml", words: []string{"key"}}, {path: ".config/opencode/opencode.json", words: []string{"apiKey", "oken"}}}},
	{name: "ansible", what: "vault passwords of Ansible", paths: []string{".vault_pass", ".vault_pass.txt", ".ansible/vault_pass", ".ansible/galaxy_token"}},
	{name: "aws", what: "keys and tokens of AWS", paths: []string{".aws", ".boto", ".s3cfg", ".s3ql", ".passwd-s3fs", ".mc/config.json", ".mcli/config.json", ".config/s5cmd", ".aws-sam", ".awsvault", ".aws-sso", ".config/aws-sso", ".saml2aws", ".okta", ".okta_aws_login_config", ".granted", ".Leapp", ".steampipe/config", ".amplify/admin"}},
	{name: "azure", what: "logins of Azure", paths: []string{".azure", ".config/azure", ".azcopy", ".azd/auth", ".IdentityService"}},
	{name: "browser", what: "profiles of browsers", paths: []string{
		".mozilla", ".config/mozilla", ".librewolf", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
		".waterfox", ".zen", ".local/share/qutebrowser", ".local/share/epiphany", ".w3m/cookie", ".lynx_cookies", ".elinks/cookies", ".config/falkon/profiles",
		".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", ".var/app/org.chromium.Chromium", ".var/app/com.brave.Browser", "snap/firefox", "snap/chromium",
		"Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Application Support/Chromium",
		"Library/Application Support/BraveSoftware", "Library/Application Support/Microsoft Edge", "Library/Safari", "Library/Cookies",
	}},
	{name: "cargo", what: "tokens of Cargo", paths: []string{".cargo/credentials", ".cargo/credentials.toml"}, files: []file{
		{path: ".cargo/config.toml", form: toml}, {path: ".cargo/config", form: toml},
	}},
	{name: "cloud", what: "tokens of other clouds and services", files: []file{
		{path: ".semgrep/settings.yml", form: yaml}, {path: ".ddev/global_config.yaml", form: yaml}, {path: ".prefect/profiles.toml", form: toml}, {path: ".config/wandb/settings", form: ini},
		{path: ".config/turborepo/config.json", form: jsonText}, {path: ".turborepo/config.json", form: jsonText}, {path: ".serverlessrc", form: jsonText}, {path: "clearml.conf", words: []string{"secret_key"}},
	}, paths: []string{
		".config/doctl", ".config/hcloud", ".config/heroku", ".oci", ".config/rclone/rclone.conf", ".rclone.conf", ".config/scw", ".config/fly",
		".fly", ".config/netlify", ".netlify/config.json", ".config/vercel", ".local/share/com.vercel.cli", ".config/wrangler", ".wrangler", ".config/.wrangler", ".linode-cli", ".config/linode-cli",
		".bluemix", ".aliyun", ".config/openstack", ".config/railway", ".railway", ".supabase/access-token", ".pulumi/credentials.json",
		".cloudflared", ".cloudflare", ".config/stripe", ".config/ngrok", ".ngrok2", ".ngrok", ".config/configstore/firebase-tools.json", ".config/configstore/netlify.json", ".config/firebase", ".config/neonctl", ".config/neon", ".config/planetscale", ".config/turso", ".config/xata",
		".databrickscfg", ".databricks/token-cache.json", ".snowflake", ".snowsql", ".config/snowflake", ".dbt/profiles.yml", ".dbt/dbt_cloud.yml", ".kaggle", ".config/kaggle", ".ollama/id_ed25519", ".modal.toml", ".replicate", ".config/replicate",
		".sentryclirc", ".chef", ".config/argocd", ".argocd", ".config/tailscale", ".local/share/tailscale", ".config/render", ".render", ".config/deno/credentials", ".config/upcloud.yaml", ".config/upctl.yaml",
		".config/civo", ".civo.json", ".vultr-cli.yaml", ".config/vultr-cli.yaml", ".exoscale", ".config/exoscale", ".ovh.conf", ".config/yandex-cloud", ".tccli", ".hcloud", ".lightning/credentials.json", ".config/lightning",
		".circleci/cli.yml", ".travis/config.yml", ".config/buildkite", ".buildkite", ".config/fastly", ".config/akamai-cli", ".edgerc", ".config/newrelic-cli", ".newrelic", ".datadog", ".config/datadog", ".dogrc", ".config/influx", ".influxdbv2",
		".config/twilio-cli", ".twilio-cli", ".sendgrid", ".config/shopify-cli-kit-nodejs", ".config/shopify", ".config/expo", ".expo/state.json", ".appcenter-cli", ".config/appcenter", ".config/contentful", ".contentfulrc.json",
		".config/clever-cloud", ".config/koyeb.yaml", ".koyeb.yaml", ".config/northflank", ".config/pscale", ".config/upstash.json", ".upstash.json", ".astra", ".astrarc", ".confluent", ".ccloud", ".config/gitpod", ".gitpod.yaml", ".gitpod_token",
		".config/dagger", ".config/depot", ".depot", ".earthly/auth.credentials", ".config/bit", ".config/anaconda", ".continuum", ".config/comet", ".comet.config", ".mlflow/credentials", ".paperspace", ".runpod", ".vast_api_key", ".config/vastai",
		".config/todoist", ".jira.d", ".config/.jira", ".config/atlassian", ".config/acli", ".config/linear", ".config/notion", ".config/asana", ".config/trello", ".config/slack-cli", ".slack",
		".jfrog", ".config/infracost", ".bridgecrew", ".config/configstore/snyk.json", ".config/ggshield", ".config/hcp", ".config/sentinelhub", ".config/earthengine", ".cdsapirc", ".ecmwfapirc", ".planet.json", ".urs_cookies", ".irods/.irodsA", ".sevenbridges",
		".dnanexus_config", ".basespace", ".synapseConfig", ".synapseCache/.session", ".config/edgedb", ".config/gel", ".laravel-vapor", ".platformsh", ".upsun-cli", ".acquia", ".terminus", ".magento-cloud", ".qovery", ".porter",
		".config/sanity", ".prismic", ".storyblok", ".sfdx", ".sf", ".hscli", ".zapierrc", ".config/pipedream", ".transifexrc", ".crowdin.yml", ".phrase.yml", ".phraseapp.yml", ".lokalise2.yml", ".config/weblate",
		".ghost", ".code-push.config", ".sauce", ".nexmorc", ".vonage", ".config/vonage", ".config/pagerduty-cli", ".config/ldcli", ".splunk", ".config/grafanactl", ".config/hass-cli", ".vagrant.d/data/vagrant_login_token",
		".cloudstack.ini", ".cmk", ".cloudmonkey", ".config/ionosctl", ".config/stackit", ".config/gridscale", ".novaclient", ".fauna-shell", ".dolt/creds", ".dagster_cloud_cli", ".datahubenv", ".config/dagshub", ".semaphore.yaml", ".bitrise",
		".harness", ".config/fermyon", ".trussrc", ".skypilot", ".sky", ".nebius", ".crusoe", ".config/coolify", ".caprover", ".config/configstore/caprover.json", ".deta/tokens", ".detaspace/space_tokens", ".convex/config.json", ".balena/token",
		".particle/particle.config.json", ".fauna/credentials", ".appwrite/prefs.json", ".qiskit/qiskit-ibm.json", ".qiskit/qiskitrc", ".config/dwave/dwave.conf", ".config/pennylane/config.toml", ".globus/userkey.pem", ".globus/usercred.p12", ".globus/cli", ".streamlit/secrets.toml", ".cache/dagshub/tokens", ".config/roboflow/config.json",
		".cfconfig",
	}},
	{name: "composer", what: "logins of Composer", paths: []string{".composer/auth.json", ".config/composer/auth.json"}},
	{name: "conda", what: "tokens in Conda's settings", files: []file{{path: ".condarc", form: yaml}, {path: ".mambarc", form: yaml}, {path: ".config/conda/.condarc", form: yaml}}},
	{name: "database", what: "passwords of databases", paths: []string{
		".pgpass", ".mylogin.cnf", ".config/mongodb", ".mongorc.js", ".mongodb/atlascli", ".config/atlascli", ".config/usql", ".usqlpass", ".cassandra/credentials", ".config/redis", ".redisclirc", ".config/dbeaver", ".local/share/DBeaverData",
		".config/pgcli", ".config/mycli", ".clickhouse-client", ".config/beekeeper-studio", ".pgadmin", ".local/share/pgadmin", ".duckdb/stored_secrets", ".cockroach-certs",
		".config/mssqlcli", ".config/iredis", ".redisinsight-app", ".redisinsight-v2", ".redisinsight", ".config/sqlectron.json", ".sqlectron.json", ".dbvis", ".squirrel-sql", ".sqldeveloper", ".sqlworkbench", ".config/harlequin", ".config/robo3t", ".config/azuredatastudio",
		".supabase/profile", ".mysql/workbench", ".neo4j/.neo4j_history", ".config/MongoDB Compass", ".3T",
	}, files: []file{
		{path: ".my.cnf", form: ini}, {path: ".pg_service.conf", form: ini}, {path: ".myclirc", form: ini}, {path: ".odbc.ini", form: ini}, {path: ".cassandra/cqlshrc", form: ini},
	}},
	{name: "docker", what: "logins of Docker and Podman", paths: []string{".docker/contexts/tls", ".docker/machine", ".docker/trust/private", ".docker/.token_seed", ".docker/mutagen", ".config/Lens", ".config/OpenLens", ".config/freelens"}, files: []file{
		{path: ".docker/config.json", form: jsonText}, {path: ".config/containers/auth.json", form: jsonText}, {path: ".dockercfg", form: jsonText},
	}},
	{name: "dotnet", what: "secrets of .NET projects", paths: []string{".microsoft/usersecrets", ".aspnet/DataProtection-Keys", ".dotnet/corefx/cryptography/x509stores/my"}},
	{name: "gcloud", what: "logins of Google Cloud", paths: []string{".config/gcloud", ".gsutil", ".bigqueryrc", ".config/gspread", ".config/gws", ".gcalcli_oauth", ".clasprc.json"}},
	{name: "gem", what: "keys of RubyGems and Bundler", paths: []string{".gem/credentials", ".local/share/gem/credentials", ".gem/gem-private_key.pem", ".local/share/gem/gem-private_key.pem"}, files: []file{
		{path: ".bundle/config", form: bundle}, {path: ".config/bundle/config", form: bundle}, {path: ".gemrc", form: yaml},
	}},
	{name: "gh", what: "tokens of gh, hub and glab", paths: []string{".config/gh", ".config/hub", ".config/glab-cli", ".config/tea", ".config/berg", ".config/fj", ".local/share/forgejo-cli", ".config/hut", ".config/gcli", ".config/jira", ".git-bug", ".config/lab", ".config/bb", ".python-gitlab.cfg", ".opencommit", ".aicommits"}},
	{name: "git", what: "passwords that git and other version control store", paths: []string{
		".git-credentials", ".config/git/credentials", ".git-credential-cache", ".cache/git/credential", ".git-credential-manager", ".gcm", ".subversion/auth", ".config/subversion/auth", ".bazaar/authentication.conf", ".config/breezy/authentication.conf",
		".gitcookies", ".config/gitkraken", ".gitkraken", ".config/sapling/auth", ".cvspass", ".p4tickets", ".arcrc",
		".config/pijul", ".config/radicle", ".radicle/keys", ".config/GitHub Desktop",
	}, files: []file{
		{path: ".gitconfig", form: git}, {path: ".config/git/config", form: git}, {path: ".hgrc", form: ini}, {path: ".config/hg/hgrc", form: ini},
	}},
	{name: "gnupg", what: "private keys of GnuPG", paths: []string{".gnupg/private-keys-v1.d", ".gnupg/secring.gpg", ".local/share/gnupg/private-keys-v1.d", ".config/gnupg/private-keys-v1.d", ".local/share/sequoia", ".config/sequoia"}},
	{name: "gradle", what: "passwords in Gradle's settings", files: []file{{path: ".gradle/gradle.properties", form: properties}}},
	{name: "history", what: "histories of shells, clients and agents", paths: []string{
		".bash_history", ".zsh_history", ".zhistory", ".histfile", ".history", ".sh_history", ".ash_history", ".ksh_history", ".mksh_history", ".csh_history", ".tcsh_history", ".local/share/fish/fish_history", ".config/fish/fish_history",
		".local/share/xonsh", ".xonsh_history", ".xonsh_history.json", ".elvish/db", ".local/state/elvish", ".config/nushell/history.txt", ".config/nushell/history.sqlite3", ".local/share/nushell/history.txt", ".local/share/nushell/history.sqlite3",
		".local/state/bash", ".local/state/zsh", ".local/share/zsh/history", ".cache/zsh/history", ".bash_sessions", ".zsh_sessions", ".local/share/atuin", ".local/share/mcfly", ".mcfly", ".local/share/hishtory", ".hishtory", ".resh_history.reshjson", ".local/share/resh", ".local/share/powershell",
		".python_history", ".local/state/python_history", ".node_repl_history", ".deno_history", ".cache/deno/deno_history.txt", ".ipython/profile_default/history.sqlite", ".ipython/profile_default/db", ".local/share/jupyter/runtime", ".ptpython_history", ".local/share/ptpython",
		".psql_history", ".mysql_history", ".mariadb_history", ".mycli-history", ".sqlite_history", ".litecli", ".rediscli_history", ".irb_history", ".pry_history", ".local/share/irb", ".local/share/pry", ".duckdb_history", ".mongodb/mongosh", ".dbshell", ".mongosh", ".usql_history", ".clickhouse-client-history", ".cqlshistory", ".cassandra/cqlsh_history", ".influx_history",
		".local/state/psql_history", ".local/share/psql_history", ".php_history", ".config/psysh/psysh_history", ".Rhistory", ".scala_history", ".jshell_history", ".gdb_history", ".ghc/ghci_history", ".julia/logs/repl_history.jl", ".erlang-history", ".cache/erlang-history", ".maxima_history", ".octave_hist", ".lua_history",
		".viminfo", ".local/state/vim/viminfo", ".local/state/nvim/shada", ".local/share/nvim/shada",
		".claude/history.jsonl", ".claude/projects", ".claude/paste-cache", ".claude/file-history", ".claude/debug", ".codex/history.jsonl", ".codex/sessions", ".codex/archived_sessions", ".codex/log", ".gemini/tmp", ".gemini/history", ".qwen/tmp", ".qwen/history", ".copilot/history-session-state", ".copilot/session-state", ".copilot/command-history-state.json", ".copilot/logs",
		".local/share/opencode/storage", ".local/share/opencode/opencode.db", ".local/share/opencode/log", ".local/state/opencode", ".local/share/goose/sessions", ".local/share/goose", ".local/state/goose", ".aider.input.history", ".aider.chat.history.md", ".aider.llm.history", ".continue/sessions", ".continue/dev_data", ".cline/data/tasks", ".cursor/chats", ".cursor/projects", ".cursor/prompt_history.json", ".local/share/crush", ".local/share/amp/threads", ".factory/sessions", ".factory/history.json",
		".claude/todos", ".claude/tasks", ".claude/transcripts", ".claude/backups", ".claude/sessions", ".claude/telemetry", ".local/share/amp/history.jsonl", ".openhands/sessions", ".openhands/conversations", ".local/state/warp-terminal", ".local/share/warp-terminal", ".local/share/zed/threads", ".local/share/zed/conversations", ".config/io.datasette.llm/logs.db",
		".local/share/gptme", ".ollama/history", ".lmstudio/conversations", ".chatgpt", ".local/share/io.datasette.llm", ".local/share/mods", ".iflow/history", ".iflow/tmp", ".codebuddy/history", ".codebuddy/projects", ".vibe/logs", ".vibe/vibehistory", ".pi/agent/sessions", ".kimi/sessions",
		".forge_history", ".augment/sessions", ".cursor/ai-tracking", ".hivehistory", ".beeline", ".sqlline", ".trino_history", ".presto_history", ".vsql_history", ".neo4j_history", ".snowsql_history", ".scala_history_jline3", ".spark_history", ".iredis_history",
		".ksql-history", ".surreal_history", ".lesshst", ".local/state/less", ".local/state/lesshst", ".bc_history", ".units_history", ".guile_history", ".sbcl_history", ".clojure_history", ".rebel_readline_history", ".kotlin_history", ".groovy/groovysh.history", ".config/lf/history",
		".local/share/lf", ".config/ranger/history", ".local/share/ranger", ".config/vifm/vifminfo", ".vifm/vifminfo", ".vifm/vifminfo.json", ".tig_history", ".local/share/tig", ".emacs.d/history", ".emacs.d/savehist", ".emacs.d/recentf", ".nano/search_history", ".local/share/nano/search_history", ".local/share/nano/backups",
		".kak_history", ".lftp/rl_history", ".local/share/lftp", ".ncftp", ".config/micro/buffers", ".config/micro/backups", ".local/state/micro", ".config/Code/User/History", ".config/Code/User/workspaceStorage", ".config/Cursor/User/History", ".config/Cursor/User/workspaceStorage", ".config/Windsurf/User/History", ".config/Windsurf/User/workspaceStorage", ".config/VSCodium/User/History",
		".config/VSCodium/User/workspaceStorage", ".vscode-server/data/User/History", ".vscode-server/data/User/workspaceStorage", ".cursor-server/data/User/History", ".cursor-server/data/User/workspaceStorage", ".local/state/nvim/swap", ".local/state/nvim/undo", ".local/state/nvim/backup", ".local/share/nvim/swap", ".local/share/nvim/undo", ".local/share/nvim/backup", ".cache/nvim/swap", ".cache/nvim/undo", ".cache/nvim/backup",
		".vim/swap", ".vim/swaps", ".vim/undo", ".vim/undodir", ".vim/backup", ".vim/backups", ".vim/tmp", ".emacs.d/auto-save-list", ".emacs.d/auto-saves", ".emacs.d/backups", ".emacs.d/backup", ".config/emacs/auto-save-list", ".config/emacs/backups", ".local/share/Trash",
		".gemini/antigravity/conversations", ".gemini/antigravity/brain", ".cache/amp/logs", ".local/share/kilo/storage", ".local/share/kilo/kilo.db", ".local/share/kilo/log", ".local/share/oterm", ".emacs.d/eshell/history", ".cache/vim/swap", ".cache/vim/undo", ".cache/vim/backup", ".local/state/vim/swap", ".local/state/vim/undo", ".local/share/vim/undo",
		".local/share/vim/swap", ".cache/emacs/auto-save", ".cache/emacs/backup", ".grok/sessions",
	}},
	{name: "huggingface", what: "tokens of Hugging Face", paths: []string{".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token"}},
	{name: "keyring", what: "keyrings and password managers", paths: []string{
		".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet", ".password-store", ".config/op", ".op", ".config/1Password", ".config/Bitwarden CLI", ".config/Bitwarden", ".config/rbw", ".local/share/rbw", ".cache/rbw", ".config/lpass", ".local/share/lpass", ".lpass",
		".config/keepassxc", ".cache/keepassxc", ".keepassxc", ".config/gopass", ".local/share/gopass", ".config/Enpass", ".config/pass", ".pass", ".config/doppler", ".doppler", ".infisical", ".config/infisical", ".config/akeyless", ".akeyless", ".config/dashlane", ".keeper",
		".config/totp", ".config/ykman", ".local/share/Yubico", ".config/Yubico", ".yubico", ".config/otpclient", ".local/share/otpclient", ".google_authenticator", ".config/authenticator", ".vpn", ".config/openvpn", ".openvpn", ".wireguard", ".config/wireguard", ".local/share/networkmanagement", ".cert/nm-openvpn", ".smbcredentials", ".davfs2/secrets", ".krb5", ".config/step/secrets", ".step/secrets", ".step/authorities", ".local/share/mkcert/rootCA-key.pem", ".local/share/caddy", ".caddy", ".acme.sh", ".lego", ".config/letsencrypt",
		"Library/Keychains", ".local/share/pass", ".config/sops", ".age", ".config/age", ".config/rage", ".config/passage", ".passage", ".config/minisign", ".minisign", ".signify", ".cosign", ".sigstore/root", ".config/gnunet/private_key.ecc", ".config/chezmoi/key.txt",
		".config/borg", ".borgmatic", ".config/borgmatic", ".config/restic", ".config/rustic", ".config/kopia", ".duplicacy", ".config/duplicity", ".config/syncthing", ".local/state/syncthing", ".config/Nextcloud", ".config/ownCloud", ".dropbox", ".config/maestral",
		".megaCmd", ".config/onedrive", ".gdrive", ".config/gdrive", ".config/insync", ".local/share/lftp/bookmarks", ".config/aria2", ".aria2", ".config/deluge", ".config/transmission", ".config/transmission-daemon", ".config/qBittorrent", ".config/legendary", ".config/heroic",
		".config/itch", ".local/share/PrismLauncher", ".steam/config", ".local/share/Steam/config", ".httpie/sessions", ".config/httpie/sessions", ".config/Yaak", ".local/share/app.yaak.desktop", ".insomnia", ".config/hoppscotch", ".config/mopidy", ".config/netbird", ".config/nordvpn", ".config/protonvpn",
		".cache/protonvpn", ".config/mullvad", ".config/openfortivpn", ".fortivpn", ".vpnc", ".cisco", ".juniper_networks", ".globalprotect", ".config/streamlink", ".config/Proton", ".config/bws", ".bws", ".config/authy", ".gnome2/keyrings",
		".kwallet", ".ecryptfs", ".config/cryptomator", ".config/Cryptomator", ".local/share/Cryptomator", ".config/VeraCrypt", ".minecraft/launcher_accounts.json", ".config/Proton Pass", ".config/Authy Desktop",
	}},
	{name: "kube", what: "logins of Kubernetes", paths: []string{".kube", ".config/helm/registry", ".config/helm/repositories.yaml", ".helm/registry", ".cache/helm/registry", ".local/share/k3d", ".minikube/profiles", ".minikube/certs", ".minikube/ca.key", ".rancher", ".config/rancher", ".talos", ".config/oc", ".crc/machines", ".config/velero", ".config/teleport", ".tsh", ".config/boundary", ".boundary", ".config/kargo", ".kubelogin", ".config/kubelogin", ".cache/kubelogin", ".lima/_config/user", ".colima/_lima/_config/user", ".config/okteto", ".okteto/context"}},
	{name: "mail", what: "profiles and passwords of mail and chat", paths: []string{
		".thunderbird", ".icedove", ".betterbird", ".var/app/org.mozilla.Thunderbird", "snap/thunderbird", ".evolution", ".config/evolution", ".local/share/evolution", ".config/goa-1.0", ".local/share/geary", ".config/geary", ".local/share/akonadi", ".config/akonadi", ".local/share/kmail2", ".claws-mail", ".sylpheed-2.0", ".config/Mailspring",
		".msmtprc", ".config/msmtp", ".mbsyncrc", ".config/isyncrc", ".config/mbsync", ".isyncrc", ".offlineimaprc", ".config/offlineimap", ".offlineimap", ".getmail", ".config/getmail", ".fetchmailrc", ".mailrc", ".mutt", ".muttrc", ".config/mutt", ".config/neomutt", ".neomuttrc", ".config/aerc", ".config/himalaya", ".config/alot", ".esmtprc", ".nmailrc", ".config/nmail", ".config/vdirsyncer", ".vdirsyncer", ".config/khal", ".notmuch-config", ".config/meli", ".config/imapfilter", ".imapfilter",
		".config/Slack", ".config/discord", ".config/discordcanary", ".config/vesktop", ".config/Signal", ".config/Signal Beta", ".local/share/signal-cli", ".config/signal-cli", ".config/Element", ".config/Microsoft/Microsoft Teams", ".config/teams-for-linux", ".config/Mattermost", ".config/Rocket.Chat", ".config/zulip", ".zuliprc", ".config/Zulip", ".config/zoom.conf", ".zoom", ".config/zoomus.conf", ".local/share/TelegramDesktop", ".telegram-cli", ".config/telegram-desktop", ".config/WhatsApp", ".config/skypeforlinux", ".Skype", ".config/Keybase", ".config/keybase", ".local/share/keybase", ".purple", ".weechat", ".config/weechat", ".irssi", ".config/irssi", ".config/hexchat", ".xchat2", ".config/gajim", ".local/share/gajim", ".config/dino", ".local/share/dino", ".config/profanity", ".local/share/profanity", ".config/nheko", ".local/share/nheko", ".cache/nheko", ".config/fractal", ".local/share/fractal", ".local/share/gomuks", ".config/gomuks", ".config/iamb", ".config/toot", ".config/tut", ".config/newsboat/urls", ".newsboat/urls", ".config/spotify", ".config/spotifyd", ".cache/spotify", ".config/ncspot", ".cache/ncspot", ".config/spotify-player", ".config/Notion", ".config/obsidian", ".config/Postman", ".config/Insomnia", ".config/Bruno",
		".var/app/com.slack.Slack", ".var/app/com.discordapp.Discord", ".var/app/org.signal.Signal", ".var/app/org.telegram.desktop", "snap/slack", "snap/discord", "snap/telegram-desktop", "snap/signal-desktop",
		"Library/Mail", "Library/Messages", "Library/Thunderbird", "Library/Application Support/Slack", "Library/Application Support/discord", "Library/Application Support/Signal",
	}},
	{name: "maven", what: "passwords of Maven, Ivy and sbt", paths: []string{".m2/settings-security.xml", ".m2/settings-security4.xml", ".ivy2/.credentials", ".ivy2/credentials", ".sbt/.credentials", ".sbt/credentials", ".sbt/1.0/credentials.sbt", ".sbt/1.0/credentials", ".sbt/sonatype_credentials", ".config/coursier/credentials.properties", ".lein/credentials.clj.gpg", ".lein/credentials.clj"}, files: []file{
		{path: ".m2/settings.xml", form: xmlText}, {path: ".lein/profiles.clj", words: []string{"password"}}, {path: ".clojure/deps.edn", words: []string{"password"}},
	}},
	{name: "netrc", what: "logins in .netrc", paths: []string{".netrc", "_netrc", ".netrc.gpg", ".authinfo", ".authinfo.gpg"}, files: []file{
		{path: ".curlrc", words: []string{"user", "assw", "oken", "uthorization", "cookie", "bearer"}}, {path: ".config/curlrc", words: []string{"user", "assw", "oken", "uthorization", "cookie", "bearer"}}, {path: ".wgetrc", form: ini},
	}},
	{name: "npm", what: "tokens of npm and yarn", paths: []string{".config/pnpm/auth.ini"}, files: []file{
		{path: ".npmrc", form: ini}, {path: ".config/pnpm/rc", form: ini}, {path: ".yarnrc", form: spaced}, {path: ".yarnrc.yml", form: yaml}, {path: ".bunfig.toml", form: toml}, {path: ".config/.bunfig.toml", form: toml},
	}},
	{name: "nuget", what: "keys of NuGet", files: []file{
		{path: ".nuget/NuGet/NuGet.Config", form: xmlText}, {path: ".config/NuGet/NuGet.Config", form: xmlText},
	}},
	{name: other, what: "files with private keys and tokens that have no other name, found by their content"},
	{name: "pypi", what: "passwords for PyPI", paths: []string{".local/share/uv/credentials", ".config/hatch", ".local/share/hatch/publish", ".config/flit", ".local/share/python_keyring", ".config/twine", ".twine", ".config/anaconda-client", ".devpi/client", ".config/binstar"}, files: []file{
		{path: ".jupyter/jupyter_server_config.json", form: jsonText}, {path: ".jupyter/jupyter_notebook_config.json", form: jsonText},
		{path: ".pypirc", form: ini}, {path: ".config/pip/pip.conf", form: ini}, {path: ".pip/pip.conf", form: ini}, {path: ".pydistutils.cfg", form: ini}, {path: ".config/uv/uv.toml", form: toml},
		{path: ".config/pypoetry/auth.toml", words: []string{"="}}, {path: ".config/pypoetry/config.toml", form: toml}, {path: ".config/pdm/config.toml", form: toml}, {path: ".config/pip/uv.toml", form: toml},
	}},
	{name: "ssh", what: "private keys of SSH", keys: []string{".ssh"}, paths: []string{".putty/sessions", ".config/putty/keys", ".local/share/remmina", ".config/remmina", ".remmina", ".config/filezilla", ".filezilla", ".config/termius", ".config/Termius", ".mtputty", ".config/tabby", ".local/share/rdm", ".config/freerdp"}},
	{name: "terraform", what: "tokens of Terraform", paths: []string{".terraform.d/credentials.tfrc.json", ".config/opentofu/credentials.tfrc.json", ".config/spacelift", ".spacelift", ".config/scalr"}, files: []file{
		{path: ".terraformrc", words: []string{"token"}}, {path: ".tofurc", words: []string{"token"}},
	}},
	{name: "vault", what: "tokens of Vault", paths: []string{".vault-token", ".bao-token", ".config/vault", ".consul-token", ".nomad-token"}},
	{name: "wallet", what: "wallets", paths: []string{".config/solana/id.json", ".ethereum/keystore", ".bitcoin", ".litecoin", ".dogecoin", ".dashcore", ".zcash", ".monero", "Monero/wallets", ".electrum", ".electrum-ltc", ".config/Exodus", ".config/atomic", ".config/Ledger Live", ".config/@trezor", ".brownie/accounts", ".foundry/keystores", ".sui/sui_config", ".aptos/config.yaml", ".near-credentials", ".lnd", ".lightning", ".config/Wasabi", ".walletwasabi"}},
}
