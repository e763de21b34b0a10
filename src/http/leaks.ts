import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { Context, Hono, MiddlewareHandler } from 'hono';
import { OPERATOR } from '../keys/authorization/index.ts';
import { isRecord, readBounded, sourceOf } from '../keys/basics/index.ts';
import { digestSecret, prefixOf } from '../keys/secret/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { BearerEnv } from './bearer-auth.ts';
import { tooManyFailures } from './bearer-check.ts';
import type { CheckParts } from './bearer-options.ts';
import { failedForm, readToken } from './plain-endpoints.ts';
import { type ClientAddresses, HonoHead } from './received.ts';
import { answering, errorReply, jsonReply, type Reply } from './replies.ts';
import { badRequest, parseJson, readFetched } from './request-body.ts';

interface LeakParts extends CheckParts {
  readonly keys: Pick<KeysService, 'identify' | 'leaks'>;
  readonly addresses: ClientAddresses;
  /** Where GitHub's public keys are; undefined if it may tell nothing. */
  readonly githubKeys: string | undefined;
}

const MAX_ALERT_BYTES = 256 * 1024;
const MAX_ALERTS = 1000;

/** Adds the endpoints by which whoever has found a secret ends it. Pages of other origins may call the first. */
export function addLeaks(app: Hono<BearerEnv>, allowOrigins: MiddlewareHandler, parts: LeakParts): void {
  const failed = failedForm(parts.failures);
  app.all(
    '/revoke',
    allowOrigins,
    answering((c) => answerRevocation(c, parts), failed),
  );
  if (parts.githubKeys === undefined) return;
  const github = new GithubKeys(parts.githubKeys);
  app.post(
    '/alerts/github',
    answering((c) => answerAlert(c, parts, github), failed),
  );
}

/**
 * Revokes a key for whoever has its secret, which is the proof that they may (RFC 7009, section 2). What is not a key,
 * or is refused already, is answered alike, until there was too much of it from one address.
 */
async function answerRevocation(c: Context, parts: LeakParts): Promise<Reply> {
  const token = (await readToken(c, 'Keys are revoked')).trim();
  const isKnown = await revoke(c, token, 'POST /revoke', parts);
  return (isKnown ? undefined : countFailure(c, parts)) ?? jsonReply({});
}

/**
 * Revokes what GitHub has found in public, by the protocol of its secret scanning partner program.
 * @returns which of the texts are secrets of keys, or were
 */
async function answerAlert(c: Context, parts: LeakParts, github: GithubKeys): Promise<Reply> {
  const body = await readFetched(c.req.raw, MAX_ALERT_BYTES);
  const id = c.req.header('github-public-key-identifier') ?? '';
  const signature = c.req.header('github-public-key-signature') ?? '';
  if (!(await github.isSigned(body, { id, signature }))) {
    const reason = 'signature';
    parts.refusals.add('alert refused', { reason, address: addressOf(c, parts) }, new HonoHead(c).notes);
    return countFailure(c, parts) ?? errorReply(403, 'FORBIDDEN', 'The alert has no valid signature of GitHub.');
  }
  const alerts = parseJson(body.toString(), 'The alert');
  if (!Array.isArray(alerts) || alerts.length > MAX_ALERTS)
    throw badRequest(`The alert is a list of at most ${MAX_ALERTS}.`);
  const labels = [];
  for (const alert of alerts as unknown[]) {
    if (!isRecord(alert) || typeof alert['token'] !== 'string') throw badRequest('An alert has no token.');
    const { token, type, url, source } = alert;
    const place = ['GitHub', url ?? source].filter((part) => typeof part === 'string' && part !== '').join(': ');
    const isKnown = await revoke(c, token, place, parts);
    labels.push({
      token_hash: Buffer.from(digestSecret(token), 'base64url').toString('base64'),
      token_type: typeof type === 'string' ? type : '',
      label: isKnown ? 'true_positive' : 'false_positive',
    });
  }
  return jsonReply(labels);
}

/** Revokes a secret. @returns whether a key has it, or had it @throws KeysError STORE_… */
async function revoke(c: Context, secret: string, place: string, parts: LeakParts): Promise<boolean> {
  const { keys, refusals } = parts;
  const address = addressOf(c, parts);
  const { notes } = new HonoHead(c);
  const found = await keys.identify(secret, OPERATOR);
  if ('unknown' in found) {
    refusals.add('revocation refused', { reason: found.unknown, address }, notes);
    return false;
  }
  const { apiKey, publicId, status } = found;
  refusals.add('secret revoked', { reason: status.toLowerCase(), prefix: prefixOf(publicId), address }, notes);
  if (status !== 'ROTATED') await keys.leaks.revoke({ id: apiKey.id, publicId, place, address });
  return true;
}

function addressOf(c: Context, { addresses }: LeakParts): string | undefined {
  return addresses.of(new HonoHead(c)).address;
}

/** Counts what was not valid. @returns the reply in place of any other, once there was too much of it */
function countFailure(c: Context, parts: LeakParts): Reply | undefined {
  const address = addressOf(c, parts);
  const waitUs = address === undefined ? undefined : parts.failedCredentials?.add(sourceOf(address));
  return waitUs === undefined ? undefined : tooManyFailures(waitUs);
}

const WAIT_MS = 5000;
const MAX_BYTES = 256 * 1024;
/** How long keys are kept, and how often at most unknown ones are asked for, in milliseconds. */
const KEPT_MS = 3_600_000;
const AGAIN_MS = 60_000;
const MAX_ID_LENGTH = 200;

/**
 * The public keys by which GitHub signs what it tells partners of its secret scanning: ECDSA on P-256, of the SHA-256
 * of the body. They are fetched when they are needed, once for all that wait.
 */
class GithubKeys {
  readonly #address: string;
  #keys: ReadonlyMap<string, KeyObject> = new Map();
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;

  constructor(address: string) {
    this.#address = address;
  }

  /**
   * Whether a body has a signature, in base64, by the key of this id.
   * @throws Error if the keys cannot be fetched
   */
  async isSigned(body: Uint8Array, { id, signature }: { id: string; signature: string }): Promise<boolean> {
    if (id === '' || id.length > MAX_ID_LENGTH) return false;
    const age = performance.now() - this.#fetchedAt;
    if (age > (this.#keys.has(id) ? KEPT_MS : AGAIN_MS))
      await (this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined)));
    const key = this.#keys.get(id);
    return key !== undefined && verify('sha256', body, key, Buffer.from(signature, 'base64'));
  }

  async #fetch(): Promise<void> {
    const response = await fetch(this.#address, {
      headers: { Accept: 'application/json', 'User-Agent': 'svc-api' },
      redirect: 'error',
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const text = String((await readBounded(response.body, MAX_BYTES)) ?? '');
    if (!response.ok) throw new Error(`the public keys of GitHub were answered by ${response.status}`);
    const { public_keys: list } = JSON.parse(text) as { public_keys?: unknown };
    if (!Array.isArray(list)) throw new Error('the public keys of GitHub are not a list');
    this.#keys = new Map(list.flatMap((item: unknown) => (isRecord(item) ? keyIn(item) : [])));
    this.#fetchedAt = performance.now();
  }
}

function keyIn({ key_identifier: id, key: text }: Record<string, unknown>): [string, KeyObject][] {
  if (typeof id !== 'string' || typeof text !== 'string') return [];
  const key = createPublicKey(text);
  return key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? [[id, key]] : [];
}
