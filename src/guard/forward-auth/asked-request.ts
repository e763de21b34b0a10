import type { IncomingMessage } from 'node:http';
import { headerValue } from '../../http/request-head.ts';
import { printable } from '../../keys/text.ts';
import { preflightParts, type RequestParts } from '../../routes/request.ts';
import type { Allow } from '../../routes/router.ts';
import { isAliasOfIdentity } from '../identity-headers.ts';
import { isRewriting } from '../rewriting-headers.ts';
import { type Endpoint, endpointAt } from './endpoint.ts';
import { namesRequirement, type Requirements } from './requirement.ts';

/** The request that a proxy asks about. */
export interface AskedRequest {
  readonly parts: RequestParts;
  /** What the configuration of the proxy requires; undefined where routes decide. */
  readonly allow: Allow | undefined;
  /** Whether the client gets an answer of status 429 as it is. */
  readonly passes429: boolean;
}

/** Why a request may not pass, whoever makes it, for the log: one of few reasons, and what exactly. */
export interface Fault {
  readonly reason: string;
  readonly detail: string;
}

/**
 * Reads the request that a proxy asks about, by the contract of the endpoint.
 * @param url that of the proxy's own request, without where the app is mounted
 */
export function readAsked(incoming: IncomingMessage, url: string, requirements: Requirements): AskedRequest | Fault {
  const { method = '', rawHeaders } = incoming;
  const alias = headerThat(isAliasOfIdentity, rawHeaders);
  if (alias !== undefined) return { reason: 'forged', detail: `the client has sent ${printable(alias)}` };
  const endpoint = endpointAt(url);
  if (!endpoint) return { reason: 'unknown endpoint', detail: `there is none at ${printable(url)}` };
  const { contract, target } = endpoint;
  const said = contract.read({ method, rawHeaders, target });
  if ('fault' in said) return { reason: 'contract', detail: said.fault };
  const allow = allowOf(endpoint, said.target, requirements);
  if (allow && 'fault' in allow) return { reason: 'requirement', detail: allow.fault };
  const rewriting = allow ? undefined : headerThat(isRewriting, rawHeaders);
  if (rewriting !== undefined) return { reason: 'rewriting', detail: `${rewriting} asks for another request` };
  const preflight = preflightParts((name) => headerValue(rawHeaders, name));
  return { parts: { ...said, ...preflight }, allow, passes429: contract.passes429 };
}

/** The first header whose name is such a one. */
function headerThat(isSuch: (name: string) => boolean, rawHeaders: readonly string[]): string | undefined {
  for (let index = 0; index < rawHeaders.length; index += 2) if (isSuch(rawHeaders[index]!)) return rawHeaders[index];
  return undefined;
}

/**
 * Where the endpoint's URL has no query, a proxy may append that of the client, who must not choose what is required.
 * @param target that of the client's request
 */
function allowOf(
  { requirement, target: prefixed }: Endpoint,
  target: string,
  requirements: Requirements,
): ReturnType<Requirements['read']> | undefined {
  const [, clientQuery] = /\?(.+)$/s.exec(target) ?? [];
  if (prefixed === '' && clientQuery !== undefined && requirement.endsWith(clientQuery)) {
    if (namesRequirement(clientQuery)) return { fault: 'the query is that of the client, too: end the URL with "?"' };
    if (requirement === clientQuery) return undefined;
  }
  return requirement === '' ? undefined : requirements.read(requirement);
}
