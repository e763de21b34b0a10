import { type Canonical, canonicalMethod } from './canonical.ts';
import { canonicalHost } from './canonical-host.ts';
import { canonicalTarget } from './canonical-path.ts';

/** What of a request decides about it, in canonical form. */
export interface RouteRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/** A request as it arrived. */
export interface RequestParts {
  readonly method: string;
  /** The value of Host. */
  readonly host: string;
  /** A path, with or without a query. */
  readonly target: string;
  /** The value of Origin, which a CORS preflight has. */
  readonly origin?: string | undefined;
  /** The value of Access-Control-Request-Method, which a CORS preflight has. */
  readonly requestMethod?: string | undefined;
}

/**
 * A request as routes see it. It is refused if another server could see a different one in it.
 * @example
 * canonicalRequest({ method: 'GET', host: 'Example.org:443', target: '/%61/?b' });
 * // { value: { method: 'GET', host: 'example.org', path: '/a' } }
 */
export function canonicalRequest(parts: RequestParts): Canonical<RouteRequest> {
  const method = canonicalMethod(parts.method);
  if ('refusal' in method) return method;
  const host = canonicalHost(parts.host);
  if ('refusal' in host) return host;
  const path = canonicalTarget(parts.target);
  if ('refusal' in path) return path;
  return { value: { method: method.value, host: host.value, path: path.value } };
}

/**
 * What of a request's headers makes it a CORS preflight. One that has a body, or asks for another protocol, is none: no
 * browser sends such a preflight, and what follows it would pass without a key.
 * @param header the value of a header, by its name in lower case
 */
export function preflightParts(
  header: (name: string) => string | undefined,
): Pick<RequestParts, 'origin' | 'requestMethod'> {
  const hasBody = header('transfer-encoding') !== undefined || !['', '0'].includes(header('content-length') ?? '');
  if (hasBody || header('upgrade') !== undefined) return {};
  return { origin: header('origin'), requestMethod: header('access-control-request-method') };
}

/** The CORS preflight that a browser sends before a request from a page of another origin. */
export function preflightOf(request: RequestParts): RequestParts {
  return { ...request, method: 'OPTIONS', origin: 'https://origin.example', requestMethod: request.method };
}

/** The method that a CORS preflight asks for (Fetch standard, 3.2.2); undefined for any other request. */
export function preflightMethod({ method, origin, requestMethod }: RequestParts): string | undefined {
  if (method !== 'OPTIONS' || origin === undefined || requestMethod === undefined) return undefined;
  const requested = canonicalMethod(requestMethod);
  return 'value' in requested ? requested.value : undefined;
}
