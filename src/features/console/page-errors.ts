import type { Context } from 'hono';
import {
  type ClientAddresses,
  type FailureLog,
  HonoHead,
  originOf,
  type RefusalLog,
  requestIdIn,
  RequestRefused,
} from '../../http/index.ts';
import { isKeysError } from '../../keys/basics/index.ts';
import { SignInFailed } from '../people/failure.ts';
import { titleOf } from './parts/notice.tsx';

/** Contents of an error page. */
export interface PageMessage {
  readonly status: number;
  readonly title: string;
  readonly message: string;
}

/** Messages for a key store that cannot be changed, in which no one can sign in. */
const STORE_ISSUES: Readonly<Record<string, string>> = {
  STORE_FULL: 'The disk of the key store is full, so signing in is not possible. Tell the administrator.',
  STORE_READONLY: 'This server cannot write to the key store, so signing in is not possible. Tell the administrator.',
};

/**
 * Explains an error that any page can have, and logs it; undefined for another one.
 * @param parts the addresses, where the log names them
 */
export function explainError(
  c: Context,
  error: unknown,
  parts: { failures: FailureLog; refusals: RefusalLog; addresses?: ClientAddresses },
): PageMessage | undefined {
  if (error instanceof RequestRefused)
    return { status: error.status, title: titleOf(error.status), message: error.message };
  if (error instanceof SignInFailed) {
    const { addresses } = parts;
    const { address } = addresses ? originOf(c, { addresses }) : {};
    parts.refusals.add('sign-in refused', { reason: error.reason, address }, new HonoHead(c).notes);
    return { status: error.status, title: 'Not signed in', message: error.message };
  }
  if (!isKeysError(error) || !error.code.startsWith('STORE_')) return undefined;
  parts.failures.add(error, requestIdIn(c));
  return {
    status: 503,
    title: 'Try again later',
    message: STORE_ISSUES[error.code] ?? 'The key store does not answer. Try again later, or tell the administrator.',
  };
}
