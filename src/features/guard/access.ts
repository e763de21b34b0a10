import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { askingPage, BY_BROWSER, crossSiteRefused } from './cross-site.ts';
import { Discovery, type JudgedRequest, type Required, type Requirement, type Requirements } from './discovery.ts';
import { refusedRequest, rewritingHeader } from './identity-headers.ts';
import { ObservedRoutes } from './observed-routes.ts';
import { SentCredentials } from './sent-credentials.ts';
import {
  type Arrival,
  credentialHeaders,
  type IsCredential,
  ownCredentials,
  readTarget,
  type RequestTarget,
} from './passed-headers.ts';
import {
  type Admission,
  type Admitted,
  BearerCheck,
  type CheckOptions,
  type CheckParts,
  ClientAddresses,
  type RequestTo,
  type ErrorReply,
  errorReply,
  HonoHead,
  NodeHead,
  type Received,
  type RefusalLog,
  type Reply,
  RequestRefused,
  saidScheme,
  type Scheme,
  unavailable,
  withFields,
} from '../../http/index.ts';
import type { CredentialPlace } from '../../keys/secret/index.ts';
import type { PeopleSettings } from '../people/people.ts';
import { consentFlows } from '../consent/consent-flow.ts';
import { NOT_YET, ONCE } from '../../keys/authorization/index.ts';
import { assertValid, KeysError, type Networks, type OrRefusal, sourceOf } from '../../keys/basics/index.ts';
import { type Catalog, parsePermissions, parseResource, type Permission } from '../../keys/permissions/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { PeopleSignIn } from '../people/people-sign-in.ts';
import { SignInFailed } from '../people/failure.ts';
import type { Log } from '../../log.ts';
import {
  type Allow,
  canonicalHost,
  chargeOf,
  checkAllow,
  describePattern,
  createRouter,
  describeMatch,
  goesByMethod,
  type Match,
  neededBy,
  preflightParts,
  type RequestParts,
  requirementOf,
  type Route,
  type Router,
  type Upstream,
} from '../routes/index.ts';
import {
  Door,
  type DoorParts,
  type LoadedDoor,
  type PeopleAtDoor,
  type SeenOrigin,
  seenOrigin,
  type SignIn,
  Sessions,
} from '../sessions/index.ts';
import { People } from '../people/people.ts';

/** The requirement given on the command line instead of routes. */
export interface AskedRequirement {
  /** All of these permissions, as typed. */
  readonly permissions: readonly string[] | undefined;
  /** Any valid key. */
  readonly anyKey: boolean;
  /** The permission on this resource that the method needs. */
  readonly resource?: string | undefined;
  /** Permissions to read allow every method. */
  readonly anyMethod?: boolean;
}

/**
 * Reads who is allowed to make requests, from the command line or from the routes.
 * @throws ValidationError PERMISSION_INVALID; KeysError USAGE if neither is there
 */
export function readRequirements(
  { permissions, anyKey, resource, anyMethod }: AskedRequirement,
  { routes, catalog }: { routes: readonly Route[]; catalog: Catalog },
): Requirements {
  if (anyKey) return always({ kind: 'key' });
  if (resource !== undefined) {
    const parsed = parseResource(resource, catalog);
    if ('refusal' in parsed) throw new KeysError('PERMISSION_INVALID', parsed.refusal);
    return always({ kind: 'resource', resource: parsed.value });
  }
  if (permissions) {
    const { values, issues } = parsePermissions(permissions, catalog);
    const undeclared = permissions
      .map((text) => text.split(':')[0]!.trim().toUpperCase())
      .filter((name) => isUndeclared(name, catalog));
    const declare = `Declare resources of your own in svc-api.yaml: resources: [${undeclared.join(', ')}]`;
    assertValid(undeclared.length > 0 ? [...issues, { code: 'PERMISSION_INVALID', message: declare }] : issues);
    return always({ kind: 'all', permissions: values as [Permission, ...Permission[]], readOnly: !anyMethod });
  }
  if (routes.length > 0) return byRoutes(createRouter(routes));
  const ways = 'Pass --resource, --permission or --any-key, or declare routes in svc-api.yaml.';
  throw new KeysError('USAGE', `No requirement is set. ${ways}`);
}

/** Checks whether a text looks like the name of an undeclared resource. */
function isUndeclared(name: string, { resources }: Catalog): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(name) && !resources.includes(name);
}

/** The same requirement for all paths. */
export function always(allow: Allow): Requirements {
  const byMethod = goesByMethod(allow);
  return ({ parts, rawHeaders }) => {
    const rewriting = byMethod ? rewritingHeader(rawHeaders, 'method') : undefined;
    if (rewriting !== undefined) return { refusal: asksForAnother(rewriting) };
    const needed = neededBy(allow, parts);
    return 'refusal' in needed ? needed : { allow: needed };
  };
}

function asksForAnother(header: string): string {
  return `${header} would change the request`;
}

/** The requirements of routes. */
export function byRoutes(router: Router): Requirements {
  return ({ parts, rawHeaders }) => {
    const rewriting = rewritingHeader(rawHeaders, 'request');
    if (rewriting !== undefined) return { refusal: asksForAnother(rewriting) };
    return requirementOf(router, parts);
  };
}

/** An allowed request. */
export interface AllowedEntry {
  /** Undefined where no key is needed. */
  readonly admitted: Admitted | undefined;
  /** The permissions that allow it. */
  readonly permissions: readonly Permission[];
  /** The route that decides; undefined where none does. */
  readonly match: Match | undefined;
}

/** An allowed request, or the reply to a refused one. */
export type Entry = OrRefusal<AllowedEntry, Reply>;
/** The same before a page is chosen for a browser. */
type Decision = OrRefusal<AllowedEntry, ErrorReply>;

/** A request as it is decided about: by the same target that is passed on. */
export class GuardedRequest extends NodeHead implements JudgedRequest {
  readonly isEncrypted: boolean;
  readonly parts: RequestParts;
  /** Bytes received on its connection at the last check. */
  #bytes: number | undefined;

  constructor(incoming: IncomingMessage, { host, path }: RequestTarget) {
    super(incoming);
    this.isEncrypted = (incoming.socket as Partial<TLSSocket>).encrypted === true;
    this.parts = {
      method: incoming.method ?? '',
      host,
      target: path,
      ...preflightParts((name) => this.header(name)),
    };
  }

  /** Checks whether the client has sent more since the last check. */
  hasSentMore(): boolean {
    const { bytesRead } = this.incoming.socket;
    const hasMore = bytesRead > (this.#bytes ?? bytesRead);
    this.#bytes = bytesRead;
    return hasMore;
  }
}

/** The origin of a request: as the nearest proxy reports it, if that is trusted. */
export function arrivalOf(
  request: GuardedRequest,
  clients: ClientAddresses,
): { readonly arrival: Arrival; readonly isTrusted: boolean } {
  const isTrusted = clients.trusts(request.peer());
  return { arrival: { addresses: clients.path(request), scheme: schemeOf(request, isTrusted) }, isTrusted };
}

function schemeOf(request: GuardedRequest, isTrusted: boolean): Scheme {
  return (isTrusted ? saidScheme(request) : undefined) ?? (request.isEncrypted ? 'https' : 'http');
}

/** A request as its browser has made it. */
function atDoor(request: GuardedRequest, clients: ClientAddresses): RequestTo {
  const { method, host, target } = request.parts;
  return {
    method,
    host,
    target,
    get scheme() {
      return schemeOf(request, clients.trusts(request.peer()));
    },
  };
}

/** Parts that decide about requests. */
interface AccessOptions {
  readonly check: BearerCheck;
  readonly signIn: SignIn | undefined;
  readonly requirements: Requirements;
  readonly refusals: RefusalLog;
  readonly clients: ClientAddresses;
  readonly observed: ObservedRoutes;
}

/** Checks a caller against the requirement of a request. On a route that observes, everyone passes. */
export function authorize(
  request: Received,
  admission: Admission,
  { allow, match }: Required,
  { check, observed }: Pick<AccessOptions, 'check' | 'observed'>,
): OrRefusal<AllowedEntry & { readonly admitted: Admitted }, ErrorReply> {
  if ('refusal' in admission) return admission;
  const { principal } = admission;
  const checked = checkAllow(allow, principal.access);
  if (checked.outcome === 'forbidden' && match?.route.observe) {
    observed.noteLacking(match, principal, checked.missing);
    principal.observer?.passed(describePattern(match.route));
    return { admitted: admission, permissions: [], match };
  }
  if (checked.outcome === 'forbidden') {
    principal.observer?.lacked(checked.missing);
    return { refusal: withFields(check.lacking(request, principal, checked.missing), admission.fields) };
  }
  for (const permission of checked.used) principal.observer?.used(permission);
  if (match) principal.observer?.passed(describePattern(match.route));
  return { admitted: admission, permissions: checked.used, match };
}

/** Decides which requests are allowed. */
export class Access {
  readonly check: BearerCheck;
  readonly #options: AccessOptions;
  readonly #door: Door;

  constructor(options: AccessOptions) {
    this.check = options.check;
    this.#options = options;
    this.#door = new Door(options.check, options.signIn);
  }

  /** Decides about a request that has just arrived. Counts as a use of its key. */
  enter(request: GuardedRequest): Entry | Promise<Entry> {
    const at = atDoor(request, this.#options.clients);
    const entry = this.#decide(request, at, () => this.#door.enter(request, at));
    return entry instanceof Promise
      ? entry.then((settled) => this.#shown(request, at, settled))
      : this.#shown(request, at, entry);
  }

  /** Decides again about an allowed request, by the current state. Counts as a use if no key was needed before. */
  again(request: GuardedRequest, { admitted }: AllowedEntry): Entry | Promise<Entry> {
    const at = atDoor(request, this.#options.clients);
    return this.#decide(request, at, () =>
      admitted ? this.#door.again(request, at, admitted, request.hasSentMore()) : this.#door.enter(request, at),
    );
  }

  #shown(request: GuardedRequest, at: RequestTo, entry: Decision): Entry | Promise<Entry> {
    const shown = 'refusal' in entry ? this.#door.show(request, at, entry.refusal) : undefined;
    if (!shown) return entry;
    return shown instanceof Promise ? shown.then((refusal) => ({ refusal })) : { refusal: shown };
  }

  #decide(
    request: GuardedRequest,
    at: RequestTo,
    authenticate: () => Admission | Promise<Admission>,
  ): Decision | Promise<Decision> {
    const requirement = this.#options.requirements(request);
    const { match } = requirement;
    const judged = this.#judge(request, at, requirement, authenticate);
    if (!this.#options.observed.has(match)) return judged;
    const settle = (entry: Decision): Decision =>
      'refusal' in entry && this.#options.observed.passes(match, entry.refusal)
        ? { admitted: undefined, permissions: [], match }
        : entry;
    return judged instanceof Promise ? judged.then(settle) : settle(judged);
  }

  #judge(
    request: GuardedRequest,
    at: RequestTo,
    requirement: Requirement,
    authenticate: () => Admission | Promise<Admission>,
  ): Decision | Promise<Decision> {
    if ('refusal' in requirement) return { refusal: this.#refuse(request, requirement.refusal) };
    const { allow, match } = requirement;
    const details = request.notes?.details;
    if (details && match) details.route = describeMatch(match);
    if (allow.kind === 'open') return { admitted: undefined, permissions: [], match };
    const page = match?.route.crossSiteAllowed ? 'own' : askingPage(request, request.parts);
    if (page !== 'own' && this.#door.isByBrowser(request, at, page)) {
      this.note(request, 'cross-site', BY_BROWSER);
      return { refusal: crossSiteRefused(page) };
    }
    // The charge of MCP messages is known only after reading the body of the POST.
    if (match) request.charge ??= !match.also ? chargeOf(match.route) : request.method === 'POST' ? NOT_YET : ONCE;
    const admission = authenticate();
    return admission instanceof Promise
      ? admission.then((settled) => authorize(request, settled, requirement, this.#options))
      : authorize(request, admission, requirement, this.#options);
  }

  #refuse(request: GuardedRequest, refusal: string): ErrorReply {
    this.note(request, 'no route', refusal);
    return errorReply('FORBIDDEN', `Request refused: ${refusal}.`);
  }

  /** Notes that a request was refused. */
  note(request: GuardedRequest, reason: string, refusal: string): void {
    const refused = {
      reason,
      detail: refusedRequest(refusal, request.parts),
      address: this.#options.clients.of(request).address,
    };
    if (request.notes?.details) request.notes.details.code = 'FORBIDDEN';
    this.#options.refusals.add('request refused', refused, request.notes);
  }
}

/** The rules of a guard, which can change while it runs. */
export interface GuardRules {
  readonly keys: Pick<KeysService, 'catalog' | 'clock' | 'feature'> & {
    readonly store: Pick<KeysService['store'], 'check'>;
  } & CheckOptions['keys'];
  /** Requirements of requests. */
  readonly requirements: Requirements;
  /** Places in a request that can carry a key. */
  readonly credentials: readonly CredentialPlace[];
  /** Proxies whose forwarded headers are trusted. */
  readonly trust: Networks;
  /** See `BearerAuthOptions`. */
  readonly failedCredentials?: string | false;
  /** Upstreams, chosen by the route that allows the request. */
  readonly upstreams: Upstreams;
  /** Loads the sign-in pages; undefined if people cannot sign in. */
  readonly loadDoor?: ((parts: DoorParts & { people: PeopleSignIn | undefined }) => Promise<LoadedDoor>) | undefined;
  /** Signs people in without a key; undefined if everyone needs one. */
  readonly people?: PeopleSettings | undefined;
  /** Address at which applications request keys; undefined if clients are not told one. */
  readonly publicUrl?: string | undefined;
  /** Patterns of the hosts that routes name. A proxy cannot sign anyone in at other hosts. */
  readonly hosts?: readonly string[];
}

/** The upstreams of a guard. */
export interface Upstreams {
  /** Upstreams named by routes. */
  readonly byName: ReadonlyMap<string, Upstream>;
  /** For all other requests; undefined where there are none. */
  readonly otherwise: Upstream | undefined;
}

/**
 * Finds out where requests are passed on to, before any is.
 * @param routes those that decide; none where they do not
 * @throws KeysError USAGE if that is not said of all requests
 */
export function readUpstreams(
  declared: readonly Upstream[],
  otherwise: Upstream | undefined,
  routes: readonly Route[] | undefined,
): Upstreams {
  const open = otherwise ? -1 : (routes ?? []).findIndex((route) => route.to === undefined);
  if (!otherwise && !routes)
    throw new KeysError('USAGE', 'No upstream is set. Pass its address, such as http://127.0.0.1:3000.');
  if (open !== -1)
    throw new KeysError(
      'USAGE',
      `No upstream is set for ${describeMatch({ route: routes![open]!, index: open })}. Add "to" with ` +
        'the name of one of "upstreams", or pass an upstream, such as http://127.0.0.1:3000.',
    );
  return { byName: new Map(declared.map((upstream) => [upstream.name!, upstream])), otherwise };
}

/** The rules, as they are applied. */
export interface AppliedRules {
  readonly access: Access;
  readonly catalog: Catalog;
  /** See `RequestToPass`. */
  readonly isCredential: IsCredential;
  /** The same for a request that passes without a key. */
  readonly isOwnCredential: IsCredential;
  /** See `RequestToPass`. */
  readonly isPassedCredential: (canonical: string) => boolean;
  readonly clients: ClientAddresses;
  /** The upstream that a request goes to, and its credentials. @param match the route that has let it pass */
  upstreamOf(match: Match | undefined): Target;
  /** The reply to a client that asks where it gets a key; undefined for any other request. */
  answerClient(request: GuardedRequest): Reply | undefined;
  /** The sign-in pages; undefined if people cannot sign in. */
  readonly door: { load(): Promise<LoadedDoor> } | undefined;
  /** Resolves when the store answers. */
  check(): Promise<void>;
}

/** An upstream, with the credentials it gets instead of the caller's key. */
interface Target {
  readonly upstream: Upstream;
  readonly credentials: SentCredentials;
  /** The headers in which a trusted proxy identifies the caller. Those from other senders are not passed on. */
  readonly saysWho: ReadonlySet<string>;
}

/**
 * @param forwardCredential whether upstreams get the key, too
 * @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID of the files of their credentials, and of the
 *   secret for a provider
 */
export function applyRules(
  { keys, requirements, credentials, trust, upstreams, loadDoor, people: settings, publicUrl, hosts = [] }: GuardRules,
  parts: CheckParts,
  { forwardCredential, log }: { forwardCredential: boolean; log: Log },
): AppliedRules {
  const removed = forwardCredential ? [] : credentials;
  const inHeaders = new Set(credentials.flatMap((place) => (typeof place === 'string' ? [] : place.header)));
  const byPeople = settings && 'header' in settings.by ? [settings.by.header, settings.by.groups ?? ''] : [];
  const targetOf = (upstream: Upstream): Target => ({
    upstream,
    credentials: new SentCredentials(upstream, log),
    saysWho: new Set([...byPeople, ...(upstream.passHeaders ?? [])]),
  });
  const otherwise = upstreams.otherwise && targetOf(upstreams.otherwise);
  const targets = new Map(Array.from(upstreams.byName, ([name, upstream]) => [name, targetOf(upstream)]));
  const { authenticator } = keys;
  const sessions = keys.feature(Sessions);
  const isFound = publicUrl !== undefined && consentFlows(keys.catalog).includes('CODE');
  const discovery = new Discovery(requirements, isFound ? publicUrl : undefined, parts.refusals);
  const isOwn = (to: RequestTo) => discovery.isOwn(to);
  const discover = ({ to }: Received) => to && discovery.find(to);
  const check = new BearerCheck({ keys, credentials, trust: trust.texts, isOwn, discover }, parts);
  const clients = new ClientAddresses(trust.texts);
  const forms = new BearerCheck({ keys, trust: trust.texts }, parts);
  const people =
    loadDoor &&
    settings &&
    new PeopleSignIn({
      settings,
      people: keys.feature(People),
      addresses: clients,
      clock: () => keys.clock(),
      publicUrl,
      isGuarded: hostsBy(hosts),
    });
  let loaded: Promise<LoadedDoor> | undefined;
  const load = () =>
    (loaded ??= loadDoor!({
      sessions,
      authenticator,
      people,
      check: forms,
      ...parts,
      seenBy: (c) => seenAt(c, clients),
      countFailure: (c) => parts.failedCredentials?.add(sourceOf(clients.of(new HonoHead(c)).address)),
    }));
  const door = loadDoor && { load };
  const signIn = door && {
    sessions,
    people: people && peopleAtDoor(people, check, parts),
    pages: async () => (await load()).pages,
  };
  return {
    access: new Access({
      check,
      signIn,
      requirements,
      refusals: parts.refusals,
      clients,
      observed: new ObservedRoutes(authenticator),
    }),
    catalog: keys.catalog,
    isCredential: credentialHeaders(removed),
    isOwnCredential: ownCredentials(removed),
    isPassedCredential: (canonical) => forwardCredential && inHeaders.has(canonical),
    clients,
    upstreamOf: (match) => (match?.route.to === undefined ? otherwise! : targets.get(match.route.to)!),
    answerClient: (request) => discovery.answer(atDoor(request, clients)),
    door,
    check: () => keys.store.check(),
  };
}

/** Tells whether one of some patterns names a host. */
function hostsBy(patterns: readonly string[]): (host: string) => boolean {
  const named = [...new Set(patterns)].filter((pattern) => pattern !== '*');
  return (host) => {
    const canonical = canonicalHost(host);
    if ('refusal' in canonical) return false;
    return named.some((one) =>
      one.startsWith('*.') ? canonical.value.endsWith(one.slice(1)) : one === canonical.value,
    );
  };
}

/** Callers without a key: identified by a trusted proxy, or signed in. */
function peopleAtDoor(people: PeopleSignIn, check: BearerCheck, { refusals, failures }: CheckParts): PeopleAtDoor {
  return {
    goesOn: (apiKey) => people.goesOn(apiKey),
    isNamed: (request) => people.isNamed(request as GuardedRequest),
    enter: async (request) => {
      try {
        const seen = seenOrigin(request.to!);
        const { digest } = await people.signIn(
          people.inHeaders(request as GuardedRequest, seen ?? { isPrivate: false })!,
        );
        return await check.enterBy(request, digest);
      } catch (error) {
        if (error instanceof SignInFailed) {
          refusals.add('sign-in refused', { reason: error.reason }, request.notes);
          const code = error.status === 400 ? 'INVALID_REQUEST' : 'FORBIDDEN';
          return { refusal: { ...errorReply(code, error.message), status: error.status } };
        }
        failures.add(error, request.notes?.id);
        return { refusal: unavailable() };
      }
    },
  };
}

/** The address of the guard that a browser has opened. @throws RequestRefused */
function seenAt(c: Context, clients: ClientAddresses): SeenOrigin {
  const { incoming } = c.env as HttpBindings;
  const target = readTarget(incoming);
  const seen = 'refusal' in target ? undefined : seenOrigin(atDoor(new GuardedRequest(incoming, target), clients));
  if (!seen) throw new RequestRefused('BAD_REQUEST', 'The Host of the request is invalid.');
  return seen;
}
