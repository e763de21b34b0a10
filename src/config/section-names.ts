/** The names of the sections of the core. Commands without a file check plugins by them, and do not load the sections. */
export const CORE_SECTIONS = [
  'resources',
  'actions',
  'prefix',
  'builtinResources',
  'roles',
  'credentials',
  'trust',
  'cors',
  'tls',
  'server',
  'limits',
  'policy',
  'audit',
  'introspection',
  'publicUrl',
  'title',
] as const;
