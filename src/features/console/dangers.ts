/** What is dangerous about a permission, beyond what it says itself. */
const DANGERS: Readonly<Record<string, string>> = {
  'API_KEY:CREATE_ANY': 'It may create keys, and see and refuse what applications ask for.',
  'API_KEY:CREATE_OWN': 'It may create keys of its own, which can do no more than it, and are deleted with it.',
  'API_KEY:READ_ANY': 'It may see all keys, what they may do and when they were used, though no secret.',
  'API_KEY:UPDATE_ANY': 'It may change, disable and rotate all keys.',
  'API_KEY:DELETE_ANY': 'It may delete all keys.',
  'ACTIVATION_CODE:READ_ANY': 'It may read activation codes, which are credentials.',
  'PERMISSION:UPDATE_ANY': 'It may change permissions.',
  'CONFIG:UPDATE_ANY': 'It may change the configuration.',
  'LOGS:READ_ANY': 'It may read the audit log: who did what, and from where.',
};

/** The role that allows everything. */
const ALL_ACCESS = 'ADMIN';

/** What is dangerous about grants, each in a sentence. */
export function dangersOf(permissions: Iterable<string>, grants: readonly string[]): string[] {
  if (grants.includes(ALL_ACCESS))
    return [`The role ${ALL_ACCESS} allows everything, now and later. Few keys need it.`];
  const held = new Set(permissions);
  if (held.has('API_KEY:CREATE_ANY')) held.delete('API_KEY:CREATE_OWN');
  return Object.entries(DANGERS).flatMap(([permission, danger]) =>
    held.has(permission) ? `${permission}: ${danger}` : [],
  );
}
