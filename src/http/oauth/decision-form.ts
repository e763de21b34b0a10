import type { Context } from 'hono';
import { TooManyRequestsError } from '../../keys/consent/pace.ts';
import type { ConsentChoice } from '../../keys/consent/approval.ts';
import { isKeysError, KeysError } from '../../keys/errors.ts';
import { expiryIn } from '../../keys/key/expiry.ts';
import type { Principal } from '../../keys/authorization/principal.ts';
import type { BearerCheck } from '../bearer-check.ts';
import { admitKey } from '../form.ts';
import { RequestRefused } from '../replies.ts';
import type { Parameters } from './parameters.ts';

/** Why a person may not decide as they did, with the status of the page that says so. */
export class DecisionRefused extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * Refuses a form that a page of another origin has sent. Browsers say so, except where there is neither TLS nor
 * loopback; there, the form has nothing that another page could know.
 * @throws DecisionRefused
 */
export function requireOwnPage(c: Context, issuer: string): void {
  const [site, origin] = [c.req.header('sec-fetch-site'), c.req.header('origin')];
  // Without a referrer, browsers send "null" as the origin of our own page, too.
  const isOwn =
    site === undefined
      ? origin === undefined || origin === 'null' || origin === new URL(issuer).origin
      : site === 'same-origin';
  if (!isOwn)
    throw new DecisionRefused(403, 'The form was sent by another page. Open the page of the application again.');
}

/** The key that a person shows, accepted by the rules for all requests. @throws DecisionRefused */
export async function principalIn(c: Context, form: Parameters, check: BearerCheck): Promise<Principal> {
  const key = form.get('key')?.trim();
  if (key === undefined || key === '') throw new DecisionRefused(400, 'Enter your own API key.');
  const admission = await admitKey(c, key, check);
  if (!('refusal' in admission)) return admission.principal;
  const { status, message, headers } = admission.refusal;
  throw new DecisionRefused(status, message, headers);
}

/** What a person has chosen. */
export function choiceIn(form: Parameters): ConsentChoice {
  const scopes = form.all('scope');
  const roles = scopes.filter((scope) => scope.startsWith('role:')).map((scope) => scope.slice('role:'.length));
  const permissions = scopes.filter((scope) => !scope.startsWith('role:'));
  const end = form.get('expires_in')?.trim();
  return { roles, permissions, ...(end ? expiryIn(end) : { expiresAt: null }) };
}

const STATUSES: Readonly<Partial<Record<KeysError['code'], number>>> = {
  NOT_FOUND: 404,
  REQUEST_DECIDED: 409,
  CONSENT_OFF: 404,
  FORBIDDEN: 403,
  NAME_CONFUSABLE: 409,
  CHAIN_TOO_LONG: 403,
  POLICY_VIOLATED: 403,
};

/** Why what a person did was refused. @throws what is no refusal, failures of the store among it */
export function refusalOf(error: unknown): DecisionRefused {
  if (error instanceof DecisionRefused) return error;
  if (error instanceof RequestRefused) return new DecisionRefused(error.status, error.message);
  if (error instanceof TooManyRequestsError)
    return new DecisionRefused(429, error.message, { 'Retry-After': `${error.retryAfter}` });
  if (!isKeysError(error) || error.code.startsWith('STORE_')) throw error;
  return new DecisionRefused(STATUSES[error.code] ?? 400, error.message);
}
