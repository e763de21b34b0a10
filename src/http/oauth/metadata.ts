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
 * What applications learn of the service (RFC 8414, section 3.2; RFC 8628, section 4; RFC 9207, section 3). What can be
 * granted is told to keys alone.
 */
export function metadataReply(issuer: string): Reply {
  return jsonReply({
    issuer,
    authorization_endpoint: issuer + OAUTH_PATHS.authorize,
    token_endpoint: issuer + OAUTH_PATHS.token,
    device_authorization_endpoint: issuer + OAUTH_PATHS.deviceAuthorization,
    revocation_endpoint: issuer + OAUTH_PATHS.revoke,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', DEVICE_GRANT],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
  });
}
