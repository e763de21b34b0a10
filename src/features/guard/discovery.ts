import type { CheckParts, Discovery as Discovered, RequestTo, Reply } from '../../http/index.ts';
import { errorReply, isLoopbackHost, jsonReply, PROTECTED_RESOURCE } from '../../http/index.ts';
import { OAUTH_PATHS } from '../consent/oauth/paths.ts';
import { printable } from '../../keys/basics/index.ts';
import type { Permission } from '../../keys/permissions/index.ts';
import type { Match, Needed, RequestParts } from '../routes/index.ts';

/** Maximum number of path segments to search for a prefix. */
const MAX_SEGMENTS = 20;
/** The permission to request if any valid key is enough. */
const LEAST: Permission = 'ME:READ_OWN';
/** Paths where clients look for an authorization server on the host of the service. */
const SERVER_METADATA = [OAUTH_PATHS.metadata, '/.well-known/openid-configuration'];

/** In characters. */
const MAX_SHOWN = 100;

/** A request as it is decided about. */
export interface JudgedRequest {
  readonly parts: RequestParts;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
}

/** The requirement of a request, with its route. */
export interface Required {
  readonly allow: Needed;
  readonly match?: Match | undefined;
}

/** The requirement of a request, or the reason it is always refused. */
export type Requirement = Required | { readonly refusal: string; readonly match?: Match | undefined };

/** Finds the requirement of a request. */
export type Requirements = (request: JudgedRequest) => Requirement;

type Refusals = Pick<CheckParts['refusals'], 'add'>;

/** Tells clients of guarded services where they get keys (RFC 9728). */
export class Discovery {
  readonly #requirements: Requirements;
  readonly #authorizationServer: string | undefined;
  readonly #serverHost: string | undefined;
  readonly #refusals: Refusals | undefined;

  /**
   * @param authorizationServer the address of the service at which applications ask; undefined tells of none
   * @param refusals logs where applications cannot log in as no route names their host
   */
  constructor(requirements: Requirements, authorizationServer: string | undefined, refusals?: Refusals) {
    this.#requirements = requirements;
    this.#authorizationServer = authorizationServer;
    this.#serverHost = authorizationServer === undefined ? undefined : new URL(authorizationServer).host;
    this.#refusals = refusals;
  }

  /**
   * Checks whether a host is certainly ours: named by a route, the host of the service, or this machine. Someone with a
   * key for a host of their own could write that host into a request.
   */
  isOwn(to: RequestTo): boolean {
    const host = this.#neededBy(to)?.match?.route.host ?? '*';
    return host !== '*' || to.host.toLowerCase() === this.#serverHost || isLoopbackHost(to.host);
  }

  /** The metadata to add to a refusal; undefined if no key would help. */
  find(to: RequestTo): Discovered | undefined {
    if (this.#authorizationServer === undefined || !this.isOwn(to)) return undefined;
    const { allow } = this.#neededBy(to) ?? {};
    const path = to.target.split('?', 1)[0]!;
    const segments = path.split('/');
    if (!allow || allow.kind === 'open' || segments.length > MAX_SEGMENTS) return undefined;
    for (; segments.length > 0; segments.pop()) {
      const beginning = segments.join('/');
      if (this.#scopesAt({ ...to, target: beginning }).length === 0) continue;
      const scope = allow.kind === 'any' ? [allow.permissions[0]] : scopeOf(allow);
      return { metadata: `${originOf(to)}${PROTECTED_RESOURCE}${beginning}`, scope };
    }
    return undefined;
  }

  /**
   * Answers a request for metadata (RFC 9728, section 3.2), with 404 if there is none, since clients look in several
   * places. Undefined for any other request, and on a route that lets everyone see the upstream's own answer.
   */
  answer(to: RequestTo): Reply | undefined {
    const path = to.target.split('?', 1)[0]!;
    const server = this.#authorizationServer;
    const about = isAt(path, PROTECTED_RESOURCE) ? path.slice(PROTECTED_RESOURCE.length) : undefined;
    const isAsked = about !== undefined || SERVER_METADATA.some((place) => isAt(path, place));
    if (server === undefined || (to.method !== 'GET' && to.method !== 'HEAD') || !isAsked) return undefined;
    const target = about?.replace(/\/$/, '');
    const scopes = target === undefined ? [] : this.#scopesAt({ ...to, target });
    const isOwn = (method: string) => this.isOwn({ ...to, method, target: target || '/' });
    if (target !== undefined && scopes.length > 0 && (isOwn(to.method) || isOwn('POST'))) {
      const resource = {
        resource: originOf(to) + target,
        authorization_servers: [server],
        bearer_methods_supported: ['header'],
        scopes_supported: scopes,
      };
      return jsonReply(resource, { 'Access-Control-Allow-Origin': '*' });
    }
    if (this.#neededBy(to)?.allow.kind === 'open') return undefined;
    if (scopes.length === 0) return errorReply('NOT_FOUND', `Not found. Get keys from ${server}.`);
    const message =
      'The route is for every host, and a client could invent one. Name yours in svc-api.yaml, so that ' +
      `applications can log in: host: ${printable(to.host, MAX_SHOWN)}`;
    this.#refusals?.add('login not offered', { reason: 'host', detail: message });
    return errorReply('NOT_FOUND', message);
  }

  /** All permissions that can be requested at a path, if a route starts there. */
  #scopesAt(to: RequestTo): Permission[] {
    const found = ['GET', 'POST', 'PUT', 'DELETE'].flatMap((method) => {
      const needed = this.#neededBy({ ...to, method, target: to.target || '/' });
      return needed && needed.allow.kind !== 'open' && beginningOf(needed.match) === to.target ? needed.allow : [];
    });
    return [...new Set(found.flatMap(scopeOf))];
  }

  #neededBy({ method, host, target }: RequestTo): Required | undefined {
    const requirement = this.#requirements({ parts: { method, host, target }, rawHeaders: [] });
    return 'refusal' in requirement ? undefined : requirement;
  }
}

function isAt(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

function scopeOf(allow: Needed): readonly Permission[] {
  return 'permissions' in allow ? allow.permissions : [LEAST];
}

/** The text with which the path of a route begins, up to its first pattern; that of the host where there is none. */
function beginningOf(match: Match | undefined): string {
  const path = match?.route.path ?? '';
  return path.replace(/\/(?:\*.*)?$|\/\*\*?\/.*$/, '');
}

function originOf({ scheme, host }: RequestTo): string {
  return new URL(`${scheme}://${host}`).origin;
}
