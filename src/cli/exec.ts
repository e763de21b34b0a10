import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { CliError, presentError } from './errors.ts';
import { exitCodeOf } from './error-codes.ts';
import { HeldSignals, waitUnlessSignalled } from './signals.ts';
import { warn } from './terminal.ts';
import { type KeysPlace, withAdministration } from './with-keys.ts';
import { warningsOf } from '../keys/changes/index.ts';
import {
  assertValid,
  debugTimed,
  formatTime,
  isLoopbackHost,
  type Issue,
  KeysError,
  NameTakenError,
  printable,
  proxyNote,
  readBounded,
  readDuration,
} from '../keys/basics/index.ts';
import type { Suggestion } from '../keys/authorization/index.ts';
import { scopeItems } from '../keys/permissions/index.ts';
import { MAX_NAME_LENGTH, type NewKey, validateNewKey } from '../keys/key/index.ts';
import { prefixOf, readSecret } from '../keys/secret/index.ts';
import type { Client } from '../keys/operations/index.ts';
import type { KeyState } from '../keys/service/index.ts';
import { readText } from './input/input.ts';

/** Variables of libpq that hold a credential, or the path of one. */
const CREDENTIALS = new Set([
  'PGPASSWORD',
  'PGPASSFILE',
  'PGSERVICE',
  'PGSERVICEFILE',
  'PGSSLCERT',
  'PGSSLKEY',
  'PGSSLPASSWORD',
]);

/**
 * The environment for a command that gets a temporary key, without credentials of the key store, keys for servers, and
 * identity tokens, which would let it create any key for itself. Paths of files stay: the file's mode decides who can
 * read it.
 */
export function childEnvironment(env: NodeJS.ProcessEnv, database: string | undefined): NodeJS.ProcessEnv {
  const isOnServer = isServer(database ?? env['SVC_API_DATABASE']);
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) =>
        name !== 'SVC_API_KEY' &&
        name !== 'SVC_API_ID_TOKEN' &&
        !(name === 'SVC_API_DATABASE' && isServer(value)) &&
        !(isOnServer && CREDENTIALS.has(name)),
    ),
  );
}

function isServer(database: string | undefined): boolean {
  return /^\s*postgres(ql)?:/i.test(database ?? '');
}

/** The flags for a temporary key. */
interface TemporaryKeyRequest extends Pick<NewKey, 'roles' | 'permissions' | 'limits'> {
  name?: string | undefined;
  /** The lifetime of the key if it is not deleted earlier: a duration such as `10m`; undefined for the default. */
  ttl: string | undefined;
  /** The command, as typed, without its arguments, which may be secret. */
  command: string;
}

/** A key for the run time of one command. */
export interface TemporaryKey {
  secret: string;
  name: string;
  expiresAt: number | null;
  /** Deletes it and its child keys; it may be deleted already. @throws KeysError STORE_… */
  remove: () => Promise<void>;
  /** The fewest grants for its use, once servers have written that; undefined if it was not used. */
  learn?: (wait: (ms: number) => Promise<unknown>) => Promise<Suggestion | undefined>;
}

/** Servers write usage with a delay of up to two seconds, or a little more under load. */
const LEARN_STEP_MS = 1000;
/** The number of steps without new usage, and the total number of steps, after which waiting ends. */
const [LEARN_QUIET, LEARN_STEPS] = [5, 35];

/** Waits until no more usage of a key is written. @returns its usage */
async function learnUse(
  keys: Client,
  { id, name }: { id: string; name: string },
  wait: (ms: number) => Promise<unknown>,
): Promise<Suggestion | undefined> {
  let [seen, quiet] = ['', 0];
  for (let step = 0; step < LEARN_STEPS && quiet < LEARN_QUIET; step += 1) {
    await wait(LEARN_STEP_MS);
    const state = await keys.apiKey({ name });
    if (state?.apiKey.id !== id) return undefined;
    const now = JSON.stringify([state.use, await keys.suggest(state.apiKey)]);
    [seen, quiet] = [now, now === seen ? quiet + 1 : 0];
  }
  const [{ uses }, suggestion] = JSON.parse(seen) as [KeyState['use'], Suggestion];
  return uses > 0 ? suggestion : undefined;
}

/** Names that YAML would read as a number or another type than text. */
const NO_TEXT = /^(?:\d|(?:true|false|null)$)/i;

/** The grants that a command needs, as flags and as an entry of a file for `apply`. */
function learnedText(command: string, learned: Suggestion | undefined): string {
  const program = printable(basename(command));
  if (!learned) return `"${program}" did not use its key: no server received it.`;
  const grants = Object.entries({ roles: learned.roles, permissions: learned.permissions }).filter(
    ([, list]) => list.length > 0,
  );
  const names = [
    ...named(
      'Tools it called',
      learned.tools.map(({ name }) => name),
    ),
    ...named('Routes that let it pass', learned.routes),
  ];
  if (grants.length === 0) return [`"${program}" used its key, but none of its grants.`, ...names].join('\n');
  const name = basename(command)
    .replaceAll(/[^\p{L}\p{Nd}]+/gu, ' ')
    .trim()
    .slice(0, MAX_NAME_LENGTH);
  const quote = NO_TEXT.test(name) ? '"' : '';
  return [
    `What "${program}" used:`,
    `  ${grants.map(([flag, list]) => `--${flag} ${list.join(',')}`).join(' ')}`,
    'For a file for apply:',
    `  - name: ${quote}${name || 'Learned'}${quote}`,
    ...grants.map(([field, list]) => `    ${field}: [${list.join(', ')}]`),
    ...names,
  ].join('\n');
}

function named(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${what}:`, ...names.map((name) => `  ${printable(name, 200)}`)];
}

interface TemporaryKeyOptions {
  request: TemporaryKeyRequest;
  place: KeysPlace;
  /** Further problems with the flags, so that all issues are reported together. */
  issues: readonly Issue[];
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Creates a temporary key. The store is open only for the creation and for the removal.
 * @throws ValidationError with all issues; NameTakenError; KeysError STORE_…
 */
export async function createTemporaryKey({ request, place, issues, note }: TemporaryKeyOptions): Promise<TemporaryKey> {
  const { roles, permissions, limits, ttl = '10m', command, name } = request;
  const input: NewKey = {
    name: name ?? temporaryName(new Date()),
    description: `Temporary, for the command "${printable(basename(command))}". Deleted when it ends.`,
    roles,
    limits,
    permissions,
    expiresIn: ttl,
  };
  const grants = permissions ?? [];
  assertValid([...issues, ...validateNewKey(input, await place.catalog(grants), Date.now())]);

  const created = await withAdministration(place, { ifMissing: 'create', grants }, (keys) =>
    keys.createApiKey({ input }),
  ).catch((error) => {
    // Nothing is replaced here: a command must not delete a key that happens to have the same name.
    throw error instanceof NameTakenError ? new NameTakenError(input.name, false) : error;
  });
  await warn({ note }, warningsOf(created.confusable));
  const { id, name: given, expiresAt } = created.apiKey;
  return {
    secret: created.key,
    name: given,
    expiresAt,
    // By id, since another key may have the name by now. A deleted store is not created again.
    remove: () =>
      withAdministration(
        place,
        { ifMissing: 'fail', grants: 'none' },
        async (keys) => void (await keys.deleteApiKeys({ ids: [id] })),
      ),
    learn: (wait) =>
      withAdministration(place, { ifMissing: 'fail' }, (keys) => learnUse(keys, { id, name: given }, wait)),
  };
}

/** Options for a temporary key from a server, which needs no credentials on this machine. */
interface FederatedKeyOptions {
  request: TemporaryKeyRequest;
  /** Its address, in the form of `readServerUrl`. */
  server: string;
  token: () => Promise<string>;
  issues: readonly Issue[];
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Gets a temporary key from a server in exchange for an identity token.
 * @throws ValidationError with all issues; CliError USAGE; KeysError UNAUTHENTICATED, INPUT_INVALID, SERVER_…
 */
export async function exchangeTemporaryKey({
  request: { roles = [], permissions = [], ttl, name },
  server,
  token,
  issues,
  note,
}: FederatedKeyOptions): Promise<TemporaryKey> {
  const milliseconds = ttl === undefined ? undefined : readDuration(ttl);
  const unread: Issue = {
    code: 'EXPIRY_INVALID',
    message: `--expires-in is "${printable(ttl ?? '')}". Write it as 90s or 10m.`,
  };
  assertValid([...issues, ...(ttl !== undefined && milliseconds === undefined ? [unread] : [])]);
  const { endKey, exchangeToken } = await import('../remote/oauth.ts');
  const trimmed = (list: readonly string[]) => list.map((item) => item.trim());
  const scope = scopeItems({ roles: trimmed(roles), permissions: trimmed(permissions) }).join(' ');
  const seconds = milliseconds === undefined ? undefined : milliseconds / 1000;
  const { secret, expiresIn } = await exchangeToken(
    server,
    await token(),
    { scope, name, seconds },
    { note, wait: waitUnlessSignalled, now: Date.now },
  );
  return {
    secret,
    name: prefixOf(readSecret(secret)!.publicId),
    expiresAt: expiresIn === null ? null : Date.now() + expiresIn * 1000,
    remove: async () => void (await endKey({ server, secret, endsCreated: true })),
  };
}

/** Includes the time, and a random part for several in one second: `exec 20261121 103000 ab12cd`. */
function temporaryName(now: Date): string {
  const [day, time] = now
    .toISOString()
    .replaceAll(/[-:]|\..*/g, '')
    .split('T');
  return `exec ${day} ${time} ${randomBytes(3).toString('hex')}`;
}

interface RunOptions {
  command: string;
  args: readonly string[];
  /** The environment of the command, without the key. */
  environment: NodeJS.ProcessEnv;
  /** The environment variable for the secret. */
  variable: string;
  create: () => Promise<TemporaryKey>;
  /** True to print the grants that the command used. */
  learns?: boolean;
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Runs a command with a temporary key in its environment. The key is deleted when the command ends, in any way, or as
 * soon as this process gets a signal to terminate, since the command may take long to obey.
 * @returns the exit code for this process
 * @throws CliError COMMAND_NOT_FOUND or COMMAND_NOT_RUN; errors of `create`
 */
export async function runWithKey({
  command,
  args,
  environment,
  variable,
  create,
  learns,
  note,
}: RunOptions): Promise<number> {
  let key: TemporaryKey | undefined;
  // Listens before the key exists, so that no signal leaves it behind. A failed removal is tried again at the end.
  const signals = new HeldSignals(() => void key?.remove().catch(() => {}));
  signals.hold();
  try {
    key = await create();
    let removed = false;
    let code: number;
    try {
      const env = { ...environment, [variable]: key.secret };
      const runIt = async () => {
        const signal = await signals.first();
        return signal ? exitCodeOf(signal) : run(command, args, env, signals);
      };
      code = await debugTimed('another command was run', runIt, (exit) => ({ program: printable(command), exit }));
      if (learns && key.learn && !(await signals.first())) await note(await learned(command, key.learn));
    } finally {
      removed = await remove(key, note);
    }
    return removed ? code : code || 1;
  } finally {
    await signals.release();
  }
}

/** The grants that a command used, or the error of reading them, which must not hide the command's own result. */
async function learned(command: string, learn: NonNullable<TemporaryKey['learn']>): Promise<string> {
  try {
    return learnedText(command, await learn(waitUnlessSignalled));
  } catch (error) {
    return `Error: The permissions that the command used could not be read: ${presentError(error).message.replaceAll('\n', ' ')}`;
  }
}

/** Runs a command on this process's own streams, and waits until it exits. @returns its exit code */
async function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signals: HeldSignals,
): Promise<number> {
  try {
    const [code, signal] = await signals.passTo(spawn(command, args, { stdio: 'inherit', env }));
    return signal ? exitCodeOf(signal) : (code ?? 1);
  } catch (error) {
    throw startError(command, error as NodeJS.ErrnoException);
  }
}

/** Uses the exit codes of shells: 127 for a command that was not found, 126 for one that can't be executed. */
function startError(command: string, error: NodeJS.ErrnoException): CliError {
  const shown = `"${printable(command)}"`;
  if (error.code === 'ENOENT')
    return new CliError('COMMAND_NOT_FOUND', `The command ${shown} was not found. Check its name, and PATH.`, {
      cause: error,
    });
  const reason =
    error.code === 'EACCES'
      ? 'permission denied, or it is not executable. Make it executable, or name the program that runs it'
      : `${error.code ?? error.message}. Check its path`;
  return new CliError('COMMAND_NOT_RUN', `The command ${shown} could not be run: ${reason}.`, { cause: error });
}

/** Deletes the key. A failure is reported, not thrown: it must not hide the command's own result. */
async function remove(key: TemporaryKey, note: RunOptions['note']): Promise<boolean> {
  try {
    await key.remove();
    return true;
  } catch (error) {
    const { code, message } = presentError(error);
    const reason = message.replaceAll('\n', ' ');
    const expiry = key.expiresAt === null ? '' : ` It expires at ${formatTime(key.expiresAt)}.`;
    await note(`Error: The temporary key "${key.name}" could not be deleted (${code}): ${reason}${expiry}`);
    return false;
  }
}

/** The path at which a platform can mount the token of a workload, like Kubernetes with a projected volume. */
const PROJECTED_TOKEN = '/var/run/secrets/svc-api/token';
const [PATIENCE_MS, MAX_BYTES] = [30_000, 64 * 1024];

/** The places to look for a token. */
interface TokenPlaces {
  /** The path of a file, if one was given. */
  readonly file: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** The audience of the token, if the platform issues it on request. */
  readonly audience: string;
}

/**
 * The identity token of a pipeline or workload: from a file, from GitLab and platforms that set SVC_API_ID_TOKEN the
 * same way, from GitHub and Forgejo, from Buildkite, or from a projected volume.
 * @throws CliError USAGE if there is none; KeysError INPUT_INVALID, SERVER_UNREACHABLE
 */
export async function findIdToken({ file, env, audience }: TokenPlaces): Promise<string> {
  if (file !== undefined) return readToken(file);
  if (env['SVC_API_ID_TOKEN']) return env['SVC_API_ID_TOKEN'].trim();
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer } = env;
  if (url && bearer) return askActions(url, bearer, audience);
  if (env['BUILDKITE'] === 'true') return askBuildkite(audience, env);
  if (existsSync(PROJECTED_TOKEN)) return readToken(PROJECTED_TOKEN);
  const places =
    'SVC_API_ID_TOKEN, ACTIONS_ID_TOKEN_REQUEST_URL (GitHub: "permissions: { id-token: write }"), Buildkite';
  throw new CliError('USAGE', `No token was found in ${places}, or ${PROJECTED_TOKEN}. Pass --token-file.`);
}

async function readToken(path: string): Promise<string> {
  const token = (await readText(path, path)).trim();
  if (token !== '') return token;
  throw new KeysError('INPUT_INVALID', `The file ${path} is empty. Put only the token into it.`);
}

/** Requests a token from GitHub or Forgejo. */
async function askActions(place: string, bearer: string, audience: string): Promise<string> {
  const url = URL.parse(place);
  if (!url || (url.protocol !== 'https:' && !isLoopbackHost(url.hostname)))
    throw new CliError('USAGE', 'ACTIONS_ID_TOKEN_REQUEST_URL is not an address that begins with https://.');
  url.searchParams.set('audience', audience);
  try {
    const headers = { authorization: `bearer ${bearer}`, accept: 'application/json', 'user-agent': 'svc-api' };
    const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(PATIENCE_MS) });
    const text = Buffer.from((await readBounded(answer.body, MAX_BYTES)) ?? []).toString();
    const { value } = JSON.parse(text) as { value?: unknown };
    if (answer.status !== 200 || typeof value !== 'string') throw new Error(`status ${answer.status}`);
    return value;
  } catch (error) {
    // Its message could contain the answer.
    throw new KeysError(
      'SERVER_UNREACHABLE',
      `${url.host} gave no token for this job. Try again later.${proxyNote(url.href)}`,
      {
        cause: error,
      },
    );
  }
}

/** Requests the claims that rules for Buildkite need, which it otherwise leaves out. */
async function askBuildkite(audience: string, env: NodeJS.ProcessEnv): Promise<string> {
  const claims = ['organization_id', 'pipeline_id'].flatMap((claim) => ['--claim', claim]);
  const args = ['oidc', 'request-token', '--audience', audience, ...claims];
  try {
    const { stdout } = await promisify(execFile)('buildkite-agent', args, { env, timeout: PATIENCE_MS });
    return stdout.trim();
  } catch (error) {
    const { code } = error as { code?: string | number };
    throw new KeysError(
      'SERVER_UNREACHABLE',
      `"buildkite-agent oidc request-token" failed (${code}). Its output says why.`,
    );
  }
}
