/** The paths of endpoints for applications and of pages for people. */
export const OAUTH_PATHS = {
  metadata: '/.well-known/oauth-authorization-server',
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  deviceAuthorization: '/oauth/device_authorization',
  revoke: '/oauth/revoke',
  register: '/oauth/register',
  /** Short, since people type it. */
  device: '/device',
} as const;

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
