// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Made by scripts/generate.mjs from docs/protocol.schema.json; do not edit.

export interface Answered {
  by: string;
  id: string;
}

export interface ApprovalDecided {
  decision: "denied" | "abort" | "timed_out" | "approved" | "approved_for_session" | "approved_execpolicy_amendment" | "network_policy_amendment";
  deny?: boolean;
  evidence?: ("guessed" | "proxied" | "audited" | "notified" | "unknown")[];
  host?: string;
  id: string;
  message?: string;
  path?: string;
  policy_version?: string;
  rule?: string[];
  source: string;
  wait_ms: number;
}

export interface ApprovalRequest {
  arg0?: string;
  argv: string[];
  available_decisions: ("denied" | "abort" | "timed_out" | "approved" | "approved_for_session" | "approved_execpolicy_amendment" | "network_policy_amendment")[];
  cwd: string;
  denials: Denial[];
  environment?: string;
  files?: File[];
  id: string;
  input?: string;
  justification: string;
  kind: string;
  offers: Offer[];
  program: string;
  program_sha256?: string;
  reason: string;
  requires: string[];
  runs: number;
  script: string;
  type: "approval_request";
  variables?: string[];
  wait_ms?: number;
  waiting?: boolean;
}

export interface Approved {
  argv: string[];
  cwd: string;
  id: string;
  requires: string[];
  time: string;
}

export interface Capabilities {
  atomicFileWrite?: boolean;
  binaryOutput?: boolean;
  environmentConfigRead?: boolean;
  fileWriteStreaming?: boolean;
  fsAppend?: boolean;
  fsChmod?: boolean;
  fsRename?: boolean;
  fsSymlink?: boolean;
  fsWatchMissing?: boolean;
  httpHeaderEnvVars?: boolean;
  idempotency?: boolean;
  networkProxyLaunch?: boolean;
  processAwait?: boolean;
  processCloseStdin?: boolean;
  processConfine?: boolean;
  processExitSignal?: boolean;
  processList?: boolean;
  processPrivateTmp?: boolean;
  processResize?: boolean;
  processSignalNames?: boolean;
  processTerminateGrace?: boolean;
  processTtySize?: boolean;
  readTruncatedBefore?: boolean;
  requestCancel?: boolean;
  runSandboxes?: boolean;
  runs?: boolean;
  sandboxedFileStreaming?: boolean;
  sessionObserve?: boolean;
  sessionTakeOver?: boolean;
  stages?: boolean;
}

export interface CapabilityRootParam {
  id: string;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface Change {
  binary: boolean;
  entries?: number;
  file: string;
  from?: string;
  kind: string;
  mode: string;
  old_size: number;
  path: string;
  root: string;
  runs_later: boolean;
  size: number;
}

export interface Chunk {
  /** Bytes in base64. */
  chunk: string;
  seq: number;
  stream: string;
}

export interface ConfigLayers {
  cloudInsertionIndex: number;
  layers: { [name: string]: unknown }[];
}

export interface ConfineParam {
  cpus?: number | null;
  disk?: number | null;
  level?: "native" | "bwrap" | "landlock" | "seatbelt" | null;
  memory?: number | null;
  noCaches?: boolean;
  noObserver?: boolean;
  ownershipErrors?: boolean;
  pids?: number | null;
  protectHardLinks?: boolean;
  stage?: ProcessStageParam;
}

export interface Conflict {
  path: string;
  reason: string;
}

export interface Denial {
  addr: string;
  call: string;
  count: number;
  errno: string;
  grant: string;
  harmless?: string;
  name?: string;
  op: "unknown" | "read" | "write" | "exec" | "connect" | "bind" | "signal" | "syscall";
  path: string;
  pid: number;
  program: string;
  rule: string;
  source: "guessed" | "proxied" | "audited" | "notified" | "unknown";
  wider?: string;
}

export interface DenialNote {
  final?: boolean;
  time: number;
}

export interface DirectoryEntry {
  fileName: string;
  isDirectory: boolean;
  isFile: boolean;
}

export interface Discovery {
  error: string | null;
  id: string;
  namespaceManifests: { [name: string]: unknown }[];
  path: string;
  plugin: { [name: string]: unknown } | null;
  skills: { [name: string]: unknown }[];
  warnings: string[];
}

export interface End {
  bytes_down: number;
  bytes_up: number;
  cause: string;
  duration_ms: number;
  resolved?: string;
}

export interface Enforced {
  by: string;
  hit: boolean;
  limit: string;
  value: number;
}

export interface EnvPolicyParam {
  exclude: string[];
  ignoreDefaultExcludes: boolean;
  includeOnly: string[];
  inherit: "core" | "all" | "none";
  set: { [name: string]: string };
}

export interface Environment {
  capabilities: Capabilities;
  cwd: string;
  executorVersion: string;
  platformOs: string;
  prependPathDirs: string[];
  providerId: string;
  shell: Shell;
  tempDir: string;
  temporaryDirectories: string[];
  userHomeDir?: string;
}

/** Later versions add types; a client ignores those that it does not know. */
export type Event = ApprovalDecidedEvent | ApprovalRequestedEvent | DeniedEvent | EndedEvent | ExitedEvent | GrantedEvent | JudgedEvent | ListeningEvent | NetworkClosedEvent | NetworkDecidedEvent | OutputEvent | QuarantinedEvent | RecordedEvent | RetryingEvent | ReviewCompletedEvent | ReviewStartedEvent | SandboxOutcomeEvent | StartedEvent | SurvivedEvent;

export interface EventSandbox {
  apart?: string;
  hidden?: string[];
  level: string;
  mechanism: string[];
  mode: string;
  network: "none" | "proxy" | "host" | "unknown";
  observed: boolean;
  plan_sha256?: string;
  published?: Publish[];
  replaced?: string[];
  shared?: boolean;
  weaker?: string[];
}

export interface File {
  path: string;
  role: string;
  sha256: string;
}

export interface First {
  denials: Denial[];
  duration_ms: number;
  end: string;
  exit_code: number;
  omitted_bytes: number;
  output: string;
  signal: number;
  stderr: string;
  stdout: string;
}

export interface Granted {
  by: string;
  call: string;
  more?: number;
  op: "unknown" | "read" | "write" | "exec" | "connect" | "bind" | "signal" | "syscall";
  path: string;
  waited_ms: number;
}

export interface HTTPField {
  name: string;
  value: string;
}

export interface HTTPHeaderParam {
  name: string;
  value: string;
  valueEnvVar?: string | null;
}

export interface HardLink {
  links: number;
  path: string;
}

export interface HostRequest {
  host: string;
  port: number;
  protocol: string;
}

export interface InputWait {
  kind: string;
  pid: number;
  program: string;
  timed?: boolean;
}

export interface ListedProcess {
  argv: string[];
  closed: boolean;
  exitCode: number | null;
  lost?: boolean;
  nextSeq: number;
  processId: string;
  running: boolean;
  signal?: string;
  startedAtMs: number;
  starting: boolean;
  tty: boolean;
}

export interface ListedRun {
  argv: string[];
  cpuMs?: number;
  cwd: string;
  denials?: number;
  end: string | null;
  exitCode: number | null;
  lastLine?: string;
  lastUsedMs: number;
  memoryBytes?: number;
  runId: string;
  running: boolean;
  signal: number;
  size?: Size;
  startedAtMs: number;
  starting: boolean;
  tty: boolean;
  waitsFor?: string;
}

export interface ListedSandbox {
  idleLeftMs: number | null;
  idleMs: number;
  name: string;
  network: string;
  pid: number;
  running: number;
  startedAtMs: number;
  workspace: string;
}

export interface NetworkDenial {
  count: number;
  first_ms: number;
  host: string;
  port: number;
  protocol: "http" | "https_connect" | "socks5_tcp" | "socks5_udp" | "transparent_tcp" | "dns" | "unknown";
  reason: string;
}

export interface NetworkFailure {
  count: number;
  error: string;
  host: string;
  port: number;
  unresolved?: boolean;
}

export interface NetworkHost {
  bytes_down: number;
  bytes_up: number;
  connections: number;
  host: string;
  port: number;
}

export interface NetworkProxyParam {
  auditMetadata?: unknown | null;
  environmentId?: string | null;
  executionId?: string | null;
  policyDecisionTimeoutMs?: number | null;
  proxy: ProxyConfigParam;
}

export interface New {
  grant: string;
  granted?: boolean;
  more?: number;
  path: string;
}

export interface Offer {
  decision: "denied" | "abort" | "timed_out" | "approved" | "approved_for_session" | "approved_execpolicy_amendment" | "network_policy_amendment";
  deny?: boolean;
  host?: string;
  path?: string;
  protocol?: string;
  rule?: string[];
}

export interface Outcome {
  broken?: string;
  denialNotes?: DenialNote[];
  denials?: Denial[];
  denialsOmitted?: number;
  hardLinks?: HardLink[];
  hardLinksOmitted?: number;
  limit?: string;
  limits?: Enforced[];
  networkFailures?: NetworkFailure[];
  new?: New[];
  ownershipIgnored?: number;
  quarantined?: Quarantined[];
  sandbox: Sandbox;
  stage?: StageOutcome;
  survivors?: Survivor[];
  survivorsBy?: string;
  usage: Usage;
}

export interface PolicyWordParam {
  reason?: string | null;
  type: "allow" | "deny" | "ask";
}

export interface ProcessStageParam {
  id?: string;
  name?: string;
}

export interface ProxyConfigParam {
  allowLocalBinding?: boolean | null;
  allowUpstreamProxy?: boolean | null;
  dangerouslyAllowAllUnixSockets?: boolean | null;
  domains?: { [name: string]: string } | null;
  enableSocks5?: boolean | null;
  enableSocks5Udp?: boolean | null;
  enabled: boolean;
  mode?: "full" | "limited" | null;
  unixSockets?: { [name: string]: string } | null;
}

export interface Publish {
  host_port: number;
  port: number;
}

export interface Quarantined {
  grant?: string;
  moved_to?: string;
  path: string;
  why: string;
}

export interface Question {
  digest: string;
  expiresAtMs?: number;
  request: ApprovalRequest;
  runId?: string;
}

export interface Recorded {
  bytes: number;
  error?: string;
  format: string;
  gaps: number;
  hidden: number;
  path: string;
  sha256: string;
}

/** The data of an error of run/*, stage/*, question/* and sandbox/*, and of a start with a key. */
export interface Refusal {
  by?: string;
  exitCode?: number;
  reason: string;
  session?: string;
  taken?: number;
}

export interface Result {
  approvals?: ApprovalDecided[];
  argv: string[];
  attempts: number;
  caller_id?: string;
  changes?: Change[];
  changes_total?: number;
  cwd: string;
  denials: Denial[];
  denials_omitted?: number;
  duration_ms: number;
  end: string;
  error?: string;
  exit_code: number;
  first?: First;
  granted?: Granted[];
  hard_links?: HardLink[];
  hard_links_omitted?: number;
  limits?: Enforced[];
  network_denials?: NetworkDenial[];
  network_failures?: NetworkFailure[];
  network_hosts?: NetworkHost[];
  new?: New[];
  notices?: string[];
  omitted_bytes: number;
  output: string;
  ownership_ignored?: number;
  quarantined?: Quarantined[];
  recording?: Recorded;
  rule?: Rule;
  run?: string;
  sandbox: EventSandbox;
  signal: number;
  stage?: Staged;
  stderr: string;
  /** Bytes in base64. */
  stderr_base64?: string;
  stderr_bytes: number;
  stderr_error?: string;
  stderr_omitted_bytes?: number;
  stdin_error?: string;
  stdout: string;
  /** Bytes in base64. */
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_error?: string;
  stdout_omitted_bytes?: number;
  streams_left_open?: boolean;
  survivor_list?: Survivor[];
  survivors: number;
  survivors_by?: string;
  timed_out: boolean;
  type: string;
  usage?: Usage;
  warnings?: string[];
  withheld?: string[];
}

export interface Rule {
  column: number;
  decision: string;
  file: string;
  justification?: string;
  line: number;
  sandbox?: string;
}

export interface RunChunk {
  /** Bytes in base64. */
  chunk: string;
  joined?: boolean;
  missing?: number;
  offset: number;
  stream: string;
}

export interface RunConditionsParam {
  after?: number | null;
  bytes?: number | null;
  exit?: boolean | null;
  firstOutput?: boolean | null;
  input?: boolean | null;
  match?: string | null;
  port?: boolean | null;
  quietMs?: number | null;
  raw?: boolean | null;
}

export interface RunReaderParam {
  leaves?: boolean | null;
  stderrClosed?: boolean | null;
  stdoutClosed?: boolean | null;
}

export interface RunSandboxParam {
  idleMs?: number | null;
  name: string;
}

export interface RunSizeParam {
  cols: number;
  rows: number;
}

export interface Sandbox {
  hidden?: string[];
  level: string;
  mechanism: string[];
  observed: boolean;
  plan_sha256?: string;
  published?: Publish[];
  replaced?: string[];
  shared?: boolean;
  weaker?: string[];
}

export interface SandboxParam {
  cwd?: string | null;
  permissions: unknown;
  temporaryDirectories?: string[] | null;
  userHomeDir?: string | null;
  windowsSandboxLevel: string;
  workspaceRoots?: string[] | null;
}

export interface Shell {
  name: string;
  path: string;
}

export interface Size {
  cols: number;
  rows: number;
}

export interface StageInfo {
  bytes: number;
  changes: number;
  commands: number;
  created: string;
  id: string;
  moved?: boolean;
  name: string;
  workspace: string;
}

export interface StageOutcome {
  changes: Change[];
  changesTotal: number;
  id: string;
  name: string;
}

export interface Staged {
  id: string;
  name: string;
}

export interface Survivor {
  command?: string;
  name: string;
  pid: number;
}

export interface TTYSizeParam {
  cols: number;
  rows: number;
}

export interface Usage {
  cpu_ms?: number;
  peak_memory_by?: string;
  peak_memory_bytes?: number;
  processes?: number;
  read_bytes?: number;
  system_ms?: number;
  user_ms?: number;
  written_bytes?: number;
}

export interface WalkEntry {
  kind: string;
  path: string;
}

export interface WalkError {
  message: string;
  path: string;
}

export interface WalkOptionsParam {
  followDirectorySymlinks: boolean;
  maxDepth: number;
  maxDirectories: number;
  maxEntries: number;
  pruneHiddenDirectories?: boolean | null;
}

export interface CapabilityRootsDiscoverV1Params {
  roots: CapabilityRootParam[];
}

export interface CapabilityRootsDiscoverV1Result {
  roots: Discovery[];
}

export type EnvironmentInfoParams = { [name: string]: unknown } | null;

export interface EnvironmentInfoResult {
  capabilities: Capabilities;
  cwd: string;
  executorVersion: string;
  platformOs: string;
  prependPathDirs: string[];
  providerId: string;
  shell: Shell;
  tempDir: string;
  temporaryDirectories: string[];
  userHomeDir?: string;
}

export type EnvironmentStatusParams = { [name: string]: unknown } | null;

export interface EnvironmentStatusResult {
  status: string;
}

export interface EnvironmentConfigReadParams {
  configPaths: string[][];
  cwd: string;
  requirementsPaths: string[][];
}

export interface EnvironmentConfigReadResult {
  codexHomeDir: string;
  config: ConfigLayers;
  hostname: string;
  requirements: ConfigLayers;
  userHomeDir: string;
}

export interface Error {
  code: number;
  data?: unknown;
  message: string;
}

export interface ApprovalDecidedEvent {
  attempt: number;
  caller_id?: string;
  decision: "denied" | "abort" | "timed_out" | "approved" | "approved_for_session" | "approved_execpolicy_amendment" | "network_policy_amendment";
  deny?: boolean;
  evidence?: ("guessed" | "proxied" | "audited" | "notified" | "unknown")[];
  host?: string;
  id: string;
  message?: string;
  path?: string;
  policy_version?: string;
  rule?: string[];
  run: string;
  seq: number;
  source: string;
  time: string;
  type: "approval_decided";
  v: 1;
  wait_ms: number;
}

export interface ApprovalRequestedEvent {
  arg0?: string;
  argv: string[];
  attempt: number;
  available_decisions: ("denied" | "abort" | "timed_out" | "approved" | "approved_for_session" | "approved_execpolicy_amendment" | "network_policy_amendment")[];
  caller_id?: string;
  cwd: string;
  denials: Denial[];
  environment?: string;
  files?: File[];
  id: string;
  input?: string;
  justification: string;
  kind: string;
  offers: Offer[];
  program: string;
  program_sha256?: string;
  reason: string;
  requires: string[];
  run: string;
  runs: number;
  script: string;
  seq: number;
  time: string;
  type: "approval_requested";
  v: 1;
  variables?: string[];
  wait_ms?: number;
  waiting?: boolean;
}

export interface DeniedEvent {
  addr: string;
  attempt: number;
  call: string;
  caller_id?: string;
  count: number;
  errno: string;
  grant: string;
  harmless?: string;
  name?: string;
  op: "unknown" | "read" | "write" | "exec" | "connect" | "bind" | "signal" | "syscall";
  path: string;
  pid: number;
  program: string;
  rule: string;
  run: string;
  seq: number;
  source: "guessed" | "proxied" | "audited" | "notified" | "unknown";
  time: string;
  type: "denied";
  v: 1;
  wider?: string;
}

export interface EndedEvent {
  attempt: number;
  caller_id?: string;
  duration_ms: number;
  end: string;
  error?: string;
  exit_code: number;
  run: string;
  seq: number;
  time: string;
  type: "ended";
  v: 1;
}

export interface ExitedEvent {
  attempt: number;
  caller_id?: string;
  duration_ms: number;
  exit_code: number;
  run: string;
  seq: number;
  signal: number;
  survivors: Survivor[];
  time: string;
  type: "exited";
  v: 1;
}

export interface GrantedEvent {
  attempt: number;
  by: string;
  call: string;
  caller_id?: string;
  more?: number;
  op: "unknown" | "read" | "write" | "exec" | "connect" | "bind" | "signal" | "syscall";
  path: string;
  run: string;
  seq: number;
  time: string;
  type: "granted";
  v: 1;
  waited_ms: number;
}

export interface JudgedEvent {
  argv: string[];
  attempt: number;
  caller_id?: string;
  cwd: string;
  decision: string;
  policy_version?: string;
  reason?: string;
  rule?: Rule;
  run: string;
  seq: number;
  strict_review?: boolean;
  time: string;
  type: "judged";
  v: 1;
}

export interface ListeningEvent {
  attempt: number;
  caller_id?: string;
  port: number;
  run: string;
  seq: number;
  time: string;
  type: "listening";
  v: 1;
}

export interface NetworkClosedEvent {
  attempt: number;
  caller_id?: string;
  decision: "deny" | "allow" | "ask" | "reject" | "unknown";
  end?: End;
  host: string;
  method?: string;
  policy_version: number;
  port: number;
  protocol: "http" | "https_connect" | "socks5_tcp" | "socks5_udp" | "transparent_tcp" | "dns" | "unknown";
  reason: string;
  rule?: string;
  run: string;
  seq: number;
  source: string;
  time: string;
  type: "network_closed";
  v: 1;
}

export interface NetworkDecidedEvent {
  attempt: number;
  caller_id?: string;
  decision: "deny" | "allow" | "ask" | "reject" | "unknown";
  end?: End;
  host: string;
  method?: string;
  policy_version: number;
  port: number;
  protocol: "http" | "https_connect" | "socks5_tcp" | "socks5_udp" | "transparent_tcp" | "dns" | "unknown";
  reason: string;
  rule?: string;
  run: string;
  seq: number;
  source: string;
  time: string;
  type: "network_decided";
  v: 1;
}

export interface OutputEvent {
  attempt: number;
  caller_id?: string;
  /** Bytes in base64. */
  data?: string;
  dropped_bytes?: number;
  dropped_events?: number;
  number: number;
  offset: number;
  run: string;
  seq: number;
  stream: string;
  text: string;
  time: string;
  type: "output";
  v: 1;
}

export interface QuarantinedEvent {
  attempt: number;
  caller_id?: string;
  grant?: string;
  moved_to?: string;
  path: string;
  run: string;
  seq: number;
  time: string;
  type: "quarantined";
  v: 1;
  why: string;
}

export interface RecordedEvent {
  attempt: number;
  bytes: number;
  caller_id?: string;
  error?: string;
  format: string;
  gaps: number;
  hidden: number;
  path: string;
  run: string;
  seq: number;
  sha256: string;
  time: string;
  type: "recorded";
  v: 1;
}

export interface RetryingEvent {
  added: string[];
  attempt: number;
  caller_id?: string;
  reason: string;
  run: string;
  seq: number;
  time: string;
  type: "retrying";
  v: 1;
}

export interface ReviewCompletedEvent {
  action: string;
  attempt: number;
  attempts: number;
  authorization?: string;
  caller_id?: string;
  completed_at_ms: number;
  decision_source: string;
  error?: string;
  id: string;
  model: string;
  outcome?: string;
  rationale?: string;
  request_id: string;
  risk?: string;
  run: string;
  seq: number;
  shadow: boolean;
  started_at_ms: number;
  status: string;
  time: string;
  type: "review_completed";
  v: 1;
}

export interface ReviewStartedEvent {
  action: string;
  attempt: number;
  caller_id?: string;
  decision_source: string;
  id: string;
  model: string;
  request_id: string;
  run: string;
  seq: number;
  shadow: boolean;
  started_at_ms: number;
  status: string;
  time: string;
  type: "review_started";
  v: 1;
}

export interface SandboxOutcomeEvent {
  attempt: number;
  caller_id?: string;
  escalated_duration_ms?: number;
  evidence: ("guessed" | "proxied" | "audited" | "notified" | "unknown")[];
  initial_duration_ms: number;
  level: string;
  mode: string;
  outcome: string;
  run: string;
  seq: number;
  time: string;
  type: "sandbox_outcome";
  v: 1;
}

export interface StartedEvent {
  attempt: number;
  caller_id?: string;
  run: string;
  sandbox: EventSandbox;
  seq: number;
  time: string;
  type: "started";
  v: 1;
  withheld?: string[];
}

export interface SurvivedEvent {
  attempt: number;
  caller_id?: string;
  run: string;
  seq: number;
  survivor_list: Survivor[];
  survivors: number;
  survivors_by?: string;
  time: string;
  type: "survived";
  v: 1;
}

export interface FsAppendParams {
  /** Bytes in base64. */
  dataBase64: string;
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export type FsAppendResult = { [name: string]: unknown };

export interface FsCanonicalizeParams {
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface FsCanonicalizeResult {
  path: string;
}

export interface FsChmodParams {
  followSymlinks?: boolean | null;
  mode: number;
  path: string;
  sandbox?: SandboxParam | null;
}

export type FsChmodResult = { [name: string]: unknown };

export interface FsCloseParams {
  handleId: string;
}

export type FsCloseResult = { [name: string]: unknown };

export interface FsCopyParams {
  destinationPath: string;
  followSymlinks?: boolean | null;
  recursive: boolean;
  sandbox?: SandboxParam | null;
  sourcePath: string;
}

export type FsCopyResult = { [name: string]: unknown };

export interface FsCreateDirectoryParams {
  followSymlinks?: boolean | null;
  path: string;
  recursive?: boolean | null;
  sandbox?: SandboxParam | null;
}

export type FsCreateDirectoryResult = { [name: string]: unknown };

export interface FsGetMetadataParams {
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface FsGetMetadataResult {
  createdAtMs: number;
  isDirectory: boolean;
  isFile: boolean;
  isSymlink: boolean;
  modifiedAtMs: number;
  size: number;
}

export interface FsMissingChangedParams {
  watchId: number;
}

export interface FsOpenParams {
  followSymlinks?: boolean | null;
  handleId: string;
  mode?: "read" | "replace" | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface FsOpenResult {
  handleId: string;
}

export interface FsReadBlockParams {
  handleId: string;
  len: number;
  offset: number;
}

export interface FsReadBlockResult {
  /** Bytes in base64. */
  chunk: string;
  eof: boolean;
}

export interface FsReadDirectoryParams {
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface FsReadDirectoryResult {
  entries: DirectoryEntry[];
}

export interface FsReadFileParams {
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface FsReadFileResult {
  /** Bytes in base64. */
  dataBase64: string;
}

export interface FsRemoveParams {
  followSymlinks?: boolean | null;
  force?: boolean | null;
  path: string;
  recursive?: boolean | null;
  sandbox?: SandboxParam | null;
}

export type FsRemoveResult = { [name: string]: unknown };

export interface FsRenameParams {
  destinationPath: string;
  followSymlinks?: boolean | null;
  replace?: boolean | null;
  sandbox?: SandboxParam | null;
  sourcePath: string;
}

export type FsRenameResult = { [name: string]: unknown };

export interface FsSymlinkParams {
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
  target: string;
}

export type FsSymlinkResult = { [name: string]: unknown };

export interface FsWalkParams {
  followSymlinks?: boolean | null;
  options: WalkOptionsParam;
  path: string;
  sandbox?: SandboxParam | null;
}

export interface FsWalkResult {
  entries: WalkEntry[];
  errors: WalkError[];
  truncated: boolean;
}

export interface FsWatchMissingParams {
  missing: string[];
  sandbox?: SandboxParam | null;
  watchId: number;
}

export interface FsWatchMissingResult {
  watching: boolean;
}

export interface FsWriteBlockParams {
  /** Bytes in base64. */
  chunk: string;
  handleId: string;
  offset: number;
}

export type FsWriteBlockResult = { [name: string]: unknown };

export interface FsWriteFileParams {
  atomic?: boolean | null;
  /** Bytes in base64. */
  dataBase64: string;
  followSymlinks?: boolean | null;
  path: string;
  sandbox?: SandboxParam | null;
}

export type FsWriteFileResult = { [name: string]: unknown };

export interface HttpRequestParams {
  bodyBase64?: string | null;
  headers?: HTTPHeaderParam[] | null;
  method: string;
  redirectPolicy?: "follow" | "stop" | null;
  requestId: string;
  streamResponse?: boolean;
  timeoutMs?: number | null;
  url: string;
}

export interface HttpRequestResult {
  /** Bytes in base64. */
  bodyBase64: string;
  headers: HTTPField[];
  status: number;
}

export interface HttpRequestBodyDeltaParams {
  /** Bytes in base64. */
  deltaBase64: string;
  done: boolean;
  error: string | null;
  requestId: string;
  seq: number;
}

export type Id = string | number;

export interface InitializeParams {
  approvals?: boolean;
  binaryOutput?: boolean;
  clientName: string;
  extensionMethods?: boolean;
  observeSessionId?: string | null;
  resumeSessionId?: string | null;
  takeOver?: boolean;
}

export interface InitializeResult {
  environmentInfo: Environment | null;
  sessionId: string;
}

export type InitializedParams = { [name: string]: unknown };

export interface NetworkPolicyDecisionParams {
  addresses?: string[];
  client: string;
  decision: string;
  host: string;
  method: string;
  policyOverride: boolean;
  port: number;
  processId: string;
  protocol: string;
  reason: string;
  scope: string;
  source: string;
  timestamp: string;
}

export interface NetworkPolicyRequestParams {
  processId: string;
  request: HostRequest;
}

export interface NetworkPolicyRequestResult {
  decision: PolicyWordParam;
}

export interface ProcessAwaitInputParams {
  processId: string;
}

export interface ProcessAwaitInputResult {
  input?: InputWait;
  unknown?: boolean;
}

export interface ProcessCloseStdinParams {
  processId: string;
  writeId?: string | null;
}

export interface ProcessCloseStdinResult {
  status: string;
}

export interface ProcessClosedParams {
  outcome?: Outcome;
  processId: string;
  seq: number;
}

export interface ProcessExitedParams {
  exitCode: number;
  lost?: boolean;
  processId: string;
  sandboxDenied: boolean;
  seq: number;
  signal?: string;
}

export type ProcessListParams = { [name: string]: unknown } | null;

export interface ProcessListResult {
  processes: ListedProcess[];
}

export interface ProcessOutputParams {
  /** Bytes in base64. */
  chunk: string;
  processId: string;
  seq: number;
  stream: string;
}

export interface ProcessReadParams {
  afterSeq?: number | null;
  maxBytes?: number | null;
  processId: string;
  waitMs?: number | null;
}

export interface ProcessReadResult {
  chunks: Chunk[];
  closed: boolean;
  exitCode: number | null;
  exited: boolean;
  failure: string | null;
  lost?: boolean;
  nextSeq: number;
  outcome?: Outcome;
  sandboxDenied: boolean;
  sandboxType?: string;
  signal?: string;
  truncatedBefore?: number;
  truncatedBytes?: number;
}

export interface ProcessResizeParams {
  cols: number;
  processId: string;
  rows: number;
}

export type ProcessResizeResult = { [name: string]: unknown };

export interface ProcessSignalParams {
  processId: string;
  signal: string;
}

export type ProcessSignalResult = { [name: string]: unknown };

export interface ProcessStartParams {
  arg0?: string | null;
  argv: string[];
  confine?: ConfineParam | null;
  cwd: string;
  env: { [name: string]: string };
  envPolicy?: EnvPolicyParam | null;
  idempotencyKey?: string | null;
  networkProxy?: NetworkProxyParam | null;
  pipeStdin?: boolean;
  processId: string;
  sandbox?: SandboxParam | null;
  tmp?: "private" | null;
  tty: boolean;
  ttySize?: TTYSizeParam | null;
}

export interface ProcessStartResult {
  processId: string;
  sandbox?: Sandbox;
  sandboxType: string;
}

export interface ProcessTerminateParams {
  graceMs?: number | null;
  processId: string;
}

export interface ProcessTerminateResult {
  running: boolean;
}

export interface ProcessWriteParams {
  /** Bytes in base64. */
  chunk: string;
  processId: string;
  writeId: string;
}

export interface ProcessWriteResult {
  status: string;
}

export interface QuestionAnswerParams {
  decision: string;
  digest: string;
  id: string;
  message?: string | null;
  path?: string | null;
  source?: string | null;
}

export type QuestionAnswerResult = { [name: string]: unknown };

export interface QuestionForgetParams {
  id: string;
}

export type QuestionForgetResult = { [name: string]: unknown };

export type QuestionListParams = {
  since?: string | null;
  waitMs?: number | null;
} | null;

export interface QuestionListResult {
  answered?: Answered[];
  approved: Approved[];
  omitted: number;
  questions: Question[];
  version?: string;
}

export interface RequestCancelParams {
  id: Id;
}

export interface RunApproveParams {
  request: ApprovalRequest;
  runId: string;
}

export interface RunApproveResult {
  decision: string;
  message?: string | null;
  path?: string | null;
}

export interface RunCloseStdinParams {
  runId: string;
}

export type RunCloseStdinResult = { [name: string]: unknown };

export interface RunEventParams {
  event: Event;
  runId: string;
}

export type RunListParams = {
  since?: string | null;
  waitMs?: number | null;
} | null;

export interface RunListResult {
  runs: ListedRun[];
  version?: string;
}

export interface RunReadParams {
  after: number;
  maxBytes?: number | null;
  reader?: RunReaderParam | null;
  runId: string;
  waitMs?: number | null;
}

export interface RunReadResult {
  chunks: RunChunk[];
  complete: boolean;
  next: number;
  result?: Result;
}

export interface RunRemoveParams {
  runId: string;
}

export type RunRemoveResult = { [name: string]: unknown };

export interface RunResizeParams {
  cols: number;
  rows: number;
  runId: string;
}

export type RunResizeResult = { [name: string]: unknown };

export interface RunResultParams {
  from?: number | null;
  output?: boolean | null;
  runId: string;
}

export interface RunResultResult {
  complete?: boolean;
  /** Bytes in base64. */
  part?: string;
  result?: Result;
}

export interface RunScreenParams {
  runId: string;
}

export interface RunScreenResult {
  alternate: boolean;
  col: number;
  cols: number;
  hidden: boolean;
  lines: string[];
  modes?: string;
  row: number;
  rows: number;
  title: string;
}

export interface RunSignalParams {
  runId: string;
  signal: string;
}

export type RunSignalResult = { [name: string]: unknown };

export interface RunStartParams {
  args: string[];
  askWrites?: boolean | null;
  cwd?: string | null;
  env?: { [name: string]: string } | null;
  events?: boolean | null;
  hidden?: string[] | null;
  idempotencyKey?: string | null;
  openStdin?: boolean | null;
  reader?: boolean | null;
  sandbox?: RunSandboxParam | null;
  screen?: boolean | null;
  stage?: boolean | string | null;
  startId?: string | null;
  transient?: boolean | null;
  tty?: RunSizeParam | null;
  unattended?: boolean | null;
}

export interface RunStartResult {
  result?: Result;
  runId: string;
  started: boolean;
}

export interface RunTerminateParams {
  runId: string;
}

export interface RunTerminateResult {
  running: boolean;
}

export interface RunWaitParams {
  for: RunConditionsParam;
  runId: string;
  timeoutMs?: number | null;
}

export interface RunWaitResult {
  after: number;
  elapsedMs: number;
  input?: InputWait;
  next: number;
  port?: number;
  reason: string;
  result?: Result;
}

export interface RunWriteParams {
  /** Bytes in base64. */
  chunk: string;
  runId: string;
  writeId?: string | null;
}

export type RunWriteResult = { [name: string]: unknown };

export type SandboxListParams = { [name: string]: unknown } | null;

export interface SandboxListResult {
  sandboxes: ListedSandbox[];
}

export interface SandboxStopParams {
  name: string;
}

export type SandboxStopResult = { [name: string]: unknown };

export interface StageApplyParams {
  dryRun?: boolean | null;
  force?: boolean | null;
  paths?: string[] | null;
  stageId: string;
}

export interface StageApplyResult {
  applied: string[];
  conflicts: Conflict[];
  left: number;
  omitted?: number;
  refused: Conflict[];
}

export interface StageChangesParams {
  after?: number | null;
  paths?: string[] | null;
  stageId: string;
}

export interface StageChangesResult {
  changes: Change[];
  changesTotal: number;
}

export interface StageDiffParams {
  from?: number | null;
  paths?: string[] | null;
  stageId: string;
}

export interface StageDiffResult {
  bytesTotal: number;
  digest: string;
  /** Bytes in base64. */
  part: string;
}

export interface StageDiscardParams {
  force?: boolean | null;
  paths?: string[] | null;
  stageId: string;
}

export type StageDiscardResult = { [name: string]: unknown };

export type StageListParams = {
  since?: string | null;
  waitMs?: number | null;
} | null;

export interface StageListResult {
  omitted?: number;
  stages: StageInfo[];
  version?: string;
  warning?: string;
}

/** The parameters and the result of each request. */
export interface Requests {
  "capabilityRoots/discoverV1": { params: CapabilityRootsDiscoverV1Params; result: CapabilityRootsDiscoverV1Result };
  "environment/info": { params: EnvironmentInfoParams; result: EnvironmentInfoResult };
  "environment/status": { params: EnvironmentStatusParams; result: EnvironmentStatusResult };
  "environmentConfig/read": { params: EnvironmentConfigReadParams; result: EnvironmentConfigReadResult };
  "fs/append": { params: FsAppendParams; result: FsAppendResult };
  "fs/canonicalize": { params: FsCanonicalizeParams; result: FsCanonicalizeResult };
  "fs/chmod": { params: FsChmodParams; result: FsChmodResult };
  "fs/close": { params: FsCloseParams; result: FsCloseResult };
  "fs/copy": { params: FsCopyParams; result: FsCopyResult };
  "fs/createDirectory": { params: FsCreateDirectoryParams; result: FsCreateDirectoryResult };
  "fs/getMetadata": { params: FsGetMetadataParams; result: FsGetMetadataResult };
  "fs/open": { params: FsOpenParams; result: FsOpenResult };
  "fs/readBlock": { params: FsReadBlockParams; result: FsReadBlockResult };
  "fs/readDirectory": { params: FsReadDirectoryParams; result: FsReadDirectoryResult };
  "fs/readFile": { params: FsReadFileParams; result: FsReadFileResult };
  "fs/remove": { params: FsRemoveParams; result: FsRemoveResult };
  "fs/rename": { params: FsRenameParams; result: FsRenameResult };
  "fs/symlink": { params: FsSymlinkParams; result: FsSymlinkResult };
  "fs/walk": { params: FsWalkParams; result: FsWalkResult };
  "fs/watchMissing": { params: FsWatchMissingParams; result: FsWatchMissingResult };
  "fs/writeBlock": { params: FsWriteBlockParams; result: FsWriteBlockResult };
  "fs/writeFile": { params: FsWriteFileParams; result: FsWriteFileResult };
  "http/request": { params: HttpRequestParams; result: HttpRequestResult };
  "initialize": { params: InitializeParams; result: InitializeResult };
  "network/policyRequest": { params: NetworkPolicyRequestParams; result: NetworkPolicyRequestResult };
  "process/awaitInput": { params: ProcessAwaitInputParams; result: ProcessAwaitInputResult };
  "process/closeStdin": { params: ProcessCloseStdinParams; result: ProcessCloseStdinResult };
  "process/list": { params: ProcessListParams; result: ProcessListResult };
  "process/read": { params: ProcessReadParams; result: ProcessReadResult };
  "process/resize": { params: ProcessResizeParams; result: ProcessResizeResult };
  "process/signal": { params: ProcessSignalParams; result: ProcessSignalResult };
  "process/start": { params: ProcessStartParams; result: ProcessStartResult };
  "process/terminate": { params: ProcessTerminateParams; result: ProcessTerminateResult };
  "process/write": { params: ProcessWriteParams; result: ProcessWriteResult };
  "question/answer": { params: QuestionAnswerParams; result: QuestionAnswerResult };
  "question/forget": { params: QuestionForgetParams; result: QuestionForgetResult };
  "question/list": { params: QuestionListParams; result: QuestionListResult };
  "run/approve": { params: RunApproveParams; result: RunApproveResult };
  "run/closeStdin": { params: RunCloseStdinParams; result: RunCloseStdinResult };
  "run/list": { params: RunListParams; result: RunListResult };
  "run/read": { params: RunReadParams; result: RunReadResult };
  "run/remove": { params: RunRemoveParams; result: RunRemoveResult };
  "run/resize": { params: RunResizeParams; result: RunResizeResult };
  "run/result": { params: RunResultParams; result: RunResultResult };
  "run/screen": { params: RunScreenParams; result: RunScreenResult };
  "run/signal": { params: RunSignalParams; result: RunSignalResult };
  "run/start": { params: RunStartParams; result: RunStartResult };
  "run/terminate": { params: RunTerminateParams; result: RunTerminateResult };
  "run/wait": { params: RunWaitParams; result: RunWaitResult };
  "run/write": { params: RunWriteParams; result: RunWriteResult };
  "sandbox/list": { params: SandboxListParams; result: SandboxListResult };
  "sandbox/stop": { params: SandboxStopParams; result: SandboxStopResult };
  "stage/apply": { params: StageApplyParams; result: StageApplyResult };
  "stage/changes": { params: StageChangesParams; result: StageChangesResult };
  "stage/diff": { params: StageDiffParams; result: StageDiffResult };
  "stage/discard": { params: StageDiscardParams; result: StageDiscardResult };
  "stage/list": { params: StageListParams; result: StageListResult };
}

/** The parameters of each notification. */
export interface Notifications {
  "fs/missingChanged": FsMissingChangedParams;
  "http/request/bodyDelta": HttpRequestBodyDeltaParams;
  "initialized": InitializedParams;
  "network/policyDecision": NetworkPolicyDecisionParams;
  "process/closed": ProcessClosedParams;
  "process/exited": ProcessExitedParams;
  "process/output": ProcessOutputParams;
  "request/cancel": RequestCancelParams;
  "run/event": RunEventParams;
}

/** The kinds of events that these types know. */
export const eventTypes = [
  "approval_decided",
  "approval_requested",
  "denied",
  "ended",
  "exited",
  "granted",
  "judged",
  "listening",
  "network_closed",
  "network_decided",
  "output",
  "quarantined",
  "recorded",
  "retrying",
  "review_completed",
  "review_started",
  "sandbox_outcome",
  "started",
  "survived",
] as const;
