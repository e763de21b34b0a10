import { canonicalName } from '../canonical-name.ts';
import { type Framing, hasTrailers } from './framing.ts';
import { forwardingHeaders, isBelieved, isForwarding, type Peer } from './forwarding.ts';
import { connectionOptions, isHopByHop, pairsOf, valuesOf } from './header-names.ts';
import { REQUEST_ID } from '../../http/request-id.ts';
import type { RequestTarget } from './request-target.ts';

/** A client's request, and what the upstream is told about it. */
export interface RequestToPass {
  readonly rawHeaders: readonly string[];
  readonly target: RequestTarget;
  /** The Host that the upstream gets. */
  readonly host: string;
  readonly framing: Framing;
  readonly peer: Peer;
  /** Names and values in turn. */
  readonly identity: readonly string[];
  /** The id by which the upstream may log it, too; undefined where it has none. */
  readonly requestId: string | undefined;
  /** The headers of the trace that it goes on with, names and values in turn; undefined for the client's own. */
  readonly trace: readonly string[] | undefined;
  /** The protocol to upgrade to. */
  readonly upgrade: string | undefined;
  /** Whether a header has the key, which is not passed on. The name is canonical. */
  isCredential(name: string, value: string): boolean;
}

/** How the names of all headers begin that say who makes a request. No client may set one. */
const IDENTITY_PREFIX = 'x-auth-';
/** The name that we have as an intermediary, in `Via` (RFC 9110, section 7.6.3). */
const VIA = '1.1 svc-api';
/** Headers that are written anew, Content-Length and Host among them. */
const REWRITTEN: ReadonlySet<string> = new Set(['content-length', 'host', 'x-request-id']);

/**
 * The headers of a request to the upstream, names and values in turn: the client's as they are, in their order, without
 * those of the connection, the key, and what only we may say. Framing comes last: Node would decode a
 * Content-Disposition that comes after a Content-Length.
 */
export function requestHeaders(request: RequestToPass): string[] {
  const { rawHeaders, target, host, framing, peer, identity, requestId, trace = [], upgrade } = request;
  const ofConnection = connectionOptions(rawHeaders);
  const headers = ['Host', host];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name, value] = [rawHeaders[index]!, rawHeaders[index + 1]!];
    const [lowerCase, canonical] = [name.toLowerCase(), canonicalName(name)];
    const isPassed = isForwarding(canonical)
      ? isBelieved(lowerCase, canonical, peer)
      : !ofConnection.has(lowerCase) && isOwn(canonical, value, request);
    if (isPassed && (canonical !== 'trailer' || hasTrailers(framing))) headers.push(name, value);
  }
  headers.push(...forwardingHeaders(rawHeaders, peer, target.host), 'Via', VIA, ...identity);
  if (requestId !== undefined) headers.push(REQUEST_ID, requestId);
  headers.push(...trace);
  if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade);
  else if (takesTrailers(rawHeaders)) headers.push('Connection', 'keep-alive, TE', 'TE', 'trailers');
  headers.push(...framing);
  return headers;
}

/** The trailers of a request to the upstream, of which some servers make headers. */
export function requestTrailers(rawTrailers: readonly string[], request: RequestToPass): [string, string][] {
  return pairsOf(rawTrailers).filter(([name, value]) => {
    const canonical = canonicalName(name);
    return !isForwarding(canonical) && isOwn(canonical, value, request);
  });
}

/**
 * The headers of an answer to a client, names and values in turn.
 * @param more those that it is to have besides
 */
export function answerHeaders(
  rawHeaders: readonly string[],
  framing: Framing = [],
  more: readonly string[] = [],
): string[] {
  const ofConnection = connectionOptions(rawHeaders);
  const headers: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    const isFraming = name === 'content-length' || (name === 'trailer' && !hasTrailers(framing));
    // An id is that of the request here, which the upstream has got.
    if (isFraming || name === 'x-request-id' || isHopByHop(name) || ofConnection.has(name)) continue;
    headers.push(rawHeaders[index]!, rawHeaders[index + 1]!);
  }
  headers.push(...more, ...framing);
  return headers;
}

/** Headers that a trace is passed on by. */
const TRACING: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/** Whether a header is the client's own matter. */
function isOwn(name: string, value: string, request: RequestToPass): boolean {
  if (request.trace && TRACING.has(name)) return false;
  return (
    !isHopByHop(name) && !REWRITTEN.has(name) && !name.startsWith(IDENTITY_PREFIX) && !request.isCredential(name, value)
  );
}

function takesTrailers(rawHeaders: readonly string[]): boolean {
  return valuesOf(rawHeaders, 'te').some((value) => /(?:^|,)\s*trailers\s*(?:,|$)/i.test(value));
}
