import type { Context, Hono } from 'hono';
import { OPERATOR } from '../../keys/authorization/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import {
  answering,
  type BearerEnv,
  failedForm,
  HonoHead,
  jsonReply,
  originOf,
  readToken,
  type Reply,
  type RouteContext,
  tooManyFailures,
} from '../../http/index.ts';
import { Leaks } from './leaks.ts';

/** Adds the endpoint that revokes a secret for anyone who has it. Pages of other origins can call it. */
export function addLeaks(app: Hono<BearerEnv>, parts: RouteContext): void {
  const failed = failedForm(parts.failures);
  app.all(
    '/revoke',
    parts.allowOrigins,
    answering((c) => answerRevocation(c, parts), failed),
  );
}

/**
 * Revokes a key for anyone with its secret, which is the proof that they may (RFC 7009, section 2). Text that is not a
 * key, or an already refused key, gets the same answer, until an address sends too many.
 */
async function answerRevocation(c: Context, parts: RouteContext): Promise<Reply> {
  const token = (await readToken(c, 'Keys are revoked')).trim();
  const { address, ...source } = originOf(c, parts);
  const isCounted = !(await revoke(c, token, address, parts)) && address !== undefined;
  const waitUs = isCounted ? parts.failedCredentials?.add(source) : undefined;
  return waitUs === undefined ? jsonReply({}) : tooManyFailures(waitUs);
}

/** Revokes a secret. @returns whether a key has it, or had it @throws KeysError STORE_… */
async function revoke(
  c: Context,
  secret: string,
  address: string | undefined,
  { keys, refusals }: RouteContext,
): Promise<boolean> {
  const { notes } = new HonoHead(c);
  const found = await keys.identify(secret, OPERATOR);
  if ('unknown' in found) {
    refusals.add('revocation refused', { reason: found.unknown, address }, notes);
    return false;
  }
  const { apiKey, publicId, status } = found;
  refusals.add('secret revoked', { reason: status.toLowerCase(), prefix: prefixOf(publicId), address }, notes);
  if (status !== 'ROTATED')
    await keys.feature(Leaks).revoke({ id: apiKey.id, publicId, place: 'POST /revoke', address });
  return true;
}
