import { type Contract, CONTRACTS } from './contracts.ts';

/** The endpoint that a proxy asks. */
export interface Endpoint {
  readonly contract: Contract;
  /** What its URL says about the requirement, in the form of a query; empty if it says nothing. */
  readonly requirement: string;
  /** What follows it in the URL. */
  readonly target: string;
}

const BY_HEADERS = /^\/auth\/([a-z]+)(?:\?(.*))?$/s;
/**
 * Envoy appends the client's path and query to a prefix. So its requirement stands before the endpoint's name: whatever
 * the client appends to `/auth/envoy`, it is not this.
 */
const BY_PREFIX = /^\/auth\/(?:((?:permission|any)=[^/?]*|key)\/)?envoy(\/.*)$/s;

/** The endpoint at a URL; undefined if there is none. */
export function endpointAt(url: string): Endpoint | undefined {
  const prefixed = BY_PREFIX.exec(url);
  if (prefixed) return { contract: CONTRACTS.get('envoy')!, requirement: prefixed[1] ?? '', target: prefixed[2]! };
  const [, name = '', requirement = ''] = BY_HEADERS.exec(url) ?? [];
  const contract = name === 'envoy' ? undefined : CONTRACTS.get(name);
  return contract && { contract, requirement, target: '' };
}
