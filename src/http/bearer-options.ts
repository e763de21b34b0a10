import {
  checkOptions,
  formatList,
  having,
  invalidOption,
  kindOf,
  list,
  invalidNetwork,
  options,
  readBy,
  required,
  type Rule,
  type Rules,
  text,
  textOr,
} from '../keys/basics/index.ts';
import { readAudience } from '../keys/key/index.ts';
import { checkCredentialPlaces, type CredentialPlace } from '../keys/secret/index.ts';
import { type Catalog, invalidPermission, parseResource, type Permission } from '../keys/permissions/index.ts';
import { type KeysService, SERVICE } from '../keys/service/index.ts';
import { AttemptCounter, type Limited } from '../limits/index.ts';
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
  /**
   * A resource, such as `DOCKER`, on which the method decides what is required: READ_ANY by GET, HEAD and OPTIONS,
   * CREATE_ANY by POST, UPDATE_ANY by PUT and PATCH, DELETE_ANY by DELETE; other methods are refused.
   */
  resource?: string;
}

/** Why a request is refused. */
export interface RefusalReply {
  /** 400, 401, 403, 429 or 503. */
  readonly status: number;
  /** One of those of HTTP, such as `UNAUTHENTICATED`, which are stable. */
  readonly code: string;
  /** A sentence for people. */
  readonly message: string;
}

/** Makes what a refused request is answered, which is sent as JSON. */
export type OnRefused = (refused: RefusalReply) => object;

/** What the library's functions need of an open key store. */
export interface OpenedStore {
  /** The service behind it. */
  readonly [SERVICE]: KeysService & Limited;
}

/** Which keys are accepted. */
export interface BearerAuthOptions extends RequiredPermissions {
  /** An open key store, see `openKeys`. */
  keys: OpenedStore;
  /**
   * The address of what is guarded, such as `https://mcp.example.org/mcp`: keys that an application has got for one
   * address alone (RFC 8707) are accepted only if it is that, or a path under it. Default: none of those is.
   */
  audience?: string;
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
  /** What a refused request is answered, as JSON. Default: `code` and `message`. */
  onRefused?: OnRefused;
  /**
   * Logs refused keys, missing permissions and failures of the store, in sums: each kind at once, its repetitions every
   * minute and when the process ends, unless a signal kills it. Default: nothing is logged.
   */
  log?: Log;
}

const DEFAULT_FAILED_CREDENTIALS = '20/m';

const keys: Rule<OpenedStore> = (value) =>
  (value as OpenedStore | undefined)?.[SERVICE]
    ? undefined
    : `is ${kindOf(value)}. It must be an open key store: write await openKeys(…).`;

/** A function. */
export const aFunction: Rule<never> = (value) =>
  typeof value === 'function' ? undefined : `is ${kindOf(value)}. It must be a function.`;

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
  trust: readBy((networks: readonly string[]) => {
    const problem = networks.map(invalidNetwork).find((each) => each !== undefined);
    if (problem !== undefined) throw new RangeError(problem);
  }, list(text)),
  failedCredentials: readBy((limit: string | false) => AttemptCounter.of(limit), limitOrFalse),
  log: having<Log>('a log, such as openLog gives', 'debug', 'info', 'warn', 'error'),
};

/**
 * Rules of what a key must be allowed to, by what there is in an installation. A permission is written as it is: in
 * small letters, or of an unknown resource, no key would have it.
 */
export function permissionOptions(
  catalog: () => Catalog,
): Rules<RequiredPermissions & Pick<BearerAuthOptions, 'onRefused'>> {
  const permission: Rule<Permission> = (value, name) =>
    text(value, name) ?? invalidPermission(value as string, catalog());
  const resource: Rule<string> = (value, name) => {
    const problem = text(value, name);
    if (problem !== undefined) return problem;
    const parsed = parseResource(value as string, catalog());
    if ('refusal' in parsed) return parsed.refusal;
    return parsed.value === value ? undefined : `"${value as string}" is not a resource. Did you mean ${parsed.value}?`;
  };
  return { permission, all: list(permission, 1), any: list(permission, 1), resource, onRefused: aFunction };
}

/** An address that keys can be for. */
export const audience: Rule<string> = (value, name) =>
  text(value, name) ??
  (readAudience(value as string) === undefined
    ? 'is not an address of http or https without a query, such as https://mcp.example.org/mcp.'
    : undefined);

/** A realm stands in quotes in a header (RFC 9110, section 5.6.4). */
function invalidRealm(realm: string): string | undefined {
  return /^[\x20-\x7e]*$/.test(realm) && !/["\\]/.test(realm)
    ? undefined
    : 'has a character that may not stand in a realm. Use letters, digits and signs of ASCII but " and \\.';
}

/** Refuses options of a check that cannot be meant. @throws KeysError OPTION_INVALID */
export function checkBearerOptions(given: BearerAuthOptions, added: object): void {
  checkOptions<BearerAuthOptions>('bearerAuth', given, {
    ...COMMON_OPTIONS,
    ...permissionOptions(() => given.keys[SERVICE].catalog),
    realm: (value, name) => text(value, name) ?? invalidRealm(value as string),
    audience,
    ...added,
  });
  checkOneOf('bearerAuth', given);
}

/** Refuses several ways to say what a key must be allowed to. @throws KeysError OPTION_INVALID */
export function checkOneOf(caller: string, given: RequiredPermissions): void {
  const ways = ['permission', 'all', 'any', 'resource'] as const;
  const [first, second] = ways.filter((name) => name in given);
  if (second !== undefined)
    throw invalidOption(caller, `"${first}" and "${second}" are both given. Give one of ${formatList(ways)}.`);
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
