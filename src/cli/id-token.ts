import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { isLoopbackHost, KeysError, readBounded } from '../keys/basics/index.ts';
import { CliError } from './errors.ts';
import { readText } from './input/input.ts';

/** Where a platform may mount the token of a workload, as Kubernetes does by a projected volume. */
const PROJECTED_TOKEN = '/var/run/secrets/svc-api/token';
const [PATIENCE_MS, MAX_BYTES] = [30_000, 64 * 1024];

/** Where to look for a token. */
interface TokenPlaces {
  /** The path of a file, if one was named. */
  readonly file: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** For whom it is to be, where the platform makes it when asked. */
  readonly audience: string;
}

/**
 * The token by which the platform of a pipeline, or a workload, says who it is: of a file, of GitLab and what sets
 * SVC_API_ID_TOKEN as it does, of GitHub and Forgejo, of Buildkite, or of a projected volume.
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
  throw new CliError('USAGE', `No token was found: not by ${places}, nor in ${PROJECTED_TOKEN}. Pass --token-file.`);
}

async function readToken(path: string): Promise<string> {
  const token = (await readText(path, path)).trim();
  if (token !== '') return token;
  throw new KeysError('INPUT_INVALID', `The file ${path} is empty: it must have the token, and nothing else.`);
}

/** Asks GitHub, or Forgejo. */
async function askActions(place: string, bearer: string, audience: string): Promise<string> {
  const url = URL.parse(place);
  if (!url || (url.protocol !== 'https:' && !isLoopbackHost(url.hostname)))
    throw new CliError('USAGE', 'ACTIONS_ID_TOKEN_REQUEST_URL is no address that begins with https://.');
  url.searchParams.set('audience', audience);
  try {
    const headers = { authorization: `bearer ${bearer}`, accept: 'application/json', 'user-agent': 'svc-api' };
    const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(PATIENCE_MS) });
    const text = Buffer.from((await readBounded(answer.body, MAX_BYTES)) ?? []).toString();
    const { value } = JSON.parse(text) as { value?: unknown };
    if (answer.status !== 200 || typeof value !== 'string') throw new Error(`status ${answer.status}`);
    return value;
  } catch (error) {
    // Its message may have what was answered.
    throw new KeysError('SERVER_UNREACHABLE', `${url.host} gives no token for this job. Try again later.`, {
      cause: error,
    });
  }
}

/** With the claims that rules for it demand, which it leaves out otherwise. */
async function askBuildkite(audience: string, env: NodeJS.ProcessEnv): Promise<string> {
  const claims = ['organization_id', 'pipeline_id'].flatMap((claim) => ['--claim', claim]);
  const args = ['oidc', 'request-token', '--audience', audience, ...claims];
  try {
    const { stdout } = await promisify(execFile)('buildkite-agent', args, { env, timeout: PATIENCE_MS });
    return stdout.trim();
  } catch (error) {
    const { code } = error as { code?: string | number };
    throw new KeysError('SERVER_UNREACHABLE', `"buildkite-agent oidc request-token" has failed (${code}).`);
  }
}
