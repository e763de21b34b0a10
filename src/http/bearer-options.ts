import type { CredentialPlace } from '../keys/credential-places.ts';
import type { Permission } from '../keys/permissions/catalog.ts';
import type { KeysService } from '../keys/service.ts';
import { AttemptCounter } from '../limits/attempt-counter.ts';
import type { Limited } from '../limits/limiter.ts';
import { type Log, NO_LOG } from '../log.ts';
import { FailureLog } from './failure-log.ts';
import { RefusalLog } from './refusal-log.ts';

/** Which keys are accepted. */
export interface BearerAuthOptions {
  /** The service of an open key store, see `openKeys`. */
  keys: Pick<KeysService, 'authenticator'> & Limited;
  /** The permission that every request requires, such as `DOCKER:READ_ANY`. Default: any valid key is accepted. */
  permission?: Permission;
  /** The realm in `WWW-Authenticate`. Default: `svc-api`. */
  realm?: string;
  /** Where a key may stand in a request. Default: `['bearer']`. */
  credentials?: readonly CredentialPlace[];
  /**
   * Networks of proxies whose `X-Forwarded-For` and `Forwarded` headers are believed, such as `10.0.0.0/8`: logs have
   * the address that they give. Default: this machine, `['127.0.0.0/8', '::1/128']`.
   */
  trust?: readonly string[];
  /**
   * How many requests with a key that is not valid one address, or one /64 of IPv6, may make, such as `20/m`, which is
   * the default; false for any number. Beyond that they are answered 429. A valid key is always let in.
   */
  failedCredentials?: string | false;
  /**
   * Logs refused keys, missing permissions and failures of the store, in sums: each kind at once, its repetitions every
   * minute and when the process ends, unless a signal kills it. Default: nothing is logged.
   */
  log?: Log;
}

const DEFAULT_FAILED_CREDENTIALS = '20/m';

/** What the checks of one service share. */
export interface CheckParts {
  refusals: RefusalLog;
  failures: FailureLog;
  /** Counts credentials that are not valid; undefined if there is no limit. */
  failedCredentials: AttemptCounter | undefined;
}

/**
 * Counts credentials that are not valid, by a limit as it was written; undefined for any number of them. With the same
 * limit as an earlier counter, that goes on.
 * @throws RangeError if it is none
 */
export function failedCredentialsBy(
  limit: string | false = DEFAULT_FAILED_CREDENTIALS,
  earlier?: AttemptCounter,
): AttemptCounter | undefined {
  return AttemptCounter.of(limit, earlier);
}

/** The parts of checks, which may go on from those of others. @throws RangeError if a limit is invalid */
export function partsOf(
  { log = NO_LOG, failedCredentials }: Pick<BearerAuthOptions, 'log' | 'failedCredentials'>,
  earlier?: CheckParts,
): CheckParts {
  return {
    refusals: earlier?.refusals ?? new RefusalLog(log),
    failures: earlier?.failures ?? new FailureLog(log),
    failedCredentials: failedCredentialsBy(failedCredentials, earlier?.failedCredentials),
  };
}
