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

/** The required permissions, as one of these options. Default: any valid key is accepted. */
export interface RequiredPermissions {
  /** A permission, such as `WIKI:READ_ANY`. */
  permission?: Permission;
  /** Several permissions, all of which are required. */
  all?: readonly Permission[];
  /** Several permissions, of which one is enough. */
  any?: readonly Permission[];
  /**
   * A resource, such as `WIKI`. The method decides the action: READ_ANY for GET, HEAD and OPTIONS, CREATE_ANY for
   * POST, UPDATE_ANY for PUT and PATCH, DELETE_ANY for DELETE; other methods are refused.
   */
  resource?: string;
}

/** Why a request is refused. */
export interface RefusalReply {
  /** 400, 401, 403, 429 or 503. */
  readonly status: number;
  /** An HTTP error code, such as `UNAUTHENTICATED`. Codes are stable. */
  readonly code: string;
  /** A sentence for people. */
  readonly message: string;
}

/** Makes the body of the reply to a refused request, which is sent as JSON. */
export type OnRefused = (refused: RefusalReply) => object;

/** The part of an open key store that the library's functions need. */
export interface OpenedStore {
  /** The service behind it. */
  readonly [SERVICE]: KeysService & Limited;
}

/** The options of `bearerAuth`. */
export interface BearerAuthOptions extends RequiredPermissions {
  /** An open key store, see `openKeys`. */
  keys: OpenedStore;
  /**
   * The address of the protected service, such as `https://mcp.example.org/mcp`. Keys that an application obtained for
   * a single address (RFC 8707) are accepted only if that is this address or a parent path of it. Default: no such
   * keys are accepted.
   */
  audience?: string;
  /** The realm in `WWW-Authenticate`. Default: `svc-api`. */
  realm?: string;
  /** The places of keys in requests. Default: `['bearer']`. */
  credentials?: readonly CredentialPlace[];
  /**
   * Networks of proxies whose `X-Forwarded-For` and `Forwarded` headers are trusted, such as `10.0.0.0/8`: logs show
   * the address in these headers. Default: this machine, `['127.0.0.0/8', '::1/128']`.
   */
  trust?: readonly string[];
  /**
   * The rate of requests with an invalid key allowed for one address, or one /64 of IPv6, such as `20/m` (the default);
   * false for any number. Further ones get status 429. A valid key is always accepted.
   */
  failedCredentials?: string | false;
  /** Makes the JSON body for a refused request. Default: `code` and `message`. */
  onRefused?: OnRefused;
  /**
   * Logs refused keys, missing permissions and failures of the store. Each kind is logged at once, and its repetitions
   * as a count every minute and when the process ends, unless a signal kills it. Default: nothing is logged.
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

/** Rules of options that several functions take. */
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
  log: having<Log>('a log, such as one from openLog', 'debug', 'info', 'warn', 'error'),
};

/**
 * Rules of the required permissions, by an installation's catalog. Permissions must be spelled exactly: no key has one
 * in lower case, or of an unknown resource.
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

/** An address as the audience of keys. */
export const audience: Rule<string> = (value, name) =>
  text(value, name) ??
  (readAudience(value as string) === undefined
    ? 'is not an address of http or https without a query, such as https://mcp.example.org/mcp.'
    : undefined);

/** The problem with a realm, which is quoted in a header (RFC 9110, section 5.6.4). */
function invalidRealm(realm: string): string | undefined {
  return /^[\x20-\x7e]*$/.test(realm) && !/["\\]/.test(realm)
    ? undefined
    : 'has a character that is not allowed in a realm. Use ASCII letters, digits and punctuation except " and \\.';
}

/** Checks the options of a check. @throws KeysError OPTION_INVALID */
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

/** Refuses several options for the required permissions. @throws KeysError OPTION_INVALID */
export function checkOneOf(caller: string, given: RequiredPermissions): void {
  const ways = ['permission', 'all', 'any', 'resource'] as const;
  const [first, second] = ways.filter((name) => name in given);
  if (second !== undefined)
    throw invalidOption(caller, `"${first}" and "${second}" are both given. Give one of ${formatList(ways)}.`);
}

/** Parts that the checks of one service share. */
export interface CheckParts {
  refusals: RefusalLog;
  failures: FailureLog;
  /** Counts invalid credentials; undefined if there is no limit. */
  failedCredentials: AttemptCounter | undefined;
}

/**
 * The counter of invalid credentials for a limit in text form; undefined for no limit. Continues an earlier counter
 * with the same limit.
 * @throws RangeError for an invalid limit
 */
export function failedCredentialsBy(
  limit: string | false = DEFAULT_FAILED_CREDENTIALS,
  earlier?: AttemptCounter,
): AttemptCounter | undefined {
  return AttemptCounter.of(limit, earlier);
}

/** The parts of checks, some of which can continue earlier ones. @throws RangeError if a limit is invalid */
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
