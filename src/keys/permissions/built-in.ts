/** The built-in resources. An installation adds its own. */
export const RESOURCES = [
  'ACTIVATION_CODE',
  'API_KEY',
  'ARRAY',
  'CLOUD',
  'CONFIG',
  'CONNECT',
  'CONNECT__REMOTE_ACCESS',
  'CUSTOMIZATIONS',
  'DASHBOARD',
  'DISK',
  'DISPLAY',
  'DOCKER',
  'FLASH',
  'INFO',
  'LOGS',
  'ME',
  'NETWORK',
  'NOTIFICATIONS',
  'ONLINE',
  'OS',
  'OWNER',
  'PERMISSION',
  'REGISTRATION',
  'SERVERS',
  'SERVICES',
  'SHARE',
  'VARS',
  'VMS',
  'WELCOME',
] as const;

/** Built-in resources that hold credentials, which VIEWER may not read. */
export const CREDENTIAL_RESOURCES: readonly string[] = ['API_KEY', 'ACTIVATION_CODE'];

/** The built-in roles. An installation adds its own. */
export const ROLES = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'] as const;

/** The role that includes everything, whatever an installation declares. */
export const ALL_ACCESS = 'ADMIN';

/** What each built-in role is for, as shown to users. */
export const ROLE_MEANINGS: Readonly<Record<(typeof ROLES)[number], string>> = {
  ADMIN: 'Full system access: every action on every resource.',
  CONNECT: 'Access to the cloud-connection features, and all of GUEST.',
  VIEWER: 'Read-only access to every resource except those that hold credentials, and all of GUEST.',
  GUEST: 'Limited access: its own key, and whether the service is online.',
};
