import type { Context } from 'hono';
import { basePath } from 'hono/route';
import { invalidPublicUrl, Networks } from '../../keys/basics/index.ts';
import type { ConsentFlow } from '../../keys/repository/index.ts';
import { HonoHead } from '../received.ts';
import { jsonReply, type Reply } from '../replies.ts';

/** Where applications and people find what. */
export const OAUTH_PATHS = {
  metadata: '/.well-known/oauth-authorization-server',
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  deviceAuthorization: '/oauth/device_authorization',
  revoke: '/oauth/revoke',
  /** Short, since people type it. */
  device: '/device',
} as const;

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
export const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';

/**
 * What applications learn of the service (RFC 8414, section 3.2; RFC 8628, section 4; RFC 9207, section 3): of the ways
 * in which they may ask alone. What can be granted is told to keys alone.
 */
export function metadataReply(
  issuer: string,
  { flows, grantTypes }: { flows: readonly ConsentFlow[]; grantTypes: readonly string[] },
): Reply {
  const [byCode, byPage] = [flows.includes('DEVICE'), flows.includes('CODE')];
  return jsonReply({
    issuer,
    ...(byPage && { authorization_endpoint: issuer + OAUTH_PATHS.authorize }),
    token_endpoint: issuer + OAUTH_PATHS.token,
    ...(byCode && { device_authorization_endpoint: issuer + OAUTH_PATHS.deviceAuthorization }),
    revocation_endpoint: issuer + OAUTH_PATHS.revoke,
    ...(byPage && { response_types_supported: ['code'], response_modes_supported: ['query'] }),
    grant_types_supported: grantTypes,
    ...(byPage && { code_challenge_methods_supported: ['S256'] }),
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    ...(byPage && { authorization_response_iss_parameter_supported: true }),
  });
}

/** Finds out under which address clients know this service: its issuer (RFC 8414, section 2). */
export class Issuer {
  readonly #configured: string | undefined;
  readonly #trust: Networks;

  /**
   * @param configured the address as it is configured; otherwise it is the one that a request was made to
   * @throws RangeError if that is none, or a network is invalid
   */
  constructor(configured: string | undefined, trust: readonly string[]) {
    const problem = configured === undefined ? undefined : invalidPublicUrl(configured);
    if (problem !== undefined) throw new RangeError(problem);
    this.#configured = configured;
    this.#trust = new Networks(trust);
  }

  /** Whether clients find the metadata of an issuer with a path there (RFC 8414, section 3.1). */
  hasMetadataAt(path: string): boolean {
    const { pathname = '/' } = this.#configured === undefined ? {} : new URL(this.#configured);
    return pathname !== '/' && path === OAUTH_PATHS.metadata + pathname;
  }

  /** The address, such as `https://keys.example.org`, or `https://example.org/keys` for an app under that path. */
  of(c: Context): string {
    if (this.#configured !== undefined) return this.#configured;
    const url = new URL(this.#originOf(c));
    // Another app may have this one under a path of its own.
    url.pathname = basePath(c);
    return url.href.replace(/\/$/, '');
  }

  #originOf(c: Context): string {
    const { protocol, host } = new URL(c.req.url);
    const peer = new HonoHead(c).peer();
    if (peer === undefined || !this.#trust.includes(peer)) return `${protocol}//${host}`;
    const [scheme, name] = [c.req.header('x-forwarded-proto'), c.req.header('x-forwarded-host')];
    const seen = `${scheme === 'http' || scheme === 'https' ? `${scheme}:` : protocol}//${name ?? host}`;
    return isOrigin(seen) ? new URL(seen).origin : `${protocol}//${host}`;
  }
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).href === `${new URL(text).origin}/` && !/[,\s]/.test(text);
}
