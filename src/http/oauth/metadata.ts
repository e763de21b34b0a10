import type { ConsentFlow } from '../../keys/repository/index.ts';
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

/**
 * What applications learn of the service (RFC 8414, section 3.2; RFC 8628, section 4; RFC 9207, section 3): of the ways
 * in which they may ask alone. What can be granted is told to keys alone.
 */
export function metadataReply(issuer: string, flows: readonly ConsentFlow[]): Reply {
  const [byCode, byPage] = [flows.includes('DEVICE'), flows.includes('CODE')];
  return jsonReply({
    issuer,
    ...(byPage && { authorization_endpoint: issuer + OAUTH_PATHS.authorize }),
    token_endpoint: issuer + OAUTH_PATHS.token,
    ...(byCode && { device_authorization_endpoint: issuer + OAUTH_PATHS.deviceAuthorization }),
    revocation_endpoint: issuer + OAUTH_PATHS.revoke,
    ...(byPage && { response_types_supported: ['code'], response_modes_supported: ['query'] }),
    grant_types_supported: [...(byPage ? ['authorization_code'] : []), ...(byCode ? [DEVICE_GRANT] : [])],
    ...(byPage && { code_challenge_methods_supported: ['S256'] }),
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    ...(byPage && { authorization_response_iss_parameter_supported: true }),
  });
}
