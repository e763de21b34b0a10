import type { Networks, OrRefusal } from '../../keys/basics/index.ts';
import type { Hono } from 'hono';
import { authorize } from './access.ts';
import { type AskedRequest, type RequestIssue, readAsked, refuse, Requirements } from './asked-request.ts';
import { askingPage, BY_BROWSER, crossSiteRefused } from './cross-site.ts';
import { identityHeaders, type IdentityHeaders, NOBODY, refusedRequest } from './identity-headers.ts';
import {
  type Admission,
  type BearerCheck,
  type BearerEnv,
  type CheckParts,
  ClientAddresses,
  type ErrorReply,
  errorReply,
  honoHandler,
  type Received,
  type Reply,
  type RouteContext,
  type ServedRequest,
  unavailable,
} from '../../http/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { ObservedRoutes } from './observed-routes.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import {
  canonicalSite,
  chargeOf,
  describeMatch,
  type Match,
  type Needed,
  neededBy,
  requirementOf,
  type Router,
} from '../routes/index.ts';
import { Door, DOOR_PATH, isAtDoor, type SignIn } from '../sessions/index.ts';

/** Options of a decision. */
interface ForwardAuthOptions {
  readonly check: BearerCheck;
  /** Lets people sign in; undefined if they cannot. */
  readonly signIn: SignIn | undefined;
  readonly catalog: Catalog;
  readonly router: Router;
  /** The proxies that are believed. */
  readonly trust: Networks;
  readonly logs: Pick<CheckParts, 'refusals' | 'failures'>;
  readonly observed: ObservedRoutes;
}

/**
 * The reply about a request that can pass, with who makes it.
 * @param cookies see `ForwardAuthRequest`
 */
function passing(identity: IdentityHeaders, cookies: string | undefined): Reply {
  return { status: 200, text: '', headers: { ...identity, ...(cookies !== undefined && { Cookie: cookies }) } };
}

const NOT_TRUSTED: RequestIssue = {
  reason: 'not trusted',
  detail: 'the address of the proxy must be in "trust" of svc-api.yaml',
};
const NOT_CONFIGURED: RequestIssue = {
  reason: 'not configured',
  detail: 'declare routes in svc-api.yaml, or add ?permission=RESOURCE:ACTION to the URL that the proxy asks',
};

const NOT_PASSED_ON: RequestIssue = {
  reason: 'sign-in',
  detail: `the proxy asks about ${DOOR_PATH}: let it pass these requests on to svc-api, so that people can sign in`,
};

/** Decides for proxies whether requests are allowed. */
class ForwardAuth {
  readonly #options: ForwardAuthOptions;
  readonly #requirements: Requirements;
  readonly #clients: ClientAddresses;
  readonly #door: Door;

  constructor(options: ForwardAuthOptions) {
    this.#options = options;
    this.#door = new Door(options.check, options.signIn);
    this.#requirements = new Requirements(options.catalog);
    this.#clients = new ClientAddresses(options.trust.texts);
  }

  /**
   * Decides about a request for which a proxy asks: status 200 lets it pass, and 401, 403, 429 and 503 do not.
   * @param asking the proxy's own request, with the client's credentials
   */
  decide(asking: ServedRequest): Reply | Promise<Reply> {
    try {
      const reply = this.#decide(asking);
      return reply instanceof Promise ? reply.catch((error: unknown) => this.#failed(asking, error)) : reply;
    } catch (error) {
      return this.#failed(asking, error);
    }
  }

  #decide(asking: ServedRequest): Reply | Promise<Reply> {
    const { router, trust } = this.#options;
    const peer = asking.peer();
    if (peer === undefined || !trust.includes(peer)) return this.#refuse(asking, NOT_TRUSTED);
    const { request: asked, address, cookies } = readAsked(asking, this.#requirements);
    asking.client = this.#clients.saidAs(address.header, address.said);
    if (asking.notes) asking.notes.client = asking.client;
    if ('refusal' in asked) return this.#refuse(asking, asked.refusal);
    if (this.#options.signIn && isAtDoor(asked.parts.target)) return this.#refuse(asking, NOT_PASSED_ON);
    const requirement = required(asked, router, asking.notes);
    const { match } = requirement;
    const { observed, catalog } = this.#options;
    const isObserved = observed.has(match);
    if ('refusal' in requirement) {
      if (isObserved && observed.passes(match, { status: 403 })) return passing(NOBODY, cookies);
      return this.#refuse(asking, requirement.refusal);
    }
    const { allow } = requirement;
    if (allow.kind === 'open') return passing(NOBODY, cookies);
    const page = match?.route.crossSiteAllowed ? 'own' : askingPage(asking, asked.parts);
    if (page !== 'own' && this.#door.isByBrowser(asking, asked.parts, page)) {
      if (isObserved && observed.passes(match, { status: 403 })) return passing(NOBODY, cookies);
      const detail = refusedRequest(BY_BROWSER, asked.parts);
      this.#refuse(asking, { reason: 'cross-site', detail });
      return crossSiteRefused(page);
    }
    if (match) asking.charge = chargeOf(match.route);
    const admission = this.#door.enter(asking, asked.parts);
    const settle = (admission: Admission) => {
      const entry = authorize(asking, admission, { allow, match }, this.#options);
      if (!('refusal' in entry))
        return passing(identityHeaders(entry.admitted.principal, entry.permissions, catalog), cookies);
      return isObserved && observed.passes(match, entry.refusal)
        ? passing(NOBODY, cookies)
        : this.#refusalOf(asking, asked, entry.refusal);
    };
    return admission instanceof Promise ? admission.then(settle) : settle(admission);
  }

  /** A refusal with a status that proxies take for one; to a person, as a page, or with its address. */
  #refusalOf(asking: Received, { parts, passesAnswers }: AskedRequest, refusal: ErrorReply): Reply | Promise<Reply> {
    if (refusal.status === 400) {
      const challenge = this.#options.check.challengeTo(asking);
      return { ...refusal, status: 401, headers: { ...challenge, ...refusal.headers } };
    }
    if (!passesAnswers) {
      const page = this.#door.pageFor(asking, parts, refusal);
      if (page) return { ...refusal, headers: page };
      return refusal.status === 429 ? { ...refusal, status: 403 } : refusal;
    }
    return this.#door.show(asking, parts, refusal);
  }

  #refuse(asking: Received, { reason, detail }: RequestIssue): Reply {
    const { address } = this.#clients.of(asking);
    if (asking.notes?.details) asking.notes.details.code = 'FORBIDDEN';
    this.#options.logs.refusals.add('forward-auth refused', { reason, detail, address }, asking.notes);
    return errorReply('FORBIDDEN', 'This request is not allowed.');
  }

  #failed(asking: Received, error: unknown): Reply {
    this.#options.logs.failures.add(error, asking.notes?.id);
    return unavailable();
  }
}

/** The requirement of a request, from the configuration of its proxy or from routes. */
function required(
  { allow, parts }: AskedRequest,
  router: Router,
  notes: Received['notes'],
): OrRefusal<{ readonly allow: Needed }, RequestIssue> & { readonly match?: Match | undefined } {
  if (allow) {
    // Its path does not matter.
    const canonical = canonicalSite(parts);
    if ('refusal' in canonical) return refuse('not canonical', refusedRequest(canonical.refusal, parts));
    const needed = neededBy(allow, parts);
    return 'refusal' in needed ? refuse('method', refusedRequest(needed.refusal, parts)) : { allow: needed };
  }
  if (router.routes.length === 0) return { refusal: NOT_CONFIGURED };
  const required = requirementOf(router, parts);
  if (notes?.details && required.match) notes.details.route = describeMatch(required.match);
  if ('refusal' in required)
    return { ...refuse('no route', refusedRequest(required.refusal, parts)), match: required.match };
  // A proxy does not show the messages.
  if (required.match.also) return refuse('mcp', refusedRequest('only guard can serve this route', parts));
  return required;
}

/** Adds the endpoints of forward-auth to an app, at `/auth/…`, and to its shortcut. */
export function addForwardAuth(
  app: Hono<BearerEnv>,
  { check, places, ...logs }: Pick<RouteContext, 'check' | 'places' | 'refusals' | 'failures'>,
  {
    authenticator,
    ...options
  }: Omit<ForwardAuthOptions, 'check' | 'logs' | 'observed'> & Pick<KeysService, 'authenticator'>,
): void {
  const observed = new ObservedRoutes(authenticator);
  const forwardAuth = new ForwardAuth({ check, logs, observed, ...options });
  places.auth = (asking) => forwardAuth.decide(asking);
  app.all('/auth/*', honoHandler(places.auth));
}
