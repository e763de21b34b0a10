import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { CliError } from '../../../cli/errors.ts';
import { readText } from '../../../cli/input/input.ts';
import { isLoopbackHost, KeysError, proxyNote, readBounded } from '../../../keys/basics/index.ts';

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
