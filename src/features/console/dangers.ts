/** Dangers of permissions that are not obvious from their names. */
const DANGERS: Readonly<Record<string, string>> = {
  'API_KEY:CREATE_ANY': 'It can create keys, and see and deny requests of applications.',
  'API_KEY:CREATE_OWN': 'It can create child keys, which can do no more than this key and are deleted with it.',
  'API_KEY:READ_ANY': 'It can see all keys, their permissions and their use, but no secrets.',
  'API_KEY:UPDATE_ANY': 'It can change, disable and rotate all keys.',
  'API_KEY:DELETE_ANY': 'It can delete all keys.',
  'ACTIVATION_CODE:READ_ANY': 'It can read activation codes, which are credentials.',
  'PERMISSION:UPDATE_ANY': 'It can change permissions.',
  'CONFIG:UPDATE_ANY': 'It can change the configuration.',
  'LOGS:READ_ANY': 'It can read the audit log: who did what, and from where.',
};

/** The role that allows everything. */
const ALL_ACCESS = 'ADMIN';

/** The dangers of grants, each in a sentence. */
export function dangersOf(permissions: Iterable<string>, grants: readonly string[]): string[] {
  if (grants.includes(ALL_ACCESS))
    return [`The role ${ALL_ACCESS} has full control, including all keys. It is rarely needed.`];
  const held = new Set(permissions);
  if (held.has('API_KEY:CREATE_ANY')) held.delete('API_KEY:CREATE_OWN');
  return Object.entries(DANGERS).flatMap(([permission, danger]) =>
    held.has(permission) ? `${permission}: ${danger}` : [],
  );
}
