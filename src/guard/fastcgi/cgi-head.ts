import type { Received } from '../../http/client-address.ts';
import type { RequestNotes } from '../../http/request-notes.ts';
import { preflightParts } from '../../routes/request.ts';
import type { AskedRequest, Fault } from '../forward-auth/asked-request.ts';
import type { Requirements } from '../forward-auth/requirement.ts';
import { isRewriting } from '../rewriting-headers.ts';
import type { Parameters } from './parameters.ts';

/** The head of a request as CGI has it (RFC 3875, section 4.1). */
export class CgiHead implements Received {
  notes: RequestNotes | undefined = undefined;
  readonly #parameters: Parameters;
  readonly #peer: string | undefined;

  /** @param peer the address of the web server */
  constructor(parameters: Parameters, peer: string | undefined) {
    this.#parameters = parameters;
    this.#peer = peer;
  }

  /** The names of the client's headers, as far as they can be known. */
  names(): string[] {
    return [...this.#parameters.keys()].flatMap((name) => (name.startsWith('HTTP_') ? name.slice('HTTP_'.length) : []));
  }

  /** The web server knows the client. What the client says about itself is not asked for. */
  header(name: string): string | undefined {
    if (name === 'x-forwarded-for') return this.#parameters.get('REMOTE_ADDR');
    return name === 'forwarded' ? undefined : this.#parameters.get(`HTTP_${name.toUpperCase().replaceAll('-', '_')}`);
  }

  peer(): string | undefined {
    return this.#peer;
  }
}

/** Which variables say what of the request. */
const PARTS = { method: 'REQUEST_METHOD', host: 'HTTP_HOST', target: 'REQUEST_URI' } as const;
/** By this one, the configuration of the web server says what it requires. Those of the client begin with `HTTP_`. */
const REQUIREMENT = 'SVC_API_REQUIRE';

/** Reads the request that a web server asks about. */
export function readCgi(parameters: Parameters, head: CgiHead, requirements: Requirements): AskedRequest | Fault {
  const parts = { method: '', host: '', target: '' };
  for (const [part, name] of Object.entries(PARTS) as [keyof typeof PARTS, string][]) {
    const value = parameters.get(name);
    if (value === undefined) return { reason: 'contract', detail: `${name} is missing` };
    parts[part] = value;
  }
  const query = parameters.get(REQUIREMENT);
  const allow = query === undefined ? undefined : requirements.read(query);
  if (allow && 'fault' in allow) return { reason: 'requirement', detail: `${REQUIREMENT}: ${allow.fault}` };
  const rewriting = allow ? undefined : head.names().find(isRewriting);
  if (rewriting !== undefined) return { reason: 'rewriting', detail: `${rewriting} asks for another request` };
  const headerOf = (name: string) => (name === 'content-length' ? parameters.get('CONTENT_LENGTH') : head.header(name));
  return { parts: { ...parts, ...preflightParts(headerOf) }, allow, passes429: true };
}
