import {
  checkOptions,
  having,
  invalidOption,
  kindOf,
  list,
  options,
  readBy,
  required,
  type Rule,
  type Rules,
  text,
  textOr,
} from '../keys/options.ts';
import { type CredentialPlace, checkCredentialPlaces } from '../keys/credential-places.ts';
import { Networks } from '../keys/networks.ts';
import type { Catalog, Permission } from '../keys/permissions/catalog.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';
import type { KeysService } from '../keys/service.ts';
import { AttemptCounter } from '../limits/attempt-counter.ts';
import type { Limited } from '../limits/limiter.ts';
import { type Log, NO_LOG } from '../log.ts';
import { FailureLog, RefusalLog } from './refusal-log.ts';

/** What a key must be allowed to: one of these. Default: any valid key is accepted. */
export interface RequiredPermissions {
  /** A permission, such as `DOCKER:READ_ANY`. */
  permission?: Permission;
  /** Several permissions, all of which are required. */
  all?: readonly Permission[];
  /** Several permissions, of which one is enough. */
  any?: readonly Permission[];
}

/** Which keys are accepted. */
export interface BearerAuthOptions extends RequiredPermissions {
  /** The service of an open key store, see `openKeys`. */
  keys: Pick<KeysService, 'authenticator' | 'catalog'> & Limited;
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
   * the default; false for any number. Beyond that they are answered 429. A valid key is always accepted.
   */
  failedCredentials?: string | false;
  /**
   * Logs refused keys, missing permissions and failures of the store, in sums: each kind at once, its repetitions every
   * minute and when the process ends, unless a signal kills it. Default: nothing is logged.
   */
  log?: Log;
}

const DEFAULT_FAILED_CREDENTIALS = '20/m';

const openedStore = having<KeysService & Limited>('', 'authenticator', 'catalog', 'limiter');
const keys: Rule<KeysService & Limited> = (value, name) =>
  openedStore(value, name) && `is ${kindOf(value)}. It must be an open key store: write await openKeys(…).`;

const limitOrFalse: Rule<string | false> = (value, name) =>
  value === false
    ? undefined
    : typeof value === 'string'
      ? text(value, name)
      : 'must be a limit, such as "20/m", or false.';

/** The rules of options that several functions take. */
export const COMMON_OPTIONS = {
  keys: required(keys),
  credentials: readBy(
    checkCredentialPlaces,
    list(textOr<Exclude<CredentialPlace, string>>(options({ header: required(text) })) as Rule<CredentialPlace>),
  ),
  trust: readBy((networks: readonly string[]) => new Networks(networks), list(text)),
  failedCredentials: readBy((limit: string | false) => AttemptCounter.of(limit), limitOrFalse),
  log: having<Log>('a log, such as openLog gives', 'debug', 'info', 'warn', 'error'),
};

/**
 * Rules of what a key must be allowed to, by what there is in an installation. A permission is written as it is: in
 * small letters, or of an unknown resource, no key would have it.
 */
export function permissionOptions(catalog: () => Catalog): Rules<RequiredPermissions> {
  const permission: Rule<Permission> = (value, name) => {
    const problem = text(value, name);
    if (problem !== undefined) return problem;
    const { values, issues } = parsePermissions([value as string], catalog());
    if (issues[0]) return issues[0].message;
    return values[0] === value ? undefined : `"${value as string}" is not a permission. Did you mean ${values[0]}?`;
  };
  return { permission, all: list(permission, 1), any: list(permission, 1) };
}

/** A realm stands in quotes in a header (RFC 9110, section 5.6.4). */
function invalidRealm(realm: string): string | undefined {
  return /^[\x20-\x7e]*$/.test(realm) && !/["\\]/.test(realm)
    ? undefined
    : 'has a character that may not stand in a realm. Use letters, digits and signs of ASCII but " and \\.';
}

/** Refuses options of a check that cannot be meant. @throws KeysError OPTION_INVALID */
export function checkBearerOptions(given: BearerAuthOptions): void {
  checkOptions<BearerAuthOptions>('bearerAuth', given, {
    ...COMMON_OPTIONS,
    ...permissionOptions(() => given.keys.catalog),
    realm: (value, name) => text(value, name) ?? invalidRealm(value as string),
  });
  checkOneOf('bearerAuth', given);
}

/** Refuses several ways to say what a key must be allowed to. @throws KeysError OPTION_INVALID */
export function checkOneOf(caller: string, given: RequiredPermissions): void {
  const [first, second] = (['permission', 'all', 'any'] as const).filter((name) => name in given);
  if (second !== undefined)
    throw invalidOption(caller, `"${first}" and "${second}" are both given. Give one of permission, all and any.`);
}

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
